#include "workloads/pieces/mtp_piece.hpp"

#include <algorithm>

#include "workloads/pieces/ends_piece.hpp"
#include "workloads/pieces/layer_piece.hpp"
#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/norm_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

constexpr const char* input_norms[] = {"mtp.norm_embedding", "mtp.norm_hidden"};

Linear projection(const PieceWriter& w) {
  const std::int64_t h = w.sizes().hidden;
  return {.name = "mtp.projection",
          .tensor = "mtp.projection",
          .in = 2 * h,
          .out = h / w.in().plan.tensor};
}

bool marks(const ParameterTensors& unit, const char* name) {
  return std::ranges::find(unit, name, &ParameterTensor::name) != unit.end();
}

/// Looked up once more. Where the stage holds the embedding for this alone its gradient is complete
/// after it; where the model's own layers feed on it too, later.
Piece embedding_again(const StepInputs& in, KernelTable& table, const ParameterTensors& unit) {
  Piece piece = embedding_backward(
      in, table, marks(unit, "embedding") ? unit : embedding_tensors(in.shape, in.plan.tensor));
  if (in.plan.pipeline == 1 || in.shape.tied_embeddings)
    std::erase_if(piece, [](const Action& a) { return a.kind == Action::Kind::gradient; });
  return piece;
}

}  // namespace

Piece mtp_forward(const StepInputs& in, KernelTable& table) {
  PieceWriter w(in, table);
  w.from_python(true);
  w.append(embedding_forward(in, table));
  for (const char* name : input_norms) write_inner_norm_forward(w, name, hidden_rows(w));
  w.pass("mtp.concatenate", copy, 4 * w.sizes().local_bytes());
  write_column_forward(w, "mtp.projection", {projection(w)});
  if (w.split()) w.all_gather_hidden("mtp.projection.gather");  // columns side by side
  w.append(layer_forward(in, table, mtp_kind(in.shape, in.precision)));
  write_inner_norm_forward(w, "mtp.final_norm", hidden_rows(w));
  return w.take();
}

Piece mtp_backward(const StepInputs& in, KernelTable& table, const ParameterTensors& unit) {
  PieceWriter w(in, table);
  write_inner_norm_backward(w, "mtp.final_norm", unit, "mtp.final_norm", hidden_rows(w));
  w.append(layer_backward(in, table, unit, mtp_kind(in.shape, in.precision)));
  // Each rank takes its columns of the gradient; with cut sequences they are gathered first.
  if (w.sequence_parallel()) w.all_gather_hidden("mtp.projection.gradient");
  write_column_backward(w, "mtp.projection", unit, {projection(w)});
  w.pass("mtp.concatenate.backward", copy, 4 * w.sizes().local_bytes());
  for (const char* name : input_norms)
    write_inner_norm_backward(w, name, unit, name, hidden_rows(w));
  w.append(embedding_again(in, table, unit));
  w.pass("mtp.gradient_sum", pointwise, 3 * w.sizes().local_bytes());
  return w.take();
}

}  // namespace stepcast::workloads
