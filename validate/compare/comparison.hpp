// Measured rows beside what is predicted for them: what every comparison of this folder makes and
// what report.hpp prints. Knows no model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/confidence/case.hpp"

namespace stepcast::validate {

struct ComparedRow {
  std::int64_t line = 0;  // in the file
  std::string gpu;        // as the row names it
  std::string kind, what;
  std::vector<std::string> group;  // cells under Comparison::group_headings
  Bytes bytes{};                   // of a collective
  std::string source;              // of a collective: the document or repository
  sim::Case forecast;              // likewise: what kind of forecast it is
  Duration measured{};             // 0: the row states no time
  std::optional<Duration> predicted;
  std::optional<Duration> nccl_estimate;  // by which NCCL itself would choose
  std::string provenance, rests_on;       // of the prediction
  std::string not_scored;                 // why; empty: the row counts
  bool within_reading_error = false;      // of its source: counts as no error

  bool scored() const { return not_scored.empty(); }
  /// predicted / measured - 1; both must be there.
  double error() const {
    return within_reading_error ? 0.0 : seconds(*predicted) / seconds(measured) - 1;
  }
};

struct Comparison {
  std::string file;
  std::string title;
  std::string left_out;            // what a prediction did not see, for JSON: "source", "nothing"
  std::vector<std::string> notes;  // what the reader must know about the figures
  std::vector<std::string> group_headings;
  std::vector<ComparedRow> rows;
  std::size_t other_kinds = 0;  // rows of the file that this comparison is not about
};

}  // namespace stepcast::validate
