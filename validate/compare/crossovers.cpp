#include "validate/compare/crossovers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/arithmetic.hpp"
#include "engine/units_text.hpp"
#include "sim/files/names.hpp"

namespace stepcast::validate {
namespace {

constexpr auto to_the_left = sim::TextTable::Align::left;
constexpr double close_enough = 0.25;

std::vector<double> scored_errors(const std::vector<CrossoverResult>& results) {
  std::vector<double> out;
  for (const CrossoverResult& one : results)
    if (one.scored()) out.push_back(std::abs(one.error()));
  return out;
}

std::string error_text(const CrossoverResult& one) {
  return one.predicted ? fmt::format("{:+.1f} %", 100 * one.error()) : "never";
}

}  // namespace

double CrossoverResult::error() const {
  if (!predicted) return std::numeric_limits<double>::infinity();
  return *predicted / crossover.bytes - 1;
}

std::vector<CrossoverResult> compare_crossovers(const std::vector<calibrate::Crossover>& points,
                                                const sim::Catalogue& catalogue,
                                                const std::string& nccl) {
  const auto facts = catalogue.nccl(nccl, "--nccl");
  const auto tuning = std::make_shared<const sim::NcclTuning>(facts.tuning);
  std::vector<CrossoverResult> out;
  for (const calibrate::Crossover& point : points)
    out.push_back({point, calibrate::CrossoverCase(point, tuning).predicted(facts.constants)});
  return out;
}

std::optional<double> median_error(const std::vector<CrossoverResult>& results) {
  std::vector<double> errors = scored_errors(results);
  if (errors.empty()) return std::nullopt;
  return upper_median(errors);
}

sim::ToldSection told(const std::string& file, const std::vector<CrossoverResult>& results) {
  sim::ToldSection out;
  const std::vector<double> errors = scored_errors(results);
  const auto close = std::ranges::count_if(errors, [](double e) { return e <= close_enough; });
  out.say(
      fmt::format("Crossovers of {}: {} points, {} scored", file, results.size(), errors.size()));
  out.say("Two protocols take equally long there: the tuner's measured choice changes. The others");
  out.say("are bounds. The model's constants are fitted on these points among others.");
  out.say();
  sim::TextTable table{{"line", "line"},
                       {"node", "node", to_the_left},
                       {"collective", "kind", to_the_left},
                       {"from", "from", to_the_left},
                       {"to", "to", to_the_left},
                       {"ranks", "ranks"},
                       {"tuner", "stated_bytes"},
                       {"model", "predicted_bytes"},
                       {"error", "error"},
                       {"", "scored", to_the_left}};
  for (const CrossoverResult& one : results) {
    const calibrate::Crossover& c = one.crossover;
    const auto predicted =
        one.predicted ? std::optional(static_cast<double>(one.predicted->value)) : std::nullopt;
    const auto error = one.predicted ? std::optional(one.error()) : std::nullopt;
    table.row({{std::to_string(c.line), c.line},
               c.node.name,
               sim::word_for(sim::collective_names, c.kind),
               std::string(sim::name_of(c.from)),
               std::string(sim::name_of(c.to)),
               {std::to_string(c.shape.ranks), c.shape.ranks},
               {to_text(c.bytes), c.bytes.value},
               {one.predicted ? to_text(*one.predicted) : "-", predicted},
               {error_text(one), error},
               sim::kept(c.scored, c.scored ? "" : "a bound")});
  }
  out.table("rows", std::move(table));
  out.say();
  if (const auto median = median_error(results))
    out.say(fmt::format("{} of {} within {:.0f} %, median error {:.1f} %", close, errors.size(),
                        100 * close_enough, 100 * *median));
  out.keep("summary/points", results.size());
  out.keep("summary/scored", errors.size());
  out.keep("summary/within_25_percent", close);
  out.keep("summary/median_ape", median_error(results));
  return out;
}

}  // namespace stepcast::validate
