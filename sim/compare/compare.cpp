#include "sim/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/compare/changes.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/scenario/noise_keys.hpp"
#include "sim/scenario/what_if.hpp"

namespace stepcast::sim {
namespace {

std::string shown(const std::string& value) { return value.empty() ? "-" : value; }

std::vector<std::string> lines_of(const std::vector<Change>& changes) {
  std::vector<std::string> out;
  for (const Change& change : changes)
    out.push_back(fmt::format("{}  {} -> {}", change.key, shown(change.from), shown(change.to)));
  return out;
}

/// What a result says of its scenario, by path. What follows from other keys is left out.
std::map<std::string, std::string> told_by(const Side& side) {
  std::map<std::string, std::string> out;
  for (const char* key : {"model", "gpu"})
    if (const auto text = side.row.text(key)) out[key] = *text;
  for (const char* table : {"cluster", "plan", "changed"})
    for (const auto& [path, value] : side.row.leaves(table)) out[path] = value;
  out.erase("plan.data_degree");
  out.erase("plan.local_batch");
  return out;
}

std::vector<std::string> told_differences(const Side& from, const Side& to) {
  const auto a = told_by(from), b = told_by(to);
  auto keys = a;
  keys.insert(b.begin(), b.end());
  std::vector<std::string> out;
  for (const auto& [key, value] : keys) {
    const auto in_a = a.find(key), in_b = b.find(key);
    const std::string before = in_a == a.end() ? "-" : in_a->second,
                      after = in_b == b.end() ? "-" : in_b->second;
    if (before != after) out.push_back(fmt::format("{}  {} -> {}", key, before, after));
  }
  return out;
}

std::int64_t step_ps(const Side& side) { return std::llround(*side.step_s() * 1e12); }

/// Between two scenarios that are known.
void attribute_way(Difference& way, const Comparison& c, Runner& runner, const OrderDraw& draw) {
  const Side &from = c.sides[way.from], &to = c.sides[way.to];
  const DocumentPair documents = documents_of(*from.scenario, *to.scenario);
  const std::vector<Change> changes = changes_between(documents);
  way.keys = lines_of(changes);
  if (changes.empty() || !to.answered()) return;
  if (changes.size() > most_changes) {
    way.why_not = fmt::format("{} keys differ, more than {}", changes.size(), most_changes);
    return;
  }
  std::vector<NamedChange> named;
  for (const Change& change : changes)
    named.push_back({change.key, change.from, change.to,
                     [change](TomlValue& document) { make(change, document); }});
  const auto outcomes = [&](const auto& all) { return runner.outcomes(all); };
  auto found = attribute(documents.from, named, outcomes, draw);
  if (found && found->from_ps == step_ps(from))
    way.attribution = std::move(found);
  else
    way.why_not = fmt::format("{}'s scenario gives another step today: {}", from.label,
                              found ? to_text(Duration(found->from_ps)) : "none");
}

void add_way(Comparison& c, std::size_t to, Runner& runner, const OrderDraw& draw) {
  const Side &a = c.sides[c.base()], &b = c.sides[to];
  Difference way{c.base(), to};
  if (a.scenario && b.scenario) {
    attribute_way(way, c, runner, draw);
  } else if (!a.measured && !b.measured && b.answered()) {
    way.keys = told_differences(a, b);
    way.why_not = "a result alone cannot be run again; the folder of run --out can";
  } else {
    return;
  }
  c.ways.push_back(std::move(way));
}

/// The scenario with its choices made, and what it leaves out as an array.
TomlValue settled(const TomlValue& document, const Scenario& scenario) {
  TomlValue out = document;
  if (scenario.plan.tensor > 1 || find_path(out, "plan.tensor") != nullptr)
    set_path(out, "plan.tensor", {scenario.plan.tensor, document.where});
  if (scenario.plan.pipeline > 1 || find_path(out, "plan.pipeline") != nullptr)
    set_path(out, "plan.pipeline", {scenario.plan.pipeline, document.where});
  if (find_path(out, "run.without") == nullptr) return out;
  TomlValue::Array words;
  for (const std::string& word : words_of(scenario.run.without))
    words.push_back(toml_text(word, document.where));
  set_path(out, "run.without", {std::move(words), document.where});
  return out;
}

void append_text(TomlValue& document, const char* path, const std::string& text,
                 const std::string& where) {
  TomlValue::Array items;
  if (const TomlValue* found = find_path(document, path)) {
    if (found->array() != nullptr) items = *found->array();
    if (found->text() != nullptr) items.push_back(*found);
  }
  const bool known = std::ranges::any_of(
      items, [&](const TomlValue& item) { return item.text() != nullptr && *item.text() == text; });
  if (!known) items.push_back(toml_text(text, where));
  set_path(document, path, {std::move(items), where});
}

std::vector<Asked> asked_of_changes(const TomlValue& base, const std::string& name,
                                    const std::vector<NamedChange>& changes) {
  std::vector<Asked> out;
  out.push_back({name, base});
  TomlValue all = base;
  for (const NamedChange& change : changes) {
    out.push_back({change.name, base});
    change.make(*out.back().document);
    change.make(all);
  }
  if (changes.size() > 1) out.push_back({"all together", std::move(all)});
  return out;
}

}  // namespace

Comparison compare_sides(std::vector<Asked> asked, Runner& runner, const OrderDraw& draw) {
  Comparison out{.sides = runner.sides(std::move(asked))};
  out.order = runner.order();
  for (std::size_t i = 0; i < out.sides.size(); ++i)
    if (i != out.base()) add_way(out, i, runner, draw);
  return out;
}

Comparison compare_changes(const TomlValue& document, const std::string& name,
                           const std::vector<NamedChange>& changes, About about, Runner& runner,
                           const OrderDraw& draw) {
  if (changes.size() > most_changes)
    throw InputError(document.where, fmt::format("more than {} changes", most_changes));
  std::vector<Asked> alone;
  alone.push_back({name, document});
  const std::vector<Side> without = runner.sides(std::move(alone));
  if (const auto reason = without[0].row.unanswered()) throw NoFeasiblePlan(*reason);
  const TomlValue base = settled(document, *without[0].scenario);
  Comparison out{.about = about, .sides = runner.sides(asked_of_changes(base, name, changes))};
  out.order = runner.order();
  Difference way{0, out.sides.size() - 1};
  const auto outcomes = [&](const auto& all) { return runner.outcomes(all); };
  way.attribution = attribute(base, changes, outcomes, draw);
  if (!way.attribution) way.why_not = "all together have no answer";
  out.ways.push_back(std::move(way));
  return out;
}

std::vector<NamedChange> what_if_changes(const std::vector<std::string>& texts) {
  constexpr const char* where = "--what-if";
  std::vector<NamedChange> out;
  for (const std::string& text : texts) {
    if (read_what_ifs(text, where).empty())
      throw InputError(where, "'" + text + "' changes nothing", "write \"gpu.tensor_peak x2\"");
    out.push_back({.name = text, .make = [=](TomlValue& document) {
                     append_text(document, "what_if", text, where);
                   }});
  }
  return out;
}

std::vector<NamedChange> ablation_changes(const std::string& words) {
  constexpr const char* where = "--without";
  TomlValue table = toml_table(where);
  table.set("without", toml_text(words, where));
  TableReader reader(table, "run");
  std::vector<NamedChange> out;
  const Ablation asked =
      words == "all" ? Ablation{true, true, true, true, true} : read_without(reader);
  for (const std::string& word : words_of(asked))
    out.push_back({.name = word, .make = [=](TomlValue& document) {
                     append_text(document, "run.without", word, where);
                   }});
  if (out.empty()) throw InputError(where, "leaves nothing out", "name an effect, or all");
  return out;
}

}  // namespace stepcast::sim
