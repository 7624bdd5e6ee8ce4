#include "workloads/optimizer_calls.hpp"

#include <algorithm>
#include <array>

namespace stepcast::workloads {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Launches of one torch foreach pass over tensor lists: each launch takes at most 320 blocks of
/// 65,536 elements and a number of tensors that falls with the lists read (ATen
/// MultiTensorApply.cuh, from memory).
std::int64_t launches(std::int64_t elements, std::int64_t tensors, int lists) {
  constexpr std::int64_t elements_per_launch = 320 * 65536;
  constexpr std::array<std::int64_t, 5> tensors_per_launch{110, 64, 48, 36, 30};
  return std::max({std::int64_t{1}, ceil_div(elements, elements_per_launch),
                   ceil_div(tensors, tensors_per_launch[static_cast<std::size_t>(lists - 1)])});
}

struct Pass {
  const char* name;
  std::int64_t bytes;  // per element
  int lists;           // tensor lists read or written
};

/// foreach AdamW in fp32 (torch _multi_tensor_adamw), 80 bytes a parameter in 8 passes.
constexpr std::array<Pass, 8> foreach_adamw{{
    {"adamw.decay", 8, 1},       // p *= 1 - lr wd
    {"adamw.moment1", 12, 2},    // m = lerp(m, g): read m, g, write m
    {"adamw.moment2", 8, 1},     // v *= beta2
    {"adamw.square", 12, 2},     // v += (1 - beta2) g g: read v, g, write v
    {"adamw.root", 8, 2},        // sqrt(v): read, write a new one
    {"adamw.correct", 8, 1},     // divided by the bias correction
    {"adamw.epsilon", 8, 1},     // + eps
    {"adamw.parameter", 16, 3},  // p += step m / root: read p, m, root, write p
}};

class Tail {
 public:
  Tail(const StepInputs& in, KernelTable& table, Calls& calls, const StageParameters& stage)
      : in_(in),
        table_(table),
        calls_(calls),
        elements_(optimizer_elements(in, stage)),
        tensors_(in.software.fusion == Fusion::fused ? 1 : stage.tensors()) {}

  void unscale();
  void clip();
  void update();

 private:
  void pass(const Pass& p) {
    const std::int64_t n = launches(elements_, tensors_, p.lists);
    const std::uint32_t index =
        table_.pass(p.name, KernelFamily::optimizer, Dtype::fp32, ceil_div(p.bytes * elements_, n));
    for (std::int64_t i = 0; i < n; ++i) calls_.kernel(compute, index);
  }
  void small(const char* name) {  // on one number, or one per tensor
    calls_.kernel(compute, table_.pass(name, KernelFamily::optimizer, Dtype::fp32, 8 * tensors_));
  }
  void world_all_reduce(const char* name) {
    if (in_.plan.ranks() == 1) return;
    calls_.join(compute, world_slot,
                table_.index_of(Collective{name, CollectiveKind::all_reduce, GroupKind::world,
                                           Dtype::fp32, Bytes(4)}));
  }

  const StepInputs& in_;
  KernelTable& table_;
  Calls& calls_;
  std::int64_t elements_, tensors_;
};

/// fp16: gradients are unscaled in place (read 4, write 4) and checked; the host reads the flag.
void Tail::unscale() {
  if (!in_.precision.loss_scaling) return;
  pass({"gradients.unscale", 8, 1});
  world_all_reduce("gradients.found_inf");
  calls_.host_wait(calls_.record(compute));
}

/// Norm of every tensor (read 4), then of the norms, summed over all ranks; gradients scaled (read
/// 4, write 4). Replicated gradients need no sum over the data group: plain ddp has no collective
/// here; with tensor or pipeline degrees its model-parallel groups are taken as the world's.
void Tail::clip() {
  if (!in_.software.clip_gradients) return;
  pass({"gradients.norm", 4, 1});
  small("gradients.norm.total");
  const bool whole_on_every_rank =
      in_.plan.data == DataParallel::ddp && in_.plan.tensor == 1 && in_.plan.pipeline == 1;
  if (!whole_on_every_rank && in_.plan.ranks() > 1) {
    world_all_reduce("gradients.norm.reduce");
    calls_.mark();
  }
  // Megatron's host reads the norm here (clip_grads.py:93-130).
  if (in_.software.fusion == Fusion::fused && in_.software.step_sync)
    calls_.host_wait(calls_.record(compute));
  small("gradients.norm.factor");
  pass({"gradients.scale", 8, 1});
}

/// Fused AdamW: read p, g, m, v, write p, m, v: 28 bytes.
void Tail::update() {
  if (in_.software.optimizer == OptimizerKernel::foreach) {
    for (const Pass& p : foreach_adamw) pass(p);
    return;
  }
  pass({"adamw.fused", 28, 4});
}

}  // namespace

std::int64_t optimizer_elements(const StepInputs& in, const StageParameters& stage) {
  if (in.plan.data == DataParallel::ddp) return stage.elements();
  const std::int64_t n = in.plan.shards();
  return stage.layers * ceil_div(elements_of(stage.layer), n) +
         ceil_div(elements_of(stage.root), n);
}

void write_optimizer(const StepInputs& in, KernelTable& table, Calls& calls,
                     const StageParameters& stage) {
  Tail tail(in, table, calls, stage);
  tail.unscale();
  tail.clip();
  tail.update();
  if (in.sharded() || in.software.autocast || in.precision.compute == Dtype::fp32) return;
  // 16-bit weights beside the fp32 master: read 4, write 2.
  const std::int64_t e = bytes_per_element(in.precision.compute);
  calls.kernel(compute, table.pass("adamw.cast", KernelFamily::pointwise, in.precision.compute,
                                   (4 + e) * optimizer_elements(in, stage)));
}

}  // namespace stepcast::workloads
