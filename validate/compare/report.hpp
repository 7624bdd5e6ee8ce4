// A comparison as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "validate/compare/comparison.hpp"
#include "validate/compare/score.hpp"

namespace stepcast::validate {

struct Summary {
  std::size_t rows = 0;                                   // of the compared kinds
  std::optional<Score> all, from_1mib, below_1mib, nccl;  // nccl: NCCL's own estimate
};

/// Of the rows that count.
Summary summary_of(const Comparison& comparison);

/// Tables by group, the worst rows, and every row that does not count under its reason.
std::string report_text(const Comparison& comparison);

/// {"summary": {...}, "rows": [...]}; shares, not percent; times in microseconds. "predicted" in
/// the summary counts the rows that are scored. null where there is nothing to say.
std::string report_json(const Comparison& comparison);

}  // namespace stepcast::validate
