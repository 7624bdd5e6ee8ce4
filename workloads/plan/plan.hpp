// How a training step is cut over ranks: degrees, data-parallel strategy, pipeline schedule, batch,
// precision, recompute. Rank <-> coordinates and groups. Values only; knows no hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

enum class DataParallel : std::uint8_t { ddp, zero1, zero2, zero3 };
constexpr std::string_view name_of(DataParallel kind) {
  constexpr std::string_view names[] = {"ddp", "zero1", "zero2", "zero3"};
  return names[static_cast<std::size_t>(kind)];
}

/// A set of them.
class DataKinds {
 public:
  constexpr DataKinds() = default;
  constexpr DataKinds(std::initializer_list<DataParallel> kinds) {
    for (const DataParallel kind : kinds) add(kind);
  }
  constexpr void add(DataParallel kind) { bits_ |= bit(kind); }
  constexpr bool has(DataParallel kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend bool operator==(const DataKinds&, const DataKinds&) = default;

 private:
  static constexpr unsigned bit(DataParallel kind) { return 1U << static_cast<unsigned>(kind); }
  unsigned bits_ = 0;
};

enum class Schedule : std::uint8_t { gpipe, one_f_one_b };
enum class Recompute : std::uint8_t { none, selective, full };
enum class ReduceWhen : std::uint8_t { last, each };  // once per step, or for each micro-batch
enum class Dtype : std::uint8_t { fp32, tf32, bf16, fp16, fp8 };

std::int64_t bytes_per_element(Dtype);

struct ParallelPlan {
  DataParallel data = DataParallel::zero2;
  std::int64_t data_degree = 1;   // replicas that work on sequences of their own
  std::int64_t shard_degree = 0;  // ranks that share one copy of the sharded state; 0: all copies()
  std::int64_t tensor = 1;
  std::int64_t context = 1;  // ranks that share each sequence: s / context tokens on each
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;         // model chunks per stage (interleaved 1F1B)
  std::vector<std::int64_t> stage_layers;  // of each part in model order; empty: equal
  Schedule schedule = Schedule::one_f_one_b;
  Recompute recompute = Recompute::none;
  std::int64_t recompute_every = 1;  // full: of each part's layers only every n-th, from the first
  ReduceWhen reduce = ReduceWhen::last;
  std::int64_t prefetch = 1;  // units gathered ahead of their use

  std::int64_t ranks() const { return data_degree * context * tensor * pipeline; }
  /// Ranks with the same parameters, over which gradients are summed.
  std::int64_t copies() const { return data_degree * context; }
  std::int64_t shards() const { return shard_degree == 0 ? copies() : shard_degree; }
  /// Copies of the sharded state (hsdp); 1: sharded over all.
  std::int64_t shard_replicas() const { return copies() / shards(); }
  /// Parts of the model between which activations are sent; part k lies on stage k % pipeline.
  std::int64_t parts() const { return pipeline * virtual_stages; }
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

  friend bool operator==(const Precision&, const Precision&) = default;
};

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
/// peak_memory()'s business.
void check(const TransformerShape&, const ParallelPlan&, const Batch&, const std::string& where);

/// Throws InputError at `where` for precisions whose kernels are not modelled (fp8 casts and
/// transposes) or that no framework reduces in.
void check(const Precision&, const std::string& where);

/// Layers of the model in part `part` of `parts`; uneven when the number does not divide them (the
/// first parts take the remainder, as torch's equal split does).
std::int64_t layers_of_stage(std::int64_t layers, std::int64_t parts, std::int64_t part);

/// The same for a plan: stage_layers where they are given. Part = chunk * pipeline + stage.
std::int64_t layers_of_part(std::int64_t layers, const ParallelPlan&, std::int64_t part);

}  // namespace stepcast::workloads
