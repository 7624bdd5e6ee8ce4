#include "sim/design/goal.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* usual_fabrics[] = {"rail-optimized", "rail-only", "fat-tree"};
constexpr double usual_oversubscription[] = {1, 2, 4};
constexpr Tenure all_ways[] = {Tenure::rent, Tenure::contract, Tenure::own};

/// A value or a list of values.
std::vector<TomlValue> list_of(TableReader& table, const char* key) {
  const TomlValue* value = table.value(key);
  if (value == nullptr) return {};
  std::vector<TomlValue> out;
  if (const auto* array = value->array())
    out.assign(array->begin(), array->end());
  else
    out.push_back(*value);
  if (out.empty()) table.fail(key, table.label(key) + " is empty", "leave it out, or name one");
  return out;
}

std::vector<std::int64_t> counts_of(TableReader& table, const char* key) {
  std::vector<std::int64_t> out;
  for (const TomlValue& one : list_of(table, key)) {
    const auto* number = std::get_if<std::int64_t>(&one.data);
    if (number == nullptr || *number < 1)
      table.fail(key, table.label(key) + " is no list of numbers from 1 on", "e.g. [16, 32, 64]");
    out.push_back(*number);
  }
  return out;
}

std::vector<double> factors_of(TableReader& table, const char* key) {
  std::vector<double> out;
  for (const TomlValue& one : list_of(table, key)) {
    const auto* whole = std::get_if<std::int64_t>(&one.data);
    const auto* real = std::get_if<double>(&one.data);
    out.push_back(whole != nullptr ? static_cast<double>(*whole) : real != nullptr ? *real : 0);
    if (out.back() < 1)
      table.fail(key, table.label(key) + " is no list of numbers from 1 on", "e.g. [1, 2, 4]");
  }
  return out;
}

std::vector<Tenure> ways_of(TableReader& table) {
  std::vector<Tenure> out;
  for (const TomlValue& one : list_of(table, "ways")) {
    const std::string word = one.text() == nullptr ? "" : *one.text();
    const auto named = [&](Tenure way) { return word == word_of(way); };
    const auto found = std::ranges::find_if(all_ways, named);
    if (found == std::end(all_ways))
      table.fail("ways", "'" + word + "' in 'ways' is no way to come by a machine",
                 "\"rent\", \"contract\" or \"own\"");
    out.push_back(*found);
  }
  return out;
}

/// USD and power may be zero: then the answer is what is the least.
DesignLimits limits_of(TableReader& table) {
  DesignLimits out;
  if (const auto days = table.number("days")) out.days = *days;
  if (const auto usd = table.quantity<Usd>("budget", Range::not_negative)) out.usd = usd->value;
  if (const auto usd = table.quantity<Usd>("capital", Range::not_negative))
    out.capital = usd->value;
  if (const auto power = table.quantity<Watts>("power", Range::not_negative))
    out.watts = power->value;
  if (const auto racks = table.integer("racks", 0)) out.racks = static_cast<double>(*racks);
  return out;
}

Accounting accounting_of(TableReader& table) {
  Accounting out;
  const std::string counts = table.text("budget_counts").value_or("cash");
  if (counts != "cash" && counts != "payback")
    table.fail("budget_counts", "'" + counts + "' in 'budget_counts' is no kind of money",
               "\"cash\": all that is paid, \"payback\": the run's share of it");
  out.payback = counts == "payback";
  const auto a_month = [&](const char* key) {
    const auto usd = table.quantity<Usd>(key, Range::not_negative);
    return usd ? usd->value : 0;
  };
  out.storage = a_month("storage");
  out.staff = a_month("staff");
  out.spares = table.number("spares").value_or(0);
  if (out.spares < 0 || out.spares > 1)
    table.fail("spares", table.label("spares") + " is no share", "0.03: three nodes in a hundred");
  return out;
}

void check_document(const TomlValue& document) {
  const auto refuse = [&](const char* key, const char* what, const char* hint) {
    if (const TomlValue* found = find_path(document, key))
      throw InputError(found->where, what, hint);
  };
  const char* all = "a design tries all of them";
  refuse("plan", "[plan] in a goal: the plan is searched", "[space] says what is tried");
  refuse("cluster.node", "'node' in [cluster] of a goal", "nodes in [design] says what is tried");
  refuse("cluster.nodes", "'nodes' in [cluster] of a goal", "sizes in [design] says how many");
  refuse("cluster.gpus", "'gpus' in [cluster] of a goal", "sizes in [design] says how many nodes");
  refuse("cluster.fabric", "'fabric' in [cluster] of a goal", "fabrics in [design] says which");
  refuse("cost.own", "'own' in [cost] of a goal", "ways = [\"own\"] in [design]");
  refuse("cost.capex", "'capex' in [cost] of a goal: the bill says it", "parts in [design]");
  refuse("batch.local", "'local' in [batch] of a goal: the batch grows with the machine",
         "global = N: sequences of a step");
  refuse("collective", "[collective] in a goal", "a design is for a training run");
  refuse("noise", "[noise] in a goal", "machines are compared without it");
  refuse("sweep", "[sweep] in a goal", all);
  refuse("run_goal.days", "'days' in [run_goal] of a goal", "days in [design] is the deadline");
  if (find_path(document, "run_goal.tokens") == nullptr &&
      find_path(document, "run_goal.samples") == nullptr)
    throw InputError(document.where, "a goal says how much is trained",
                     "[run_goal] tokens = \"2T\", or samples");
}

}  // namespace

DesignGoal read_design_goal(TomlValue document) {
  const TomlValue* design = document.find("design");
  if (design == nullptr || design->table() == nullptr)
    throw InputError(document.where, "has no [design]", "[design] names nodes and what limits");
  check_document(document);
  DesignGoal out;
  const TomlValue asked = *design;
  TableReader table(asked, "design");
  out.limits = limits_of(table);
  out.nodes = list_of(table, "nodes");
  if (out.nodes.empty()) table.missing("nodes", "e.g. [\"dgx-h100\", \"dgx-h200\"]");
  out.fabrics = list_of(table, "fabrics");
  if (out.fabrics.empty())
    for (const char* name : usual_fabrics) out.fabrics.push_back(toml_text(name, table.where()));
  out.oversubscription = factors_of(table, "oversubscription");
  if (out.oversubscription.empty())
    out.oversubscription.assign(std::begin(usual_oversubscription),
                                std::end(usual_oversubscription));
  out.nics = counts_of(table, "nics");
  out.sizes = counts_of(table, "sizes");
  const auto most = table.integer("most_gpus");
  if (most && !out.sizes.empty())
    table.fail("most_gpus", "both 'sizes' and 'most_gpus' in [design]", "give one of the two");
  out.most_gpus = most.value_or(out.most_gpus);
  out.ways = ways_of(table);
  if (out.ways.empty()) out.ways.assign(std::begin(all_ways), std::end(all_ways));
  out.accounting = accounting_of(table);
  out.quotes = table.text("quotes").value_or("");
  out.parts = table.text("parts").value_or("bought-2024");
  if (std::ranges::find(out.ways, Tenure::own) == out.ways.end() &&
      out.limits.capital < DesignLimits::none)
    table.fail("capital", "'capital' in [design] limits what is bought, and nothing is",
               "budget is what the run may cost");
  table.finish();
  document.erase("design");
  if (const TomlValue* space = document.find("space")) out.space = *space;
  document.erase("space");
  document.erase("reference");
  out.document = std::move(document);
  return out;
}

}  // namespace stepcast::sim
