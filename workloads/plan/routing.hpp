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

/// Rows that experts with room for `room` from each source take, over those that are sent: of all,
/// and of the fullest of `parts` equal parts over their mean without a limit.
struct CappedRows {
  double kept = 1.0, fullest = 1.0;
};
/// `tokens` of each of `sources` ranks, whose draws differ where tokens are random; a mean over
/// `draws`. Of many sources eight stand for all.
CappedRows capped_rows(const Routing&, const ExpertShape&, std::int64_t parts, std::int64_t tokens,
                       std::int64_t sources, std::int64_t room, std::int64_t draws);

}  // namespace stepcast::workloads
