// What one rank has of a layer of experts and of a micro-batch: tokens, the rows that its experts
// take, widths. Every rank is taken as the fullest: the others wait for it.
#pragma once

#include <cstdint>

#include "workloads/pieces/piece.hpp"

namespace stepcast::workloads {

struct ExpertSizes {
  explicit ExpertSizes(const StepInputs&);

  std::int64_t tokens;     // T, of the rank at the router
  std::int64_t per_token;  // k
  std::int64_t all;        // E, experts of the layer
  std::int64_t experts;    // of the rank
  std::int64_t sent;       // rows that the rank sends: T k, or as many as experts have room for
  std::int64_t rows;       // R, that the rank's experts take
  std::int64_t most;       // rows that may come: where all tokens choose them
  std::int64_t model;      // h
  std::int64_t hidden;     // of a row that experts take: h, or the width of their latent tensor
  std::int64_t ffn;        // inner width of the rank's part of an expert
  std::int64_t shared;     // of the shared experts
  std::int64_t element;    // bytes of an activation
  double fullest;          // R over the mean of all ranks

  std::int64_t rows_of_expert() const { return (rows + experts - 1) / experts; }
  std::int64_t row_bytes() const { return element * hidden; }
  std::int64_t model_bytes() const { return element * tokens * model; }  // A
  std::int64_t token_bytes() const { return tokens * row_bytes(); }   // A, unless rows are narrower
  std::int64_t sent_bytes() const { return sent * row_bytes(); }      // k A
  std::int64_t wide_sent_bytes() const { return 4 * sent * hidden; }  // in fp32
  std::int64_t taken_bytes() const { return rows * row_bytes(); }     // inputs of the experts
  std::int64_t inner_bytes() const { return element * rows * ffn; }   // F
  std::int64_t wide_inner_bytes() const { return 4 * rows * ffn; }    // the same in fp32
};

/// Experts take as many rows whatever comes, so that nobody asks how many.
bool pads_to_capacity(const StepInputs&);
/// Tokens that find their expert full are dropped.
bool drops_tokens(const StepInputs&);

}  // namespace stepcast::workloads
