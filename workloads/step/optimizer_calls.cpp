#include "workloads/step/optimizer_calls.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/arithmetic.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/plan/optimizer.hpp"
#include "workloads/step/muon_calls.hpp"
#include "workloads/step/optimizer_passes.hpp"

namespace stepcast::workloads {
namespace {

/// Launches of one torch foreach pass over tensor lists: each launch takes at most 320 blocks of
/// 65,536 elements and a number of tensors that falls with the lists read (ATen
/// MultiTensorApply.cuh, from memory).
std::int64_t launches(std::int64_t elements, std::int64_t tensors, int lists) {
  constexpr std::int64_t elements_per_launch = 320 * 65536;
  constexpr std::array<std::int64_t, 5> tensors_per_launch{110, 64, 48, 36, 30};
  return std::max({std::int64_t{1}, ceil_div(elements, elements_per_launch),
                   ceil_div(tensors, tensors_per_launch[static_cast<std::size_t>(lists - 1)])});
}

/// Pieces in which an overlapped update on the host goes on: enough for the first copy out and the
/// last one back to be short (chosen, 2026; Megatron takes the parameters one by one).
constexpr std::int64_t optimizer_pieces = 16;

/// Whether weights are kept in 16 bits beside an fp32 master.
bool keeps_copy(const StepInputs& in) {
  return !in.sharded() && !in.software.data.autocast && in.precision.compute != Dtype::fp32 &&
         in.precision.masters;
}

/// Tensors that a rank's optimizer walks over. FSDP1 gives it a run of the unit's flat parameter,
/// which few of the tensors touch, and a loop leaves out the others; elsewhere every tensor has a
/// part on every rank.
std::int64_t optimizer_tensors(const StepInputs& in, const StageParameters& stage) {
  if (in.software.fused()) return 1;
  const bool few = in.sharded() && in.software.data.fsdp1() &&
                   in.software.optimizer.kernel == OptimizerKernel::per_tensor;
  if (!few) return stage.tensors();
  const auto touched = [&](const ParameterTensors& unit) -> std::int64_t {
    return unit.empty() ? 0 : 1 + (static_cast<std::int64_t>(unit.size()) - 1) / in.plan.shards();
  };
  return stage.over_layers(touched) + touched(stage.root);
}

/// Fused AdamW: read p, g, m, v, write p, m, v: 28 bytes. Megatron's precision-aware optimizer
/// reads gradients as they were reduced, keeps moments in 16 bits and writes the 16-bit weights as
/// well (Transformer Engine multi_tensor_adam; recalled, 2026): 30 with fp32 moments, 22 without.
std::int64_t fused_bytes(const StepInputs& in) {
  if (in.precision.moments == Dtype::fp32) return 28;
  const std::int64_t gradient = bytes_per_element(in.gradient_dtype());
  const std::int64_t weight = gathers_narrow(in.precision)
                                  ? 0  // written by the kernel that quantizes
                                  : bytes_per_element(in.precision.compute);
  return 8 + gradient + 8 + weight;
}

/// Weights that the recipe holds for, of an average stage: all stages meet for their scales, as
/// model-parallel groups are taken as the world's.
std::int64_t quantized_weights(const StepInputs& in) {
  if (in.precision.recipe == Recipe::none) return 0;
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < in.shape.layers; ++layer) {
    const LayerKind kind = layer_kind(in.shape, in.precision, layer);
    if (kind.plain) continue;
    const ParameterTensors tensors =
        layer_tensors(in.shape, in.plan, in.software.products.packed, kind);
    sum += std::ranges::count_if(tensors, quantized);
  }
  return ceil_div(sum, in.plan.pipeline);
}

class Tail {
 public:
  /// `stage`: its trained parameters.
  Tail(const StepInputs& in, KernelTable& table, Calls& calls, const StageParameters& stage)
      : in_(in),
        table_(table),
        calls_(calls),
        stage_(stage),
        elements_(optimizer_elements(in, stage)),
        tensors_(std::max<std::int64_t>(1, optimizer_tensors(in, stage))),
        walked_(std::max<std::int64_t>(1, in.plan.data == DataParallel::ddp
                                              ? stage.tensors()
                                              : ceil_div(stage.tensors(), in.plan.shards()))) {}

  void widen();
  void take_shards();
  bool lamb() const { return in_.software.optimizer.lamb(); }
  void unscale();
  void clip();
  void count_zeros();
  void send_to_host();
  void update();
  void write_weights();
  void take_from_host();
  void scale_operands();
  void scale_weights();
  void norm_of_parameters();

 private:
  void pass(const OptimizerPass& p) {
    const bool flat = in_.software.own();  // one buffer, one launch
    const std::int64_t n = flat ? 1 : launches(elements_, tensors_, p.lists);
    const std::uint32_t index =
        table_.pass(p.name, KernelFamily::optimizer, Dtype::fp32,
                    ceil_div(p.bytes_of(in_.precision.masters) * elements_, n));
    for (std::int64_t i = 0; i < n; ++i) calls_.kernel(compute, index);
  }
  /// One kernel for every tensor, of an average one's size.
  template <class Passes>
  void tensor_by_tensor(const Passes& passes) {
    for (std::int64_t t = 0; t < tensors_; ++t)
      for (const OptimizerPass& p : passes)
        if (const std::int64_t each = p.bytes_of(in_.precision.masters); each > 0)
          calls_.kernel(compute, table_.pass(p.name, KernelFamily::optimizer, Dtype::fp32,
                                             ceil_div(each * elements_, tensors_)));
  }
  template <class Passes>
  void all_at_once(const Passes& passes) {
    for (const OptimizerPass& p : passes) pass(p);
  }
  void adam();
  void adam_8bit();
  void sgd();
  void muon();
  /// `update` of the parameters that `chosen` names, as many as of the whole stage.
  template <class Chosen, class Update>
  void of_part(Chosen chosen, Update update);
  bool in_backward() const { return in_.plan.optimizer_in_backward; }
  void small(const char* name) {  // on one number, or one per tensor
    calls_.kernel(compute, table_.pass(name, KernelFamily::optimizer, Dtype::fp32, 8 * tensors_));
  }
  void world_all_reduce(const char* name, std::int64_t numbers = 1) {
    if (in_.plan.ranks() == 1) return;
    calls_.join(compute, GroupKind::world,
                table_.index_of(Collective{name, CollectiveKind::all_reduce, GroupKind::world,
                                           Dtype::fp32, Bytes(4 * numbers)}));
  }
  bool bf16_moments() const { return in_.precision.moments == Dtype::bf16; }

  const StepInputs& in_;
  KernelTable& table_;
  Calls& calls_;
  const StageParameters& stage_;
  std::int64_t elements_, tensors_;  // a stage of frozen ones alone walks over one of nothing
  std::int64_t on_host_ = 0;         // of the elements: updated by the host
  std::int64_t walked_;              // tensors, or pieces of them, that a loop in Python meets
};

/// Gradients that were reduced in 16 bits become the fp32 ones of the master weights: read 2, write
/// 4 (Megatron v2.6 optimizer.py, DeepSpeed stage_1_and_2.py). apex's LAMB reads them as they are.
void Tail::widen() {
  const std::int64_t e = bytes_per_element(in_.gradient_dtype());
  if (!keeps_copy(in_) || e >= 4 || lamb() || in_.software.own() || bf16_moments()) return;
  calls_.kernel(compute, table_.pass("gradients.widen", KernelFamily::pointwise, Dtype::fp32,
                                     (e + 4) * elements_));
}

/// Our trainer sums the gradients of zero1 in whole buckets, and copies its shard of each out of
/// them: read 4, write 4.
void Tail::take_shards() {
  if (!in_.software.own() || in_.plan.data != DataParallel::zero1 || in_.plan.shards() == 1) return;
  calls_.kernel(compute,
                table_.pass("gradients.shard", KernelFamily::copy, Dtype::fp32, 8 * elements_));
}

/// fp16: gradients are unscaled in place (read 4, write 4) and checked; the host reads the flag.
void Tail::unscale() {
  if (!in_.precision.loss_scaling) return;
  pass({"gradients.unscale", 8, 1});
  world_all_reduce("gradients.found_inf");
  // FusedLAMBAMP reads flag and scale on the device (DeepLearningExamples 729963d lamb_amp_opt).
  if (!lamb()) calls_.host_wait(calls_.record(compute));
}

/// Norm of every tensor (read 4), then of the norms, summed over all ranks; gradients scaled (read
/// 4, write 4). Replicated gradients need no sum over the data group: plain ddp has no collective
/// here; with tensor or pipeline degrees its model-parallel groups are taken as the world's. An
/// optimizer inside backward never has them together.
void Tail::clip() {
  if ((!in_.software.optimizer.clips && !lamb()) || in_backward()) return;
  pass({"gradients.norm", 4, 1});
  small("gradients.norm.total");
  if (in_.shape.experts.count > 0 && !in_.software.own())
    small("gradients.norm.experts");  // a sum of their own
  const bool whole_on_every_rank = in_.plan.data == DataParallel::ddp && in_.plan.tensor == 1 &&
                                   in_.plan.pipeline == 1 && in_.plan.expert.degree == 1;
  if (!whole_on_every_rank && in_.plan.ranks() > 1) {
    world_all_reduce("gradients.norm.reduce");
    calls_.mark();
  }
  // Megatron's host reads the norm here (clip_grads.py:93-130).
  if (in_.software.fused() && in_.software.host.step_sync) calls_.host_wait(calls_.record(compute));
  small("gradients.norm.factor");
  if (!lamb()) pass({"gradients.scale", 8, 1});  // LAMB's update divides by it
}

/// Megatron's --log-num-zeros-in-grad: for each tensor of gradients a comparison (read 4, write 1),
/// its sum, the difference to its size, the running total; the host reads the total
/// (core/optimizer/clip_grads.py count_zeros_fp32(), read 2026-11).
void Tail::count_zeros() {
  if (!in_.software.optimizer.logs_statistics) return;
  const std::int64_t n = ceil_div(elements_, walked_);
  const std::uint32_t kernels[] = {
      table_.pass("gradients.zeros.compare", KernelFamily::pointwise, Dtype::fp32, 5 * n),
      table_.pass("gradients.zeros.sum", KernelFamily::reduction, Dtype::fp32, n),
      table_.pass("gradients.zeros.add", KernelFamily::pointwise, Dtype::fp32, 16),
      table_.pass("gradients.zeros.add", KernelFamily::pointwise, Dtype::fp32, 16)};
  for (std::int64_t t = 0; t < walked_; ++t)
    for (const std::uint32_t kernel : kernels) calls_.forward_kernel(compute, kernel);
  world_all_reduce("gradients.zeros.reduce");
  calls_.host_wait(calls_.record(compute));
}

/// 16-bit weights beside the fp32 master: read 4, write 2, or what is gathered of them. apex writes
/// them in LAMB's last kernel, the precision-aware optimizer in its own.
void Tail::write_weights() {
  const Precision& p = in_.precision;
  scale_weights();
  if (!keeps_copy(in_) || lamb() || (bf16_moments() && !gathers_narrow(p))) return;
  const std::int64_t e = bytes_per_element(p.compute);
  std::int64_t bytes = (4 + e) * elements_;
  if (gathers_narrow(p)) {
    bytes = e * elements_of(stage_.root);
    for (const AlikeLayers& alike : stage_.kinds)
      bytes += alike.count * gathered_bytes_of(p, alike);
    bytes = 4 * elements_ + ceil_div(bytes, in_.plan.shards());
  }
  calls_.kernel(compute, table_.pass("adamw.cast", KernelFamily::pointwise, p.compute, bytes));
}

/// Weights that are kept in the recipe's type, and scaled by their largest element: it is sought in
/// the fp32 masters (read 4) and shared by all ranks, once for all weights (Megatron's
/// quantize_param_shard(); precompute_float8_dynamic_scale_for_fsdp() of torchao).
void Tail::scale_weights() {
  const Precision& p = in_.precision;
  const std::int64_t weights = quantized_weights(in_);
  if (!gathers_narrow(p) || delayed(p) || weights == 0) return;
  std::int64_t few = 0;
  for (const AlikeLayers& alike : stage_.kinds)
    few += alike.count * quantized_elements_of(p, alike);
  if (few > 0)
    calls_.kernel(compute, table_.pass("parameters.amax", KernelFamily::quantize,
                                       quantized_dtype(p), 4 * ceil_div(few, in_.plan.shards())));
  world_all_reduce("parameters.amax.reduce", weights);
}

/// Delayed scaling: the largest elements of this step's inputs, weights and gradients are shared by
/// all ranks and put into a history of 1,024 steps (Transformer Engine's DelayedScaling; read and
/// written).
void Tail::scale_operands() {
  const std::int64_t operands = 3 * quantized_weights(in_);
  if (!delayed(in_.precision) || operands == 0) return;
  constexpr std::int64_t history = 1024;
  world_all_reduce("operands.amax.reduce", operands);
  calls_.kernel(compute, table_.pass("operands.amax.update", KernelFamily::quantize,
                                     quantized_dtype(in_.precision), 8 * history * operands));
}

/// Megatron's --log-params-norm: each 16-bit tensor becomes an fp32 one (read e, write 4), then the
/// norm of all (read 4), which the host reads (training/utils.py calc_params_l2_norm(),
/// read 2026-11 in copies of it).
void Tail::norm_of_parameters() {
  if (!in_.software.optimizer.logs_statistics) return;
  const std::int64_t e = bytes_per_element(in_.precision.compute);
  const std::uint32_t cast = table_.pass("parameters.norm.cast", KernelFamily::pointwise,
                                         Dtype::fp32, (e + 4) * ceil_div(elements_, walked_));
  for (std::int64_t t = 0; t < walked_; ++t) calls_.forward_kernel(compute, cast);
  pass({"parameters.norm", 4, 1});
  world_all_reduce("parameters.norm.reduce");
  calls_.host_wait(calls_.record(compute));
}

/// What the host's processors update: gradients go out as they were reduced, each parameter's
/// update reads p, g, m, v and writes p, m, v and the weight in the compute type, which comes back
/// (ZeRO-Offload, arXiv 2101.06840; Megatron core's HybridDeviceOptimizer: recalled, 2026). Piece
/// by piece the three follow on one another; else one waits for all of the other. The GPU updates
/// its own share meanwhile; the host's thread computes, and launches nothing.
void Tail::send_to_host() {
  const OffloadPlan& offload = in_.plan.offload;
  on_host_ = static_cast<std::int64_t>(offload.optimizer * static_cast<double>(elements_));
  elements_ -= on_host_;
  if (on_host_ == 0) return;
  const std::int64_t gradient = bytes_per_element(in_.gradient_dtype());
  const std::int64_t weight = bytes_per_element(in_.precision.compute);
  const std::int64_t pieces = offload.optimizer_overlap ? optimizer_pieces : 1;
  const std::int64_t each = ceil_div(on_host_, pieces);
  const auto kernel = [&](const char* name, KernelFamily family, std::int64_t bytes) {
    return table_.pass(name, family, Dtype::fp32, bytes * each);
  };
  const std::uint32_t out = kernel("gradients.out", KernelFamily::host_copy, gradient);
  const std::uint32_t adam =
      kernel("adamw.host", KernelFamily::host_update, 24 + gradient + weight);
  const std::uint32_t back = kernel("parameters.back", KernelFamily::host_copy, weight);
  calls_.after(to_host_lane, compute);
  for (std::int64_t i = 0; i < pieces; ++i) {
    calls_.kernel(to_host_lane, out);
    calls_.after(host_lane, to_host_lane);
    calls_.kernel(host_lane, adam);
    calls_.after(from_host_lane, host_lane);
    calls_.kernel(from_host_lane, back);
  }
}

void Tail::take_from_host() {
  if (on_host_ == 0) return;
  elements_ += on_host_;
  calls_.after(compute, from_host_lane);
  calls_.host_wait(calls_.record(host_lane));
}

void Tail::adam() {
  if (in_backward()) return tensor_by_tensor(std::array{OptimizerPass{"adamw.fused", 28, 4}});
  switch (in_.software.optimizer.kernel) {
    case OptimizerKernel::foreach:
      return all_at_once(foreach_adamw);
    case OptimizerKernel::fused:
      return pass({"adamw.fused", fused_bytes(in_), 4});
    case OptimizerKernel::per_tensor:
      return tensor_by_tensor(per_tensor_adamw);
    case OptimizerKernel::lamb:
      all_at_once(fused_lamb);
      return pass({"lamb.parameter", keeps_copy(in_) ? 14 : 12, 2});
  }
  throw BrokenPromise("unknown optimizer");
}

/// Of tensors whole and of the stage's alone, since shards of all kinds are as large.
template <class Chosen, class Update>
void Tail::of_part(Chosen chosen, Update update) {
  const auto count = [&](const ParameterTensors& unit) {
    std::int64_t sum = 0;
    for (const ParameterTensor& p : unit) sum += chosen(p) ? p.elements : 0;
    return sum;
  };
  const auto number = [&](const ParameterTensors& unit) {
    return std::ranges::count_if(unit, chosen);
  };
  const double part = static_cast<double>(stage_.over_layers(count) + count(stage_.root)) /
                      static_cast<double>(std::max<std::int64_t>(1, stage_.elements()));
  const std::int64_t elements = elements_, tensors = tensors_;
  elements_ = static_cast<std::int64_t>(part * static_cast<double>(elements));
  tensors_ = std::clamp<std::int64_t>(stage_.over_layers(number) + number(stage_.root), 1, tensors);
  if (elements_ > 0) update();
  elements_ = elements, tensors_ = tensors;
}

void Tail::adam_8bit() {
  const bool wide_embedding = in_.software.optimizer.wide_embedding_moments;
  const auto narrow = [&](const ParameterTensor& p) {
    return in_8bit(p, p.elements, wide_embedding);
  };
  of_part(narrow, [&] { tensor_by_tensor(std::array{adam_8bit_pass}); });
  of_part([&](const ParameterTensor& p) { return !narrow(p); },
          [&] {
            tensor_by_tensor(std::array{OptimizerPass{"adamw.tensor", 28, 4}});
          });
}

void Tail::sgd() {
  const OptimizerKernel kernel = in_.software.optimizer.kernel;
  if (in_backward() || kernel == OptimizerKernel::per_tensor) return tensor_by_tensor(foreach_sgd);
  kernel == OptimizerKernel::fused ? pass(fused_sgd) : all_at_once(foreach_sgd);
}

void Tail::muon() {
  of_part(by_muon, [&] { write_muon(in_, table_, calls_, stage_, elements_); });
  of_part([](const ParameterTensor& p) { return !by_muon(p); }, [&] { adam(); });
}

void Tail::update() {
  switch (in_.plan.optimizer) {
    case Optimizer::adam:
      return adam();
    case Optimizer::adam_8bit:
      return adam_8bit();
    case Optimizer::adafactor:
      return tensor_by_tensor(adafactor_passes);
    case Optimizer::muon:
      return muon();
    case Optimizer::sgd:
      return sgd();
  }
  throw BrokenPromise("unknown optimizer");
}

}  // namespace

std::int64_t optimizer_elements(const StepInputs& in, const StageParameters& stage) {
  if (in.plan.data == DataParallel::ddp) return stage.elements();
  const auto shard = [&](const ParameterTensors& unit) { return shard_elements_of(unit, in.plan); };
  return stage.over_layers(shard) + shard(stage.root);
}

namespace {

/// Balancing without a loss (arXiv 2408.15664): once a step the tokens of every expert are summed
/// over all ranks of the stage, and each bias goes a little up or down (Megatron core
/// finalize_model_grads.py, recalled, 2026).
void update_expert_biases(const StepInputs& in, KernelTable& table, Calls& calls,
                          const StageParameters& stage) {
  std::int64_t biases = 0;
  for (const AlikeLayers& alike : stage.kinds)
    biases += alike.kind.experts() && in.shape.experts.score_bias
                  ? alike.count * in.shape.experts.count
                  : 0;
  if (biases == 0) return;
  const auto sum = [&](GroupKind group) {
    return table.index_of(Collective{"router.bias.counts", CollectiveKind::all_reduce, group,
                                     Dtype::fp32, Bytes(4 * biases)});
  };
  if (in.plan.tensor > 1) calls.tensor_collective(sum(GroupKind::tensor));
  if (in.plan.copies() > 1) {
    calls.after(data_lane, compute);
    calls.join(data_lane, GroupKind::data, sum(GroupKind::data));
    calls.after(compute, data_lane);
  }
  calls.kernel(compute,
               table.pass("router.bias.update", KernelFamily::router, Dtype::fp32, 12 * biases));
}

}  // namespace

void write_optimizer(const StepInputs& in, KernelTable& table, Calls& calls,
                     const StageParameters& stage) {
  update_expert_biases(in, table, calls, stage);
  std::optional<StageParameters> adapters;
  if (adapted(in.shape)) adapters = trained_of(stage);
  Tail tail(in, table, calls, adapters ? *adapters : stage);
  tail.widen();
  tail.take_shards();
  tail.unscale();
  tail.clip();
  tail.count_zeros();
  tail.send_to_host();
  tail.update();
  tail.write_weights();
  tail.take_from_host();
  tail.scale_operands();
  tail.norm_of_parameters();
}

}  // namespace stepcast::workloads
