#include "sim/scenario/goal_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <vector>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/nccl_names.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/member_writer.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* all_lists = "lists";
// In a median are lists "on demand", "contract" and "bought"; the others are asked for by name.
constexpr std::string_view price_kinds[] = {"on demand", "spot",   "reserved", "contract",
                                            "bought",    "server", "estimate"};

/// One file of prices/.
struct PriceList {
  std::string kind;               // "on demand", "reserved", "spot", "contract" or "bought"
  double years = 0, upfront = 0;  // of a contract
  Listed found{};
  bool has_gpu = false;
  bool to_buy() const { return kind == "bought" || kind == "server"; }
};

PriceList price_list(const Catalogue& catalogue, const std::string& name, const std::string& gpu,
                     const std::string& where) {
  TableReader table(catalogue.entry("prices", name, where), "");
  PriceList out;
  out.kind = table.required("kind", table.text("kind"));
  if (std::ranges::find(price_kinds, out.kind) == std::end(price_kinds))
    table.fail("kind", "'" + out.kind + "' is no kind of price",
               fmt::format("one of {}", fmt::join(price_kinds, ", ")));
  const auto source = table.required("source", table.text("source"));
  const auto date = table.required("date", table.text("date"));
  table.value("note");
  if (out.kind == "contract") {
    out.years = table.required("years", table.number("years"));
    out.upfront = table.number("upfront").value_or(0);
  }
  TableReader gpus(*table.required("gpus", table.table("gpus")), "gpus");
  table.finish();
  out.has_gpu = gpus.value(gpu) != nullptr;
  if (!out.has_gpu) return out;
  out.found = out.to_buy() ? price_range<Usd>(gpus, gpu) : price_range<UsdPerHour>(gpus, gpu);
  out.found.source = source;
  out.found.date = date;
  return out;
}

/// The median of several, between the least and the most; the oldest date.
std::optional<Listed> median_of(std::vector<Listed> found, const std::vector<std::string>& names) {
  if (found.empty()) return std::nullopt;
  std::ranges::sort(found, {}, &Listed::value);
  const std::size_t half = found.size() / 2;
  Listed out = found[half];
  if (found.size() % 2 == 0) out.value = (found[half - 1].value + found[half].value) / 2;
  if (found.size() == 1) return out;
  for (const Listed& one : found) {
    out.low = std::min(out.low, one.low);
    out.high = std::max(out.high, one.high);
    out.date = std::min(out.date, one.date);
  }
  out.source = fmt::format("median of {} lists ({})", found.size(), fmt::join(names, ", "));
  return out;
}

std::optional<Listed> listed(const Catalogue& catalogue, const std::string& list,
                             const std::string& gpu, const std::string& where, bool bought) {
  if (list != all_lists) {
    const PriceList one = price_list(catalogue, list, gpu, where);
    if (one.to_buy() != bought)
      throw InputError(where, "'" + list + "' has prices of kind '" + one.kind + "'",
                       bought ? "capex takes a list of kind 'bought'" : "price takes one of rent");
    return one.has_gpu ? std::optional(one.found) : std::nullopt;
  }
  std::vector<Listed> found;
  std::vector<std::string> names;
  for (const std::string& name : catalogue.names("prices")) {
    const PriceList one = price_list(catalogue, name, gpu, where);
    if (!one.has_gpu || one.kind != (bought ? "bought" : "on demand")) continue;
    found.push_back(one.found);
    names.push_back(name);
  }
  return median_of(std::move(found), names);
}

bool begins_with_digit(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text.front())) != 0 ||
                           text.front() == '-' || text.front() == '.');
}

/// "2.5 USD/h", 2.5, or a list's name.
template <class Q>
struct Priced {
  std::optional<Q> stated;  // in the scenario itself
  std::string list;         // else
};

template <class Q>
Priced<Q> priced(TableReader& table, const char* key) {
  const TomlValue* value = table.value(key);
  if (value == nullptr) return {std::nullopt, all_lists};
  if (value->text() == nullptr) {
    const auto number = table.number(key);
    return {Q(*number), {}};
  }
  if (!begins_with_digit(*value->text())) return {std::nullopt, *value->text()};
  return {table.quantity<Q>(key), {}};
}

void check_order(const TableReader& table, const char* key, double low, double value, double high) {
  if (low <= value && value <= high) return;
  const std::string name(key);
  table.fail(name, fmt::format("'{}' is not between {}_low and {}_high", name, name, name));
}

void check_date(const TableReader& table, const char* key, const std::string& date) {
  const auto shape = [&](std::size_t i) {
    return i == 4 || i == 7 ? date[i] == '-'
                            : std::isdigit(static_cast<unsigned char>(date[i])) != 0;
  };
  bool good = date.empty() || date.size() == 4 || date.size() == 7 || date.size() == 10;
  for (std::size_t i = 0; good && i < date.size(); ++i) good = shape(i);
  if (!good) table.fail(key, table.label(key) + " is no date", "e.g. 2026-11-23, 2026-11 or 2026");
}

/// Of a price that the scenario does not state itself.
void take_list(Cost& cost, const std::optional<Listed>& found) {
  if (!found) return;
  cost.source = found->source;
  cost.date = found->date;
}

TomlValue written_cost(const Cost& cost) {
  TomlValue out = written(toml_table({}), [&](auto&& visit) { visit_cost(cost, visit); });
  if (cost.price.value > 0) out.set("price", toml_text(to_exact_text(cost.price), {}));
  if (cost.capex.value > 0) out.set("capex", toml_text(to_exact_text(cost.capex), {}));
  return out;
}

}  // namespace

template <class Q>
Listed price_range(TableReader& table, const std::string& key) {
  const TomlValue& value = *table.required(key, table.value(key));
  if (value.array() == nullptr) {
    const double only = table.quantity<Q>(key)->value;
    return {only, only, only, {}, {}};
  }
  const auto texts = table.texts(key);
  const char* hint = "[low, usual, high], or one value";
  if (texts->size() != 3) table.fail(key, table.label(key) + " is no range", hint);
  const auto at = [&](std::size_t i) { return parse<Q>((*texts)[i], value.where).value; };
  const Listed out{at(0), at(1), at(2), {}, {}};
  if (!(0 < out.low && out.low <= out.value && out.value <= out.high))
    table.fail(key, table.label(key) + " is not in order", hint);
  return out;
}
template Listed price_range<Usd>(TableReader&, const std::string&);
template Listed price_range<UsdPerHour>(TableReader&, const std::string&);

std::optional<Listed> listed_rent(const Catalogue& catalogue, const std::string& list,
                                  const std::string& gpu, const std::string& where) {
  return listed(catalogue, list, gpu, where, false);
}

std::optional<Listed> listed_capex(const Catalogue& catalogue, const std::string& list,
                                   const std::string& gpu, const std::string& where) {
  return listed(catalogue, list, gpu, where, true);
}

std::vector<ListedContract> listed_contracts(const Catalogue& catalogue, const std::string& gpu,
                                             const std::string& where) {
  struct OfYears {
    std::vector<double> upfront;
    std::vector<Listed> found;
    std::vector<std::string> names;
  };
  std::map<double, OfYears> by_years;
  for (const std::string& name : catalogue.names("prices")) {
    const PriceList one = price_list(catalogue, name, gpu, where);
    if (!one.has_gpu || one.kind != "contract") continue;
    OfYears& of = by_years[one.years];
    of.upfront.push_back(one.upfront);
    of.found.push_back(one.found);
    of.names.push_back(name);
  }
  std::vector<ListedContract> out;
  for (auto& [years, of] : by_years) {
    std::ranges::sort(of.upfront);
    out.push_back({years, of.upfront[(of.upfront.size() - 1) / 2],
                   *median_of(std::move(of.found), of.names)});
  }
  return out;
}

void read_run_goal(TableReader& table, Scenario& scenario) {
  RunGoal& goal = scenario.goal;
  read_members(table, false, [&](auto&& visit) { visit_run_goal(goal, visit); });
  const int asked = (goal.tokens.value > 0) + (goal.samples.value > 0) + (goal.days > 0);
  if (asked > 1)
    table.fail(goal.days > 0 ? "days" : "samples",
               "more than one of 'tokens', 'samples' and 'days' in [run_goal]",
               "one of them says how much is trained");
  for (const char* key : {"tokens", "samples", "days"})
    if (asked == 0 && table.value(key) != nullptr)
      table.fail(key, table.label(key) + " is zero: nothing is trained", "e.g. \"15T\" tokens");
  const double sequences = static_cast<double>(scenario.global_batch);
  const double tokens = sequences * static_cast<double>(scenario.batch.sequence);
  for (const auto& [key, wanted, step] :
       {std::tuple("tokens", goal.tokens, tokens), std::tuple("samples", goal.samples, sequences)})
    if (wanted.value > 0 && wanted.value < step)
      table.fail(key,
                 fmt::format("{} is {}: less than the {} of one step", table.label(key),
                             to_exact_text(wanted), to_exact_text(Count(step))),
                 "e.g. \"15T\" tokens, \"300B\"");
  if (goal.goodput > 1)
    table.fail("goodput", "'goodput' in [run_goal] is more than 1", "it is a share of the time");
  check_date(table, "today", goal.today);
  table.finish();
}

void read_cost(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  Cost& cost = scenario.cost;
  const std::string& gpu = scenario.node.gpu.name;
  const auto rent = priced<UsdPerHour>(table, "price");
  const auto capex = priced<Usd>(table, "capex");
  const bool own = table.flag("own").value_or(false);
  // Lists are read for what is asked: a run's dollars.
  if (!rent.stated && (scenario.goal.on() || table.value("price") != nullptr) && !own) {
    const auto found = listed_rent(catalogue, rent.list, gpu, table.where("price"));
    if (!found && rent.list != all_lists)
      table.fail("price", "'" + rent.list + "' has no price of " + gpu, "state one: 2.5 USD/h");
    if (found) {
      cost.price = UsdPerHour(found->value);
      cost.price_low = UsdPerHour(found->low);
      cost.price_high = UsdPerHour(found->high);
    }
    take_list(cost, found);
  }
  if (rent.stated) cost.price = cost.price_low = cost.price_high = *rent.stated;
  if (!capex.stated && own) {
    const auto found = listed_capex(catalogue, capex.list, gpu, table.where("capex"));
    if (!found)
      table.fail("capex", "no list says what " + gpu + " costs to buy",
                 "state it, node and network included: capex = \"46000 USD\"");
    cost.capex = Usd(found->value);
    cost.capex_low = Usd(found->low);
    cost.capex_high = Usd(found->high);
    take_list(cost, found);
  }
  if (capex.stated) cost.capex = cost.capex_low = cost.capex_high = *capex.stated;
  TableReader usual(catalogue.entry("sites", "usual", "catalogue"), "");
  cost.electricity = usual.required("electricity", usual.quantity<UsdPerKwh>("electricity"));
  read_members(table, false, [&](auto&& visit) { visit_cost(cost, visit); });
  if (table.value("price") != nullptr && rent.stated) table.note_change("price");
  if (table.value("capex") != nullptr) table.note_change("capex");
  check_order(table, "price", cost.price_low.value, cost.price.value, cost.price_high.value);
  check_order(table, "capex", cost.capex_low.value, cost.capex.value, cost.capex_high.value);
  if (cost.utilisation > 1)
    table.fail("utilisation", "'utilisation' in [cost] is more than 1", "it is a share of hours");
  check_date(table, "date", cost.date);
  table.finish();
}

namespace {

/// Of a country's name as of its code, in any case; names join what is `known`.
std::string country_code(const std::string& word, TableReader& grids,
                         std::vector<std::string>& known) {
  std::string code = word;
  for (const TomlEntry& entry : *grids.required("names", grids.table("names"))->table()) {
    known.push_back(*entry.value.text());
    if (same_word(word, entry.key) || same_word(word, known.back())) code = entry.key;
  }
  return code;
}

}  // namespace

void read_site(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  Site& site = scenario.site;
  TableReader usual(catalogue.entry("sites", "usual", "catalogue"), "");
  site.pue = *usual.number("pue");
  site.carbon = *usual.quantity<GramsPerKwh>("carbon");
  site.source = usual.text("carbon_source").value_or("");
  site.date = usual.text("carbon_date").value_or("");
  const TomlValue* carbon = table.value("carbon");
  if (carbon != nullptr && (carbon->text() == nullptr || begins_with_digit(*carbon->text()))) {
    site.carbon = *table.quantity<GramsPerKwh>("carbon", Range::not_negative);
    site.source = site.date = "";
    table.note_change("carbon");
  } else if (carbon != nullptr) {
    TableReader grids(catalogue.entry("grids", "countries", "catalogue"), "");
    const TomlValue& countries = *grids.required("carbon", grids.table("carbon"));
    std::vector<std::string> known;
    for (const TomlEntry& entry : *countries.table()) known.push_back(entry.key);
    const std::string code = country_code(*carbon->text(), grids, known);
    TableReader values(countries, "carbon");
    const auto found = values.quantity<GramsPerKwh>(code);
    if (!found)
      table.fail("carbon", "no grid '" + *carbon->text() + "'", suggestion(*carbon->text(), known));
    site.carbon = *found;
    site.source = code + ", " + grids.text("source").value_or("");
    site.date = grids.text("date").value_or("");
    table.note_change("carbon");
  }
  read_members(table, false, [&](auto&& visit) { visit_site(site, visit); });
  if (site.pue < 1)
    table.fail("pue", "'pue' in [site] is less than 1", "the machines' own power is part of it");
  check_date(table, "date", site.date);
  table.finish();
}

void read_power(TableReader& table, Scenario& scenario) {
  read_members(table, false, [&](auto&& visit) { visit_power(scenario, visit); });
  table.finish();
}

bool asks_for_costs(const Scenario& s) {
  return s.goal.on() || s.cost.price.value > 0 || s.cost.capex.value > 0;
}

void add_goal_tables(TomlValue& document, const Scenario& s) {
  const TomlValue empty = toml_table({});
  if (asks_for_costs(s)) {
    TomlValue goal = written(empty, [&](auto&& visit) { visit_run_goal(s.goal, visit); });
    for (const char* key : {"tokens", "samples"})  // of the three the one that was asked
      if (*goal.find(key)->text() == "0") goal.erase(key);
    if (s.goal.days == 0) goal.erase("days");
    document.set("run_goal", goal);
    document.set("cost", written_cost(s.cost));
    TomlValue site = written(empty, [&](auto&& visit) { visit_site(s.site, visit); });
    site.set("carbon", toml_text(to_exact_text(s.site.carbon), {}));
    document.set("site", site);
  }
  const bool held = s.node.gpu.power_cap.value > 0 || s.node.gpu.clock.value > 0;
  if (held || asks_for_costs(s))
    document.set("power", written(empty, [&](auto&& visit) { visit_power(s, visit); }));
}

}  // namespace stepcast::sim
