#include "workloads/pieces/shared_expert_piece.hpp"

#include "workloads/pieces/linear_piece.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

Linears shared_up(const PieceWriter& w, const ExpertSizes& s) {
  if (!gated(w.in().shape))
    return {{"layer.shared.up", "shared.up", s.model, s.shared, false, w.low()}};
  if (w.packed())
    return {{"layer.shared.gate_up", "shared.gate_up", s.model, 2 * s.shared, false, w.low()}};
  return {{"layer.shared.gate", "shared.gate", s.model, s.shared, false, w.low()},
          {"layer.shared.up", "shared.up", s.model, s.shared, false, w.low()}};
}
Linear shared_down(const PieceWriter& w, const ExpertSizes& s) {
  return {"layer.shared.down", "shared.down", s.shared, s.model, false, w.low()};
}
std::int64_t shared_bytes(const PieceWriter& w, const ExpertSizes& s) {
  return s.element * w.sizes().tokens * s.shared;
}

}  // namespace

void shared_up_forward(PieceWriter& w, const ExpertSizes& s) {
  write_column_forward(w, "layer.shared.up", shared_up(w, s));
  const std::int64_t f = shared_bytes(w, s);
  if (!gated(w.in().shape)) return w.pass("layer.shared.gelu", activation, 2 * f);
  if (!w.eager()) return w.pass("layer.shared.swiglu", activation, 3 * f);
  w.pass("layer.shared.silu", pointwise, 2 * f);
  w.pass("layer.shared.multiply", pointwise, 3 * f);
}

void shared_down_forward(PieceWriter& w, const ExpertSizes& s) {
  write_row_forward(w, shared_down(w, s));
  if (!w.in().shape.experts.shared_gate) return;
  w.gemm("layer.shared.weight.forward", s.tokens, 1, s.model);
  w.pass("layer.shared.sigmoid", pointwise, 2 * s.element * s.tokens);
  w.pass("layer.shared.weigh", pointwise, 2 * s.model_bytes());
}

void shared_down_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit) {
  if (w.in().shape.experts.shared_gate) {
    w.pass("layer.shared.weigh.backward", pointwise, 4 * s.model_bytes());
    w.pass("layer.shared.sigmoid.backward", pointwise, 3 * s.element * s.tokens);
    w.gemm("layer.shared.weight.dgrad", s.tokens, s.model, 1);
    if (!w.frozen()) w.weight_gradient("layer.shared.weight.wgrad", 1, s.model, s.tokens);
    w.gradient(unit, "shared.weight");
  }
  write_row_backward(w, unit, shared_down(w, s));
}

void shared_up_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit) {
  const std::int64_t f = shared_bytes(w, s);
  if (!gated(w.in().shape)) {
    w.pass("layer.shared.gelu.backward", activation, 3 * f);
  } else if (w.eager()) {
    w.pass("layer.shared.multiply.backward_up", pointwise, 3 * f);
    w.pass("layer.shared.multiply.backward_gate", pointwise, 3 * f);
    w.pass("layer.shared.silu.backward", pointwise, 3 * f);
  } else {
    w.pass("layer.shared.swiglu.backward", activation, 5 * f);
  }
  write_column_backward(w, "layer.shared.up", unit, shared_up(w, s));
}

void shared_forward(PieceWriter& w, const ExpertSizes& s) {
  shared_up_forward(w, s);
  shared_down_forward(w, s);
}

bool overlaps_shared(const PieceWriter& w) {
  return has_shared(w) && w.in().plan.expert.shared_overlap;
}

}  // namespace stepcast::workloads
