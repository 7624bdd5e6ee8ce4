// Linear layers under tensor parallelism: the GEMMs of forward, input gradient and weight gradient,
// and the collectives around them (Megatron-LM, 2019). Column parallel: output cut, the input
// gradient is summed over the group. Row parallel: input cut, the output is summed.
#pragma once

#include <string>
#include <vector>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

struct Linear {
  std::string name;    // "layer.attention.q"
  std::string tensor;  // "attention.q"
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = false;
  bool low = false;         // its operands are of the recipe's type
  bool norm_casts = false;  // the norm before it has quantized its input
  std::int64_t rows = 0;    // tokens that it is applied to; 0: all of the context rank
};

using Linears = std::vector<Linear>;

/// `linears` share one input. With sequence parallel the input is gathered first.
void write_column_forward(PieceWriter&, const std::string& name, const Linears& linears);
/// Input gradients, their sum and its reduction over the group; weight gradients. With
/// tensor_overlap the collectives run under the GEMMs.
void write_column_backward(PieceWriter&, const std::string& name, const ParameterTensors& unit,
                           const Linears& linears);

/// Weights that every tensor rank holds whole, applied to its own tokens: no collectives.
void write_whole_forward(PieceWriter&, const Linears& linears);
void write_whole_backward(PieceWriter&, const std::string& name, const ParameterTensors& unit,
                          const Linears& linears);

void write_row_forward(PieceWriter&, const Linear&);
void write_row_backward(PieceWriter&, const ParameterTensors& unit, const Linear&);

}  // namespace stepcast::workloads
