#include "workloads/step/weight_casts.hpp"

#include "workloads/pieces/operand_piece.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
bool keeps_weight_copies(const StepInputs& in) { return in.software.fused() && !in.sharded(); }

WeightCasts weight_casts(const StepInputs& in, KernelTable& table, const AlikeLayers& layer) {
  const Precision& p = in.precision;
  WeightCasts out;
  if (p.recipe == Recipe::none || layer.kind.plain) return out;
  const bool reruns = in.plan.recompute == Recompute::full && in.plan.recompute_every == 1;
  const bool apart = in.sharded() || quantizes_again(in.software);
  for (const ParameterTensor& tensor : layer.tensors) {
    if (!quantized(tensor)) continue;
    const auto add = [&](std::vector<std::uint32_t>& to, const std::vector<CastPass>& passes) {
      for (const CastPass& pass : passes)
        to.push_back(table.pass("layer." + tensor.name + ".weight." + std::string(pass.name),
                                KernelFamily::quantize, quantized_dtype(p), pass.bytes));
    };
    const auto casts = [&](OperandCopies copies) {
      return cast_passes(p, OperandRole::weight, copies, tensor.elements);
    };
    if (gathers_narrow(p)) {  // what remains is a transpose, if anything
      add(keeps_weight_copies(in) ? out.once : out.backward, transpose_passes(p, tensor.elements));
    } else if (keeps_weight_copies(in)) {
      add(out.once, casts({}));
    } else if (apart) {
      add(out.forward, casts({.columns = false}));
      add(out.backward, casts({.rows = false}));
    } else {
      add(out.forward, casts({}));
    }
  }
  if (reruns) out.backward.insert(out.backward.begin(), out.forward.begin(), out.forward.end());
  return out;
}

}  // namespace stepcast::workloads
