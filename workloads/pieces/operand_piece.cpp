#include "workloads/pieces/operand_piece.hpp"

namespace stepcast::workloads {
namespace {

void write(PieceWriter& w, const std::string& name, const std::vector<CastPass>& passes) {
  for (const CastPass& pass : passes) w.quantize(name + "." + std::string(pass.name), pass.bytes);
}

}  // namespace

void write_casts(PieceWriter& w, const std::string& name, OperandRole role, OperandCopies copies,
                 std::int64_t elements, bool shared) {
  if (!w.low()) return;
  const Precision& p = w.in().precision;
  for (const CastPass& pass : cast_passes(p, role, copies, elements)) {
    write(w, name, {pass});
    if (shared && current(p) && pass.name == "amax")
      w.collective(name + ".amax", CollectiveKind::all_reduce, Dtype::fp32, 4);
  }
}

void write_swizzles(PieceWriter& w, const std::string& name, std::int64_t elements) {
  std::vector<CastPass> passes = cast_passes(w.in().precision, OperandRole::input, {}, elements);
  std::erase_if(passes, [](const CastPass& pass) { return pass.name != "swizzle"; });
  if (w.low()) write(w, name, passes);
}

void write_transposes(PieceWriter& w, const std::string& name, std::int64_t elements) {
  if (w.low()) write(w, name, transpose_passes(w.in().precision, elements));
}

bool quantizes_again(const Software& software) { return software.compiled(); }

bool norms_quantize(const StepInputs& in) {
  const Recipe recipe = in.precision.recipe;
  return in.software.fused() && (recipe == Recipe::fp8_delayed || recipe == Recipe::mxfp8);
}

/// mxfp8 both copies; per tensor the rows, which backward transposes.
std::int64_t norm_output_bytes(const PieceWriter& w) {
  if (!w.low() || !norms_quantize(w.in())) return w.sizes().local_bytes();
  const std::int64_t copies = scaled_per_tensor(w.in().precision) ? 1 : 2;
  return copies * copy_bytes(w.in().precision, OperandRole::input, w.sizes().local_elements());
}

}  // namespace stepcast::workloads
