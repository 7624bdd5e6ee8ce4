#include "workloads/step/expert_layer.hpp"

#include <algorithm>
#include <iterator>

#include "engine/check.hpp"
#include "workloads/pieces/expert_piece.hpp"
#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/weight_casts.hpp"

namespace stepcast::workloads {
namespace {

/// The experts' tensors of a layer that has them.
AlikeLayers expert_layer_of(const StepInputs& in) {
  for (const LayerKind kind : layer_kinds(in.shape, in.precision))
    if (kind.experts())
      return {kind, layer_tensors(in.shape, in.plan, in.software.products.packed, kind), 1};
  throw BrokenPromise("a model with experts");
}

/// Those of its experts and shared experts: attention does not run.
ParameterTensors expert_tensors_of(const AlikeLayers& layer) {
  ParameterTensors out;
  std::ranges::copy_if(layer.tensors, std::back_inserter(out), [](const ParameterTensor& t) {
    return t.expert || t.name.starts_with("shared.");
  });
  return out;
}

/// The benchmark's is of fp32 and as long; its time is not measured.
void hide_launches(const StepInputs& in, KernelTable& table, Calls& calls) {
  constexpr std::int64_t n = 8192;
  Kernel product;
  product.name = before_layer_forward;
  product.family = KernelFamily::gemm;
  product.dtype = in.precision.compute;
  product.m = product.n = n, product.k = 8 * n;
  product.flops = Flops(2.0 * static_cast<double>(n * n * product.k));
  product.bytes = Bytes(2 * (2 * n * product.k + n * n));
  calls.kernel(compute, table.index_of(product));
}

}  // namespace

StepProgram make_expert_layer_program(const StepInputs& in) {
  KernelTable table;
  Calls calls(false, in.plan.expert.shared_overlap);
  const AlikeLayers layer = expert_layer_of(in);
  const WeightCasts casts =
      weight_casts(in, table, {layer.kind, expert_tensors_of(layer), layer.count});
  const ExpertSizes sizes(in);
  const auto no_hook = [](std::uint32_t) {};

  calls.host_work(step_call);
  hide_launches(in, table, calls);
  for (const auto* kernels : {&casts.once, &casts.forward})
    for (const std::uint32_t kernel : *kernels) calls.forward_kernel(compute, kernel);
  PieceWriter forward(in, table, layer.kind);
  forward.from_python(true);
  write_experts_forward(forward);
  calls.replay(forward.take(), no_hook);
  calls.forward_kernel(compute, table.pass(before_layer_backward, KernelFamily::pointwise,
                                           in.precision.compute, sizes.token_bytes()));
  for (const std::uint32_t kernel : casts.backward) calls.kernel(compute, kernel);
  PieceWriter backward(in, table, layer.kind);
  write_experts_backward(backward, layer.tensors);
  calls.replay(backward.take(), no_hook);
  calls.host_wait(calls.record(compute));

  StepProgram out;
  out.roles.push_back(calls.take());
  out.roles[0].num_lanes = num_lanes;
  out.kernels = table.take_kernels();
  out.collectives = table.take_collectives();
  return out;
}

}  // namespace stepcast::workloads
