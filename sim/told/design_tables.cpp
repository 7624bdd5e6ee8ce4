// The parts of a design's answer that text and page both have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/units_text.hpp"
#include "sim/told/design.hpp"
#include "sim/told/goal_text.hpp"

namespace stepcast::sim {
namespace {

constexpr const char *unchanged = "the same", *nothing_meets = "nothing meets the goal";

void machine_columns(TextTable& table) {
  table.column("machine", "", TextTable::Align::left);
  for (const char* heading : {"days", "million USD", "at the meter", "racks", "MWh", "t CO2e"})
    table.column(heading);
}

TableCells machine_cells(const DesignTold& told, const DesignChoice& c) {
  const WholeRun& run = c.outcome.run;
  return {offer_words(told, c.offer),
          {banded(run.days), run.days.value},
          {banded(c.outcome.money, 1e6), c.outcome.usd / 1e6},
          {to_text(Watts(c.outcome.watts)), c.outcome.watts},
          counted(told.designer.racks(c.offer)),
          rounded(c.outcome.mwh),
          rounded(run.tonnes_co2.value)};
}

std::string amount(const std::string& limit, double value) {
  if (limit == "deadline") return three_digits(value) + " days";
  if (limit == "power") return to_text(Watts(value));
  if (limit == "racks") return three_digits(value) + " racks";
  return to_text(Usd(value));
}

/// USD a unit of a limit: "41.0 thousand USD a day".
std::string shadow_price(const LimitMove& move, double usd) {
  const double change = move.to - move.from;
  if (move.limit == "deadline") return to_text(Usd(usd / change)) + " a day";
  if (move.limit == "power") return to_text(Usd(usd / change * 1e6)) + " a MW";
  if (move.limit == "racks") return to_text(Usd(usd / change)) + " a rack";
  return fmt::format("{} USD a USD", three_digits(usd / change));
}

std::string change_words(const DesignTold& told, const DesignChoice& before,
                         const std::optional<DesignChoice>& after, Aim aim, const LimitMove& move) {
  if (!after) return nothing_meets;
  const double change = after->outcome.of(aim) - before.outcome.of(aim);
  if (change == 0) return unchanged;
  std::string out =
      aim == Aim::cheapest
          ? fmt::format("{}{}, {}", change > 0 ? "+" : "-", to_text(Usd(std::abs(change))),
                        shadow_price(move, std::abs(change) * (move.to > move.from ? 1 : -1)))
          : fmt::format("{}{} days", change > 0 ? "+" : "-", three_digits(std::abs(change)));
  if (after->offer != before.offer) out += " (" + offer_words(told, after->offer) + ")";
  return out;
}

void bill_columns(TextTable& table) {
  table.column("item", "", TextTable::Align::left);
  table.column("number");
  table.column("USD", "each", TextTable::Align::right, "usd_each");
  table.column("USD", "", TextTable::Align::right, "usd");
  table.column("power", "at work", TextTable::Align::right, "watts");
  table.detail("usd_low", "least USD");
  table.detail("usd_high", "most USD");
  table.detail("source", "source of the price", TextTable::Align::left);
  table.detail("date", "", TextTable::Align::left);
}

/// A row for each line and one for the sum, behind the cells that name the bill.
void add_bill(TextTable& table, const Bill& bill, const TableCells& name) {
  const auto add_line = [&](const BillLine& line, const TableCell& each) {
    const Band total = line.total();
    const auto usd = [&](const std::string& text, double value) {
      return line.usd ? TableCell{text, value} : TableCell{"-"};
    };
    TableCells cells = name;
    for (const TableCell& cell :
         {TableCell{line.item}, counted(line.count), each,
          usd(to_text(Usd(total.value)), total.value),
          line.power.value > 0 ? TableCell{to_text(line.power), line.power.value} : TableCell{"-"},
          usd(to_text(Usd(total.low)), total.low), usd(to_text(Usd(total.high)), total.high),
          TableCell{line.source}, TableCell{line.date}})
      cells.push_back(cell);
    table.row(std::move(cells));
  };
  for (const BillLine& line : bill.lines)
    add_line(line, line.usd        ? TableCell{to_text(Usd(line.usd->value)), line.usd->value}
                   : line.unpriced ? TableCell{"no price"}
                                   : TableCell{"-"});
  add_line({.item = bill.priced() ? "capital" : "capital, without what has no price",
            .count = 1,
            .power = bill.power(),
            .usd = bill.capital()},
           "-");
}

}  // namespace

std::vector<NamedAnswer> named_answers(const DesignAnswer& a) {
  std::vector<NamedAnswer> out;
  for (const AimAnswer& one : a.answers) {
    if (!one.choice) continue;
    const auto same = std::ranges::find_if(out, [&](const NamedAnswer& known) {
      return known.answer->choice->offer == one.choice->offer;
    });
    if (same == out.end())
      out.push_back({word_of(one.aim), &one});
    else
      same->name += ", " + word_of(one.aim);
  }
  return out;
}

TextTable answers_table(const DesignTold& told) {
  TextTable table;
  table.column("", "", TextTable::Align::left, "answer");
  machine_columns(table);
  table.column("P(goal)");
  for (const auto& [name, one] : named_answers(told.answer)) {
    TableCells cells = machine_cells(told, *one->choice);
    cells.insert(cells.begin(), name);
    cells.emplace_back(one->odds ? percent(*one->odds) : "-");
    table.row(std::move(cells));
  }
  return table;
}

TextTable choices_table(const DesignTold& told, const std::vector<DesignChoice>& choices) {
  TextTable table;
  machine_columns(table);
  for (const DesignChoice& one : choices) table.row(machine_cells(told, one));
  return table;
}

TextTable bill_table(const DesignTold& told) {
  TextTable table;
  table.column("bill of", "", TextTable::Align::left, "answer");
  bill_columns(table);
  for (const auto& [name, one] : named_answers(told.answer)) add_bill(table, one->bill, {name});
  return table;
}

TextTable one_bill_table(const Bill& bill) {
  TextTable table;
  bill_columns(table);
  add_bill(table, bill, {});
  std::vector<std::size_t> shown;
  for (const char* key :
       {"item", "number", "usd_each", "usd", "usd_low", "usd_high", "watts", "source", "date"})
    shown.push_back(*table.find(key));
  table.select(shown);
  return table;
}

std::vector<PriceSource> price_sources(const DesignTold& told) {
  std::set<std::string> seen;
  std::vector<PriceSource> out;
  const auto answers = named_answers(told.answer);
  for (const auto& [name, one] : answers)
    for (const BillLine& line : one->bill.lines)
      if (line.usd && !line.source.empty() && seen.insert(line.source).second)
        out.push_back({line.item, line.source + (line.date.empty() ? "" : ", " + line.date)});
  const auto add_terms = [&](const DesignChoice& choice) {
    const Terms& terms = told.machines.offers[choice.offer].terms;
    const Scenario& s = choice.report.scenario;
    if (terms.price.value == 0 || !seen.insert(words_of(terms.way) + terms.source).second) return;
    const auto text = [&](double usd) {
      return terms.way.tenure == Tenure::own ? to_text(Usd(usd)) : to_text(UsdPerHour(usd));
    };
    std::string words = text(terms.price.value);
    if (terms.price.low < terms.price.high)
      words += fmt::format(" (of {} to {})", text(terms.price.low), text(terms.price.high));
    words += ", " + terms.source + (terms.date.empty() ? "" : ", " + terms.date);
    const bool own = terms.way.tenure == Tenure::own;
    out.push_back({words_of(terms.way) + (own ? " of " + s.node.name : " of " + s.node.gpu.name),
                   std::move(words)});
  };
  for (const WayAnswer& one : told.answer.by_way)
    if (one.choice) add_terms(*one.choice);
  for (const auto& [name, one] : answers) {
    add_terms(*one->choice);
    for (const std::string& item : one->bill.unpriced())
      if (seen.insert(item).second) out.push_back({item, "no list has a price"});
  }
  return out;
}

std::vector<MovedLimit> moved_limits(const DesignTold& told) {
  std::vector<MovedLimit> out;
  for (const LimitMove& move : told.answer.limits) {
    const auto& cheapest = told.answer.answers[0].choice;
    const auto& fastest = told.answer.answers[1].choice;
    MovedLimit one{move.limit, amount(move.limit, move.to),
                   change_words(told, *cheapest, move.cheapest, Aim::cheapest, move),
                   change_words(told, *fastest, move.fastest, Aim::fastest, move), false};
    one.matters = one.cheapest != unchanged || one.fastest != unchanged;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<MovedPrice> moved_prices(const DesignTold& told) {
  std::vector<MovedPrice> out;
  const auto& cheapest = told.answer.answers[0].choice;
  for (const PriceMove& move : told.answer.prices) {
    MovedPrice one{move.price, move.factor - 1, nothing_meets, "", {}};
    if (move.cheapest) {
      one.usd = to_text(Usd(move.cheapest->outcome.usd));
      one.change = move.cheapest->outcome.usd / cheapest->outcome.usd - 1;
      if (move.cheapest->offer != cheapest->offer)
        one.machine = offer_words(told, move.cheapest->offer);
    }
    out.push_back(std::move(one));
  }
  return out;
}

TextTable ways_table(const DesignTold& told) {
  TextTable table;
  table.column("way", "", TextTable::Align::left);
  table.column("machine", "", TextTable::Align::left);
  table.column("days");
  for (const char* heading :
       {"at signing", "a month", "months", "by the finish", "in all", "the run's share"})
    table.column(heading);
  for (const WayAnswer& one : told.answer.by_way) {
    if (!one.choice) {
      table.row({words_of(one.way), nothing_meets, "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const Cash& cash = one.choice->outcome.cash;
    const auto usd = [](const Band& band) {
      return TableCell{to_text(Usd(band.value)), band.value};
    };
    const Scenario& s = told.machines.all[told.machines.offers[one.choice->offer].machine].scenario;
    table.row({words_of(one.way) + (one.above_budget ? ", above the budget" : ""), name_of(s),
               rounded(one.choice->outcome.days), usd(cash.signing), usd(cash.a_month),
               rounded(cash.months), usd(cash.by_finish), usd(cash.total), usd(cash.payback)});
  }
  return table;
}

std::string rent_or_own_words(const DesignTold& told) {
  const DesignChoice *rent = told.answer.cheapest_to(Tenure::rent),
                     *own = told.answer.cheapest_to(Tenure::own);
  if (rent == nullptr || own == nullptr) return {};
  const double to_rent = rent->outcome.cash.payback.value, to_own = own->outcome.cash.payback.value;
  const Scenario& s = rent->report.scenario;
  return fmt::format("the run's share to rent {}, to own {}: as much at {} per {}",
                     to_text(Usd(to_rent)), to_text(Usd(to_own)),
                     to_text(UsdPerHour(s.cost.price.value * to_own / to_rent)), s.node.gpu.name);
}

std::vector<std::pair<std::size_t, std::string>> what_became(const DesignTold& told) {
  std::vector<std::pair<std::size_t, std::string>> out;
  for (const auto& [fate, count] : told.answer.fates) out.emplace_back(count, text_of(fate));
  std::map<std::string, std::size_t> why;
  for (const NoMachine& one : told.machines.none) ++why[one.why];
  for (const auto& [reason, count] : why) out.emplace_back(count, "left out: " + reason);
  return out;
}

std::vector<std::string> proof_words(const DesignTold& told) {
  const DesignAnswer& a = told.answer;
  std::vector<std::string> out{
      fmt::format("{} offers on {} machines; plans of {} were searched, {} simulated",
                  grouped(static_cast<std::int64_t>(told.machines.offers.size())),
                  grouped(static_cast<std::int64_t>(told.machines.all.size())),
                  grouped(static_cast<std::int64_t>(a.searched)),
                  grouped(static_cast<std::int64_t>(a.simulated)))};
  for (const AimAnswer& one : a.answers) {
    if (one.proven) continue;
    out.push_back(
        fmt::format("not proven: {} offers are open for the {}", one.open, word_of(one.aim)));
    if (one.choice && std::isfinite(one.least_open))
      out.back() += fmt::format(
          ", gap {}", percent(std::max(0.0, 1 - one.least_open / one.choice->outcome.of(one.aim))));
  }
  return out;
}

std::string odds_words(const DesignTold& told) {
  const DesignAnswer& a = told.answer;
  if (!a.answers[0].odds || (!a.sure && a.ended)) return {};
  if (!a.sure) return "no machine meets the goal in 90 % of cases";
  if (a.sure->offer == a.answers[0].choice->offer)
    return "the cheapest meets the goal in 90 % of cases";
  return fmt::format("to meet it in 90 % of cases: {}, {}, P(goal) {}",
                     offer_words(told, a.sure->offer), to_text(Usd(a.sure->outcome.usd)),
                     a.sure_odds ? percent(*a.sure_odds) : "-");
}

}  // namespace stepcast::sim
