// How a training step is cut over ranks: degrees, data-parallel strategy, pipeline schedule, batch,
// precision, recompute. Rank <-> coordinates and groups. Values only; knows no hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/plan/set_of.hpp"
#include "workloads/plan/transformer.hpp"
#include "workloads/plan/turn.hpp"

namespace stepcast::workloads {

enum class DataParallel : std::uint8_t { ddp, zero1, zero2, zero3 };
constexpr std::string_view name_of(DataParallel kind) {
  constexpr std::string_view names[] = {"ddp", "zero1", "zero2", "zero3"};
  return names[static_cast<std::size_t>(kind)];
}

using DataKinds = SetOf<DataParallel>;

/// Zero-bubble schedules (arXiv 2401.10241), DualPipe and DualPipeV part weight from input
/// gradients; listed: as a file says.
enum class Schedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe,
  dualpipe_v,
  listed
};
inline constexpr int num_schedules = 8;
constexpr std::string_view name_of(Schedule schedule) {
  constexpr std::string_view names[] = {"gpipe", "1f1b",     "zb_h1",      "zb_h2",
                                        "zb_v",  "dualpipe", "dualpipe_v", "listed"};
  return names[static_cast<std::size_t>(schedule)];
}

/// A set of them.
using Schedules = SetOf<Schedule>;

/// What backward runs again of each layer: nothing; what the software calls selective
/// (SelectiveRecompute); all but what torch's checkpoint keeps by operator (every second product,
/// attention, exchanges); everything.
enum class Recompute : std::uint8_t { none, selective, operators, full };
/// Parts of a layer that backward runs again instead of keeping what they made.
enum class LayerModule : std::uint8_t {
  attention_core,
  norm,
  latent_up,          // MLA's projections out of the low ranks
  expert_activation,  // between the experts' two products
  mlp,
  shared_experts,
  experts
};
using LayerModules = SetOf<LayerModule>;

enum class ReduceWhen : std::uint8_t { last, each };  // once per step, or for each micro-batch
/// Of eight bits: scaled per tensor, per block (1 x 128, weights 128 x 128), per 32 elements; of
/// four bits: per 16 elements.
enum class Dtype : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8, nvfp4 };

/// Without scales.
std::int64_t bits_per_element(Dtype);
/// Of types of whole bytes.
std::int64_t bytes_per_element(Dtype);

/// What products read: 16 bits, or fewer by a recipe that scales them (Transformer Engine): per
/// tensor by what was largest in earlier steps or in this one, per block, or by microscaling.
enum class Recipe : std::uint8_t { none, fp8_delayed, fp8_current, fp8_block, mxfp8, nvfp4 };
using Recipes = SetOf<Recipe>;
constexpr std::string_view name_of(Recipe recipe) {
  constexpr std::string_view names[] = {"none",      "fp8_delayed", "fp8_current",
                                        "fp8_block", "mxfp8",       "nvfp4"};
  return names[static_cast<std::size_t>(recipe)];
}

/// How tokens travel to their experts and back: gathered on all ranks, by NCCL's sends and receives
/// with a copy for each expert, by kernels that send each node one copy (DeepEP), or by kernels
/// made for one NVLink domain with RDMA between domains (HybridEP).
enum class Dispatcher : std::uint8_t { all_gather, all_to_all, node_aware, nvlink_domain };
constexpr std::string_view name_of(Dispatcher dispatcher) {
  constexpr std::string_view names[] = {"all_gather", "all_to_all", "node_aware", "nvlink_domain"};
  return names[static_cast<std::size_t>(dispatcher)];
}

/// How experts are cut over the ranks of a stage: a mesh of its own over the same ranks, whose
/// order is expert tensor fastest, then expert, then copies.
struct ExpertPlan {
  std::int64_t degree = 1;  // ranks that share a layer's experts
  std::int64_t tensor = 0;  // ranks that share each expert; 0: as the plan's tensor degree
  Dispatcher dispatcher = Dispatcher::all_to_all;
  Dtype dispatch_dtype = Dtype::bf16;
  std::int64_t exchange_sms = 0;  // that the exchange's kernels hold; 0: as the library does
  double capacity_factor = 0.0;   // rows per expert over the mean; 0: no token is dropped
  bool pad_to_capacity = false;   // experts take as many rows whatever comes
  bool shared_overlap = false;    // shared experts run beside the exchange
  bool overlap = false;           // exchange under another micro-batch's compute
  bool delay_wgrad = false;       // weight gradients apart, where they hide more of it
  friend bool operator==(const ExpertPlan&, const ExpertPlan&) = default;
};

/// How collectives between tensor ranks run beside the very products that they feed or empty: not;
/// by Transformer Engine's user buffers; by torch's async tensor parallelism (copies alone).
enum class TensorOverlap : std::uint8_t { none, userbuffers, async_tp };
using TensorOverlaps = SetOf<TensorOverlap>;
constexpr std::string_view name_of(TensorOverlap overlap) {
  constexpr std::string_view names[] = {"none", "userbuffers", "async_tp"};
  return names[static_cast<std::size_t>(overlap)];
}

/// What lies in the host's memory instead of the GPU's.
struct OffloadPlan {
  double activations = 0.0;        // share of what layers keep for backward
  double optimizer = 0.0;          // share of the optimizer's states, updated by the processors
  double parameters = 0.0;         // zero3: share of the shards, sent to the GPU to be gathered
  bool optimizer_overlap = false;  // copies and updates of it go on piece by piece
  friend bool operator==(const OffloadPlan&, const OffloadPlan&) = default;
};

/// Where tokens go: equally many to all experts; each token to random ones; as counted; or so that
/// the fullest expert has `max_violation` more than the mean.
enum class RoutingKind : std::uint8_t { balanced, uniform, counts, max_violation };
struct Routing {
  RoutingKind kind = RoutingKind::uniform;
  std::uint64_t seed = 1;
  double max_violation = 0.0;    // largest over mean, less one
  std::vector<double> counts{};  // of each expert, for all layers alike
  friend bool operator==(const Routing&, const Routing&) = default;
};

/// What makes new weights of gradients: AdamW (or LAMB, as the software's kernel says); AdamW with
/// moments of eight bits and a scale a block (bitsandbytes); Adafactor, whose second moment of a
/// matrix is a row and a column; Muon for the matrices of layers, AdamW for all else; SGD with
/// momentum.
enum class Optimizer : std::uint8_t { adam, adam_8bit, adafactor, muon, sgd };

struct ParallelPlan {
  DataParallel data = DataParallel::zero2;
  std::int64_t data_degree = 1;   // replicas that work on sequences of their own
  std::int64_t shard_degree = 0;  // ranks that share one copy of the sharded state; 0: all copies()
  std::int64_t shard_group = 0;  // shard_degree as the software takes it, where it divides copies()
  std::int64_t tensor = 1;
  std::int64_t context = 1;  // ranks that share each sequence: s / context tokens on each
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;           // model chunks per stage
  std::vector<std::int64_t> stage_layers{};  // of each part in model order; empty: equal
  Schedule schedule = Schedule::one_f_one_b;
  SharedOrders orders{};  // of Schedule::listed
  Recompute recompute = Recompute::none;
  std::int64_t recompute_every = 1;  // full: of each part's layers only every n-th, from the first
  LayerModules recompute_modules{};  // beside what `recompute` says
  std::int64_t mlp_tiles = 1;        // parts of the sequence that a dense MLP takes one by one
  ReduceWhen reduce = ReduceWhen::last;
  std::int64_t prefetch = 1;  // units gathered ahead of their use
  TensorOverlap tensor_overlap = TensorOverlap::none;
  Optimizer optimizer = Optimizer::adam;
  bool optimizer_in_backward = false;  // each tensor is updated when its gradient is there
  OffloadPlan offload{};
  ExpertPlan expert{};
  Routing routing{};

  std::int64_t expert_tensor() const { return expert.tensor == 0 ? tensor : expert.tensor; }
  /// Ranks that hold the same part of the same experts.
  std::int64_t expert_copies() const {
    return ranks() / (pipeline * expert.degree * expert_tensor());
  }
  std::int64_t ranks() const { return data_degree * context * tensor * pipeline; }
  /// Ranks with the same parameters, over which gradients are summed.
  std::int64_t copies() const { return data_degree * context; }
  std::int64_t shards() const {
    if (shard_degree != 0) return shard_degree;
    return shard_group != 0 && copies() % shard_group == 0 ? shard_group : copies();
  }
  /// Copies of the sharded state (hsdp); 1: sharded over all.
  std::int64_t shard_replicas() const { return copies() / shards(); }
  Placement placement() const;
  /// Parts of the model between which activations are sent.
  std::int64_t parts() const {
    return placement() == Placement::mirrored ? pipeline : pipeline * virtual_stages;
  }
  /// The part that a chunk of a stage is.
  std::int64_t part_of(std::int64_t stage, std::int64_t chunk) const;
  /// Whether a stage has the embedding, or the head.
  bool has_part(std::int64_t stage, std::int64_t part) const;
  bool has_first_part(std::int64_t stage) const { return has_part(stage, 0); }
  bool has_last_part(std::int64_t stage) const { return has_part(stage, parts() - 1); }
  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

/// Batch of one step, per data-parallel replica: micro_batches x micro_batch sequences.
struct Batch {
  std::int64_t micro_batch = 1;    // sequences per replica and micro-batch
  std::int64_t micro_batches = 1;  // per step
  std::int64_t sequence = 4096;    // tokens per sequence

  friend bool operator==(const Batch&, const Batch&) = default;
};

struct Precision {
  Dtype compute = Dtype::bf16;
  Dtype gradient_reduce = Dtype::fp32;
  bool loss_scaling = false;  // fp16: found-inf check
  Recipe recipe = Recipe::none;
  std::int64_t bf16_first_layers = 0;  // that the recipe leaves in 16 bits
  std::int64_t bf16_last_layers = 0;
  bool fp8_parameters = false;  // weights are kept and gathered in the recipe's type
  Dtype moments = Dtype::fp32;  // of Adam
  bool masters = true;          // fp32 ones of 16-bit weights; else all states are in 16 bits

  // Of the GPU, no keys: products of eight bits, scaled per tensor, need both operands along the
  // summed dimension (Hopper); those scaled per block run as microscaled ones (Blackwell).
  bool transposes = false;
  bool emulates_blocks = false;

  friend bool operator==(const Precision&, const Precision&) = default;
};

/// How the parts lie that a schedule runs.
Placement placement_of(Schedule, const SharedOrders&);
/// The part that is chunk `chunk` of stage `stage` of so many.
std::int64_t part_at(Placement, std::int64_t stages, std::int64_t stage, std::int64_t chunk);

/// Where a rank stands: tensor fastest, then context, data, pipeline.
/// rank = ((pipeline * data_degree + data) * context_degree + context) * tensor_degree + tensor.
struct Coordinates {
  std::int64_t tensor = 0, context = 0, data = 0, pipeline = 0;
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

Coordinates coordinates_of(const ParallelPlan&, std::int64_t rank);
std::int64_t rank_of(const ParallelPlan&, Coordinates);

/// Throws InputError at `where` when the plan cannot cut this model and batch: values below 1,
/// degrees that do not divide heads, ffn_hidden, vocab or (sequence or context parallel) the
/// sequence, more parts than layers, stage_layers that do not add up. Whether it fits in memory is
/// fullest_memory()'s business.
void check(const TransformerShape&, const ParallelPlan&, const Batch&, const std::string& where);

/// Throws InputError at `where` for types that nothing is computed, kept or reduced in.
void check(const Precision&, const std::string& where);

/// Layers of the model in part `part` of `parts`; uneven when the number does not divide them (the
/// first parts take the remainder, as torch's equal split does).
std::int64_t layers_of_stage(std::int64_t layers, std::int64_t parts, std::int64_t part);

/// The same for a plan: stage_layers where they are given.
std::int64_t layers_of_part(std::int64_t layers, const ParallelPlan&, std::int64_t part);

}  // namespace stepcast::workloads
