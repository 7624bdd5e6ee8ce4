// Every name that stepcast reports, once: its key in JSON and HDF5, what it means and, of a number,
// its unit and how to take it from an answer. Text, JSON, HDF5 and `explain` all read this table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/study/answer.hpp"
#include "sim/study/point_row.hpp"

namespace stepcast::sim {

struct Metric {
  std::string_view key;  // "exposed_communication_s.tensor": the path in the JSON object
  std::string_view meaning;
  std::string_view formula{};  // empty: nothing is computed
  std::string_view source{};   // where the definition or the model comes from; empty: ours
  std::string_view unit{};     // as in the HDF5 attribute; empty for counts, text and objects
  std::string_view heading{};  // short name in tables
  // NaN where an answer does not have it; neither of texts and objects.
  double (*of_step)(const StepReport&) = nullptr;
  double (*of_collective)(const CollectiveReport&) = nullptr;

  /// A whole number, rather than a share or a quantity.
  bool counts() const { return unit.empty() && key != "mfu" && key != "p_fits"; }
};

/// All names, in the order of the JSON object.
std::span<const Metric> explanations();
const Metric* find_explanation(std::string_view key);
/// `stepcast explain METRIC`
std::string explanation_text(const Metric& explanation);

/// Of them the numbers.
std::span<const Metric> metrics();

/// Tokens that a run with [failures] takes in on a day; the band joins those of step and goodput.
/// Without [failures] not a number.
struct TokensPerDay {
  double mean, low, high;
};
TokensPerDay tokens_per_day(const StepReport& report);
const Metric* find_metric(std::string_view key);

/// None for a refused plan and for a metric that such an answer does not have.
std::optional<double> value_of(const Metric& metric, const Answer& answer);
std::optional<double> value_of(const Metric& metric, const PointRow& row);

/// The name of the FLOP convention behind model_tflops_per_gpu and mfu.
std::string_view flop_convention(const workloads::TransformerShape&);

}  // namespace stepcast::sim
