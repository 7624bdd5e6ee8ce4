#include "sim/told/stepped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

double micro(Duration d) { return seconds(d) * 1e6; }

/// Spans from the end of one step to that of the next; the first from the start of the transfers.
std::vector<Duration> spans_of(const SteppedCollective& both) {
  std::vector<Duration> spans;
  Duration before = both.transfers_start;
  for (const Duration end : both.step_ends) {
    spans.push_back(end - before);
    before = end;
  }
  return spans;
}

std::string steps_text(const SteppedCollective& both) {
  std::vector<Duration> spans = spans_of(both);
  if (spans.empty()) return "none";
  const Duration first = spans.front();
  std::sort(spans.begin(), spans.end());
  return fmt::format("{} in {} transfers; the first {}, then {} to {}, median {}",
                     grouped(static_cast<std::int64_t>(spans.size())), grouped(both.transfers),
                     to_text(first), to_text(spans.front()), to_text(spans.back()),
                     to_text(spans[spans.size() / 2]));
}

}  // namespace

std::string stepped_text(const SteppedCollective& both) {
  TextTable table;
  table.column("stepped", "", TextTable::Align::left);
  table.column("one variable");
  table.column("stepped");
  table.column("", "", TextTable::Align::left);
  const auto add = [&](const std::string& name, Duration one, Duration stepped,
                       const std::string& reason) {
    table.sentence({name, to_text(one), to_text(stepped)}, reason);
  };
  for (const SteppedTerm& term : both.terms)
    add("  " + term.name, term.one_variable, term.stepped, term.reason);
  add("  total", both.one_variable, both.stepped, fmt::format("ratio {:.4f}", both.ratio()));
  return "\n" + table.text() + fmt::format("steps                 {}\n", steps_text(both)) +
         fmt::format("busiest link          {}, {} of the time\n", both.busiest_name,
                     percent(both.busiest_use));
}

Json stepped_json(const SteppedCollective& both) {
  Json terms = Json::array();
  for (const SteppedTerm& term : both.terms)
    terms.push_back({{"term", term.name},
                     {"one_variable_us", micro(term.one_variable)},
                     {"stepped_us", micro(term.stepped)},
                     {"reason", term.reason}});
  Json ends = Json::array();
  for (const Duration end : both.step_ends) ends.push_back(micro(end));
  return {{"one_variable_us", micro(both.one_variable)},
          {"stepped_us", micro(both.stepped)},
          {"ratio", both.ratio()},
          {"terms", terms},
          {"transfers", both.transfers},
          {"step_ends_us", ends},
          {"busiest_link", both.busiest_name},
          {"busiest_use", both.busiest_use}};
}

}  // namespace stepcast::sim
