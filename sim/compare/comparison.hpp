// Forecasts, results and measurements side by side: figures, where the differences lie, what they
// come from. Knows no options and runs nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/compare/attribution.hpp"
#include "sim/compare/side.hpp"
#include "sim/confidence/order.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {

/// What leads from one side to another.
struct Difference {
  std::size_t from = 0, to = 0;
  std::vector<std::string>
      keys{};  // that differ, where nothing more is known: "plan.tensor 1 -> 2"
  std::optional<Attribution> attribution{};
  std::string why_not{};  // there is none
};

enum class About : std::uint8_t { sides, what_ifs, ablations };

struct Comparison {
  About about = About::sides;
  std::vector<Side> sides{};
  std::vector<Difference> ways{};  // from the base to another
  std::optional<Order> order{};    // how sure it is which of two plans is faster

  /// The side that the others are compared with: the first that has an answer. None: the first.
  std::size_t base() const;
  /// The steps of a side are of so many times the base's tokens; 1 where that is not known.
  double tokens_ratio(std::size_t side) const;
  bool same_tokens() const;
  /// Of the base's tokens.
  std::optional<double> comparable_step_s(std::size_t side) const;
  /// That the one forecast faster than the base is faster when measured, or the other way round;
  /// none where a side was measured, has no answer, or is no machine that could be.
  std::optional<double> order_right(std::size_t side) const;
};

/// One of the disjoint parts of a step, or a part of one.
struct StepPart {
  std::string_view key, heading;
  bool inside = false;  // of the part before it
};
/// Beside a measured trace only those that a trace can tell.
std::vector<StepPart> parts_of(const Comparison& comparison);
/// Those of forecasts and those of traces.
std::vector<StepPart> every_part();
/// Of the base's tokens, in seconds.
std::optional<double> part_s(const Comparison& comparison, std::size_t side, const StepPart& part);

/// What has to be known to read the figures: other tokens, another model, measured sides.
std::vector<std::string> notes_on(const Comparison& comparison);

/// The way from the first side to the last, a bar for each change, or for each part of the step
/// where no changes are known; of several sides a bar from each to the next.
Chart difference_chart(const Comparison& comparison);
/// A row a side: step, change, throughput, memory, what a whole run comes to.
TextTable sides_table(const Comparison& comparison);
/// Sides, parts of the step, and what the difference comes from.
ToldSection told_of(const Comparison& comparison);
/// What programs get.
const Form<Comparison>& comparison_form();
nlohmann::ordered_json compare_schema();

}  // namespace stepcast::sim
