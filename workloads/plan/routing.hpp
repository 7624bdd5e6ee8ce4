// Where a router sends tokens: rows of every expert in a draw, and what of it decides a step, the
// rows of the fullest rank. Deterministic from the seed, on any machine. Knows no kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan/plan.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// Rows of every expert, of `tokens` tokens that each go to experts.per_token of them; another
/// `draw`, another layer or micro-batch. Their sum is tokens x per_token.
std::vector<double> expert_rows(const Routing&, const ExpertShape&, std::int64_t tokens,
                                std::uint64_t draw);

/// The largest of `parts` equal parts of the experts, rows over the mean; a mean over `draws`.
double fullest_part(const Routing&, const ExpertShape&, std::int64_t parts, std::int64_t tokens,
                    std::int64_t draws);

}  // namespace stepcast::workloads
