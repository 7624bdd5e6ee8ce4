// Which kernels a framework issues and what its host thread pays for each call: the facts of
// frameworks that change a step. Values come from scenarios/software/*.toml.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/stage_split.hpp"

namespace stepcast::workloads {

/// torch eager, torch.compile, TE/apex, stepcast's own trainer: one kernel for each of norm, rope,
/// SwiGLU, attention, loss; input gradients of products are added by their GEMM; gradients live in
/// the bucket.
enum class Fusion : std::uint8_t { eager, compiled, fused, own };
/// AdamW as torch's foreach passes, as one multi-tensor kernel, or as a loop over the tensors (the
/// decoupled AdamW of Composer); LAMB as apex's multi-tensor kernels.
enum class OptimizerKernel : std::uint8_t { foreach, fused, per_tensor, lamb };
/// What the states of replicated 16-bit parameters are: an fp32 master and moments, of the shard
/// where they are sharded; DeepSpeed's besides widen the shard's gradients for the update
/// (stage_1_and_2.py) or, in bf16 with fp32 sums, keep 16-bit gradients beside the sums
/// (bf16_optimizer.py).
enum class OptimizerStates : std::uint8_t { masters, deepspeed };
/// Copies of the logits: what the loss's kernels need (activation_memory.cpp); the same without the
/// 16-bit logits, which the script drops before backward (torchtitan); with logits that the model
/// returns in fp32 (transformers up to 4.4x); a gradient in their place, 16 bits (Transformer
/// Engine up to 2.17) or fp32; fp32 ones shifted, exponentiated and turned into their gradient in
/// one place (nanotron); fp32 ones that the model returns, copied without the last position, the
/// copy turned into their gradient (a fused kernel under transformers up to 4.4x); 16 bits
/// throughout but where the vocabulary is cut (OneFlow).
enum class LossMemory : std::uint8_t {
  kernels,
  dropped,
  widened,
  gradient,
  gradient_fp32,
  in_place,
  shifted,
  low
};
/// How head and loss go over a micro-batch: at once; in parts, forward and backward of each before
/// the next (torchtitan's ChunkedLossWrapper); in parts that are checkpointed, whose logits
/// backward makes again (TRL's chunked_nll); in parts with the gradients made in forward and scaled
/// in backward (Liger's fused linear cross-entropy).
enum class LossForm : std::uint8_t { whole, chunks, checkpointed, fused_linear };
/// What "selective" means: the attention core runs again (Megatron), or all but what a list of
/// operators keeps (torchtitan).
enum class SelectiveRecompute : std::uint8_t { attention_core, operators };
/// How memory is handed out: PyTorch's caching allocator, or planned before the run.
enum class Allocator : std::uint8_t { caching, planned };
/// Where zero2 and zero3 keep parameters: fsdp1 shards with views, fsdp2 shards with copy-in and
/// copy-out, buckets replicates them in 16 bits between steps and shards gradients and optimizer
/// only (DeepSpeed stage 2, Megatron's distributed optimizer).
enum class FlatParameters : std::uint8_t { fsdp1, fsdp2, buckets };
/// own_flash and host are our trainer's, on GPUs and on processor cores. The last two keep the
/// scores in memory: fused_softmax scales, masks and normalises them in one kernel (Megatron),
/// unfused in the framework's own operators, unless a compiler fuses them.
enum class AttentionKernel : std::uint8_t {
  flash1,
  flash2,
  flash3,
  flash4,
  cudnn,
  memory_efficient,
  own_flash,
  host,
  fused_softmax,
  unfused
};

/// How context ranks come by the keys and values of the others: in c - 1 steps round a ring under
/// the attention of the part at hand, gathered before it, or as all of the sequence for 1/c of the
/// heads.
enum class ContextExchange : std::uint8_t { ring, all_gather, all_to_all };

/// How ranks share what zero1 shards: each a slice of every bucket, or each whole tensors, to whose
/// owner gradients go and who sends the parameters to all others.
enum class ZeroExchange : std::uint8_t { slices, owner };

inline constexpr DataKinds all_data_kinds{DataParallel::ddp, DataParallel::zero1,
                                          DataParallel::zero2, DataParallel::zero3};

/// What each part of a step is made of. Keys of scenarios stay flat (sim/scenario/members.hpp).
struct NormSoftware {
  bool fused = false;  // eager code with a norm of one kernel
  friend bool operator==(const NormSoftware&, const NormSoftware&) = default;
};

struct ProductSoftware {
  bool packed = false;     // one GEMM for q,k,v and one for gate,up
  bool accumulate = true;  // fused: weight gradients are added to the buffer by their GEMM
  Recipes recipes{};       // of low precision that it can run
  friend bool operator==(const ProductSoftware&, const ProductSoftware&) = default;
};

struct AttentionSoftware {
  AttentionKernel kernel = AttentionKernel::flash2;
  ContextExchange exchange = ContextExchange::ring;
  bool repeats_kv = true;  // eager code gives the core k and v of every q head

  /// Whether the matrix of scores goes through memory and is kept for backward.
  bool keeps_scores() const {
    return kernel == AttentionKernel::unfused || kernel == AttentionKernel::fused_softmax;
  }
  friend bool operator==(const AttentionSoftware&, const AttentionSoftware&) = default;
};

/// Products of all experts of a rank: one call each on four streams, or one kernel for all.
enum class GroupedProducts : std::uint8_t { loop, one_launch };

struct ExpertSoftware {
  bool runs = false;  // the framework has layers of experts
  SetOf<Dispatcher> dispatchers{Dispatcher::all_gather, Dispatcher::all_to_all,
                                Dispatcher::node_aware, Dispatcher::nvlink_domain};  // that it has
  GroupedProducts products = GroupedProducts::loop;
  bool fused_router = true;   // scores, top-k and counts in one kernel
  bool fused_permute = true;  // rows move in one kernel
  bool host_counts = true;    // the host reads the counts before the exchange, unless padded
  bool weighed_back = false;  // fused: rows are weighed when they are back, and kept for it
  bool weighed_wide = false;  // not fused: the same in fp32 (torchtitan)
  // Fused: beside experts, norms on both sides are operators of torch in fp32, those of experts,
  // of shared experts and of the router apart (Megatron-Bridge's Gemma 4).
  bool operator_norms = false;
  friend bool operator==(const ExpertSoftware&, const ExpertSoftware&) = default;
};

struct LossSoftware {
  bool fused = false;  // cross-entropy of 16-bit logits is one kernel each way (flash-attn)
  bool gathered_logits = false;  // tensor ranks compute the loss on whole, gathered logits
  LossMemory memory = LossMemory::kernels;
  LossForm form = LossForm::whole;
  std::int64_t chunks = 8;          // LossForm::chunks: parts of a micro-batch
  std::int64_t chunk_tokens = 256;  // LossForm::checkpointed: tokens of a part
  friend bool operator==(const LossSoftware&, const LossSoftware&) = default;
};

struct OptimizerSoftware {
  OptimizerKernel kernel = OptimizerKernel::foreach;
  OptimizerStates states = OptimizerStates::masters;
  bool clips = true;                    // a norm over all ranks before the optimizer
  bool logs_statistics = false;         // zeros of gradients, norm of parameters, each step
  bool clips_each_micro_batch = false;  // before its gradients are added to the others'
  bool bf16_moments = false;            // it can keep them so, in a kernel that writes weights too
  bool remainders = false;  // with bf16 moments a master is the weight and its other 16 bits
  std::int64_t moments_block = 256;     // of adam_8bit: moments that share a scale
  bool wide_embedding_moments = false;  // of adam_8bit: the embedding's are in fp32
  bool lamb() const { return kernel == OptimizerKernel::lamb; }
  friend bool operator==(const OptimizerSoftware&, const OptimizerSoftware&) = default;
};

struct DataSoftware {
  // What it can run, and how it takes part in data parallelism: see framework_rules.hpp.
  DataKinds kinds = all_data_kinds;
  DataKinds pipeline_kinds = all_data_kinds;  // of them, with pipeline stages
  bool use_megatron_fsdp = false;             // Megatron's flag: zero2 and zero3 as well
  DataKinds reduce_each{DataParallel::zero2, DataParallel::zero3};  // for each micro-batch, unasked
  bool reduce_each_in_pipeline = false;                             // ... with stages as well
  FlatParameters flat_parameters = FlatParameters::fsdp2;
  bool gather_each_tensor = false;       // a message for each tensor, the device empty before it
  bool explicit_prefetch = true;         // the host issues the next unit's gather before this unit
  bool reduce_copy_compute = false;      // FSDP2: reduce copy-in on the compute stream (not in 2.3)
  std::int64_t bucket_bytes = 25 << 20;  // of gradients; the first bucket of a step: 1 MiB
  std::int64_t bucket_bytes_per_rank = 1;  // at least that times the ranks that share it
  bool gradient_overlap = true;            // ddp, zero1: buckets are reduced while backward runs
  bool gather_overlap = false;  // zero1: parameters are gathered while the next forward runs
  ZeroExchange exchange = ZeroExchange::slices;  // zero1
  std::int64_t shard_group = 0;                  // zero1: ranks that share one copy unasked; 0: all
  bool gather_whole = false;       // zero1: all parameters in one collective, not by buckets
  bool reduce_scatter = true;      // zero1: reduce-scatter; false: all-reduce, then slice
  bool autocast = false;           // ddp, zero1: fp32 weights, cast in every forward
  bool widened_reduction = false;  // gradients stay in 16 bits, are widened to be reduced
  bool reducer_buckets = false;    // torch DDP's reducer keeps all gradients once more, in 16 bits
  bool embedding_unit = false;     // FSDP: the embedding is a unit, head and last norm another

  bool owners() const { return exchange == ZeroExchange::owner; }
  bool fsdp1() const { return flat_parameters == FlatParameters::fsdp1; }
  friend bool operator==(const DataSoftware&, const DataSoftware&) = default;
};

struct TensorSoftware {
  bool cuts_layers = true;        // has tensor and context parallelism
  bool overlap = false;           // backward collectives of tensor parallelism under the wgrad GEMM
  TensorOverlaps overlaps{};      // with the products that they feed or empty: that it can run
  bool regathers_inputs = false;  // eager: backward gathers a product's cut input again
  friend bool operator==(const TensorSoftware&, const TensorSoftware&) = default;
};

struct PipelineSoftware {
  Schedules schedules{Schedule::gpipe, Schedule::one_f_one_b};  // that it runs
  StageSplit stage_split = StageSplit::blocks;  // how stages share the layers unasked
  bool sync = false;                // the host waits for every exchange (Megatron default)
  bool interleaved_overlap = true;  // virtual stages: exchanges beside compute (Megatron 2023-10)
  bool scatter_gather = false;      // tensor ranks send 1/t each and gather it (Megatron 2021-2022)
  std::int64_t buffers = 0;         // micro-batches kept, times the stages; 0: those in flight
  friend bool operator==(const PipelineSoftware&, const PipelineSoftware&) = default;
};

struct MemorySoftware {
  Allocator allocator = Allocator::caching;
  bool expandable = false;   // PyTorch's segments grow and shrink by pages
  bool lazy_modules = true;  // CUDA loads kernels as they are called (from 11.7 on)
  friend bool operator==(const MemorySoftware&, const MemorySoftware&) = default;
};

/// What CUDA graphs replay in the place of single launches: nothing; of each layer all up to the
/// exchange between experts (attention, router; a dense layer whole); all of a step.
enum class Graphs : std::uint8_t { none, layers, iteration };

struct HostSoftware {
  Graphs graphs = Graphs::none;
  bool step_sync = true;               // it reads the loss or the gradient norm once a step
  bool launch_blocking = false;        // it waits for each kernel: CUDA_LAUNCH_BLOCKING=1
  bool collective_checks = false;      // hosts meet before each: TORCH_DISTRIBUTED_DEBUG=DETAIL
  bool collectives_hold_core = false;  // no overlap: collectives and copies on compute's lane
  double factor = 1.0;                 // of the times of calls below: in a step over in a hot loop
  Duration launch_kernel{};            // its time per kernel launch
  Duration forward_call{};             // more of it where Python launches: in forward
  Duration module_call{};              // per product or attention of a layer and pass, beside that
  Duration rng_fork{};                 // per attention and forward, unless the sequence is cut
  Duration gradient_hook{};            // per parameter tensor and backward
  Duration launch_collective{};        // per collective call
  Duration event_call{};               // per record or wait
  Duration unit_overhead{};            // per FSDP unit and pass (hooks)
  Duration step_overhead{};            // per step outside the model (data loader, logging)
  friend bool operator==(const HostSoftware&, const HostSoftware&) = default;
};

struct Software {
  std::string framework = "pytorch-fsdp2";
  std::string version = "2.3";
  std::string nccl = "2.20.5";  // that users of this version run; empty: not known
  Fusion fusion = Fusion::eager;
  bool composite_blocks = false;  // layer norm and GELU of operators in fp32, joined by XLA alone
  bool deterministic = false;     // every new tensor is filled before it is written (torch 2.1)
  bool recompute_stops = false;   // full recompute ends before the layer's last product (torch 2.1)
  bool reentrant_recompute = false;  // full recompute runs a backward of its own (torch, default)
  SelectiveRecompute selective = SelectiveRecompute::attention_core;
  bool keeps_exchanges = true;  // recompute by operators keeps what all-to-alls leave
  NormSoftware norm;
  ProductSoftware products;
  AttentionSoftware attention;
  ExpertSoftware experts;
  LossSoftware loss;
  OptimizerSoftware optimizer;
  DataSoftware data;
  TensorSoftware tensor;
  PipelineSoftware pipeline;
  MemorySoftware memory;
  HostSoftware host;

  bool eager() const { return fusion == Fusion::eager; }
  bool compiled() const { return fusion == Fusion::compiled; }
  bool fused() const { return fusion == Fusion::fused; }
  bool own() const { return fusion == Fusion::own; }
  /// k and v are copied for every q head before the core (Llama reference, torchtitan to 2026-01).
  bool repeats_kv() const { return eager() && attention.repeats_kv; }
  /// Backward keeps a rank's part of a cut input, and gathers it again: Megatron. DTensor keeps it
  /// gathered.
  bool keeps_cut_inputs() const { return fused(); }
  bool regathers_inputs() const { return keeps_cut_inputs() || tensor.regathers_inputs; }
  /// Its forward and backward are one kernel each, in the compute dtype.
  bool loss_is_one_kernel() const { return loss.fused || compiled() || own(); }
  friend bool operator==(const Software&, const Software&) = default;
};

/// Recompute keeps what a list of operators names, by the plan's word or by what the software
/// means.
inline bool operators_again(const ParallelPlan& plan, const Software& software) {
  return plan.recompute == Recompute::operators ||
         (plan.recompute == Recompute::selective &&
          software.selective == SelectiveRecompute::operators);
}

}  // namespace stepcast::workloads
