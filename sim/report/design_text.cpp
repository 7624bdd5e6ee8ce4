#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/units_text.hpp"
#include "sim/report/design.hpp"
#include "sim/report/goal_text.hpp"

namespace stepcast::sim {
namespace {

using Rows = std::vector<std::string>;

std::string section(const std::string& title, const Rows& rows) {
  if (rows.empty()) return {};
  std::string out = "\n" + title + "\n";
  for (const std::string& row : rows) out += "  " + row + "\n";
  return out;
}

std::string answer_words(const std::vector<Aim>& of) {
  std::string out;
  for (const Aim aim : of) out += (out.empty() ? "" : ", ") + word_of(aim);
  return out;
}

/// Aims that the same offer answers, by offer in the order of the aims.
std::vector<std::pair<const AimAnswer*, std::vector<Aim>>> distinct(const DesignAnswer& a) {
  std::vector<std::pair<const AimAnswer*, std::vector<Aim>>> out;
  for (const AimAnswer& one : a.answers) {
    if (!one.choice) continue;
    const auto same = std::ranges::find_if(
        out, [&](const auto& known) { return known.first->choice->offer == one.choice->offer; });
    if (same != out.end())
      same->second.push_back(one.aim);
    else
      out.push_back({&one, {one.aim}});
  }
  return out;
}

std::string banded(const Band& of) {
  std::string out = three_digits(of.value);
  if (of.low != of.high)
    out += fmt::format(" ({} to {})", three_digits(of.low), three_digits(of.high));
  return out;
}

/// Of dollars, in millions.
std::string banded_millions(const Band& usd) {
  return banded({.low = usd.low / 1e6, .value = usd.value / 1e6, .high = usd.high / 1e6});
}

void machine_columns(TextTable& table) {
  table.column("machine", "", TextTable::Align::left);
  table.column("days");
  table.column("million USD");
  table.column("at the meter");
  table.column("racks");
  table.column("MWh");
  table.column("t CO2e");
}

TableCells machine_cells(const DesignTold& told, const DesignChoice& c) {
  const WholeRun& run = c.outcome.run;
  return {offer_words(told, c.offer),
          {banded(run.days), run.days.value},
          {run.dollars ? banded_millions(*run.dollars) : "-", c.outcome.usd / 1e6},
          {to_text(Watts(c.outcome.watts)), c.outcome.watts},
          counted(told.designer.racks(c.offer)),
          rounded(c.outcome.mwh),
          rounded(run.tonnes_co2.value)};
}

std::string answers_table(const DesignTold& told) {
  TextTable table;
  table.column("", "", TextTable::Align::left, "answer");
  machine_columns(table);
  table.column("P(goal)");
  for (const auto& [one, aims_of] : distinct(told.answer)) {
    TableCells cells = machine_cells(told, *one->choice);
    cells.insert(cells.begin(), answer_words(aims_of));
    cells.emplace_back(one->odds ? percent(*one->odds) : "-");
    table.row(std::move(cells));
  }
  return table.text();
}

std::string front_table(const DesignTold& told) {
  TextTable table;
  machine_columns(table);
  for (const DesignChoice& one : told.answer.front) table.row(machine_cells(told, one));
  return table.text();
}

Rows plan_rows(const DesignTold& told) {
  Rows out;
  for (const auto& [one, aims_of] : distinct(told.answer)) {
    const StepReport& r = one->choice->report;
    out.push_back(fmt::format("{:<10}{}", answer_words({aims_of.front()}), one->choice->plan));
    out.push_back(fmt::format("{:<10}{}, step {}, {} per GPU", "", r.scenario.software.framework,
                              to_text(r.step_time), to_text(r.power_per_gpu)));
    if (const double share = datasheet_share(r); share > 0.01)
      out.push_back(fmt::format("{:<10}DATASHEET: {} of its kernel time rests on peaks alone", "",
                                percent(share)));
  }
  return out;
}

Rows source_rows(const DesignTold& told) {
  std::map<std::string, std::string> seen;  // source to item, each once
  Rows out;
  for (const auto& [one, aims_of] : distinct(told.answer))
    for (const BillLine& line : one->bill.lines)
      if (line.usd && !line.source.empty() && seen.try_emplace(line.source, line.item).second)
        out.push_back(fmt::format("{}: {}{}", line.item, line.source,
                                  line.date.empty() ? "" : ", " + line.date));
  for (const auto& [one, aims_of] : distinct(told.answer)) {
    const Scenario& s = one->choice->report.scenario;
    const Offer& offer = told.machines.offers[one->choice->offer];
    if (offer.way == Tenure::rent && seen.try_emplace(s.cost.source, "").second)
      out.push_back(fmt::format("rent of {}: {} (of {} to {}), {}, {}", s.node.gpu.name,
                                to_text(s.cost.price), to_text(s.cost.price_low),
                                to_text(s.cost.price_high), s.cost.source, s.cost.date));
    for (const std::string& item : one->bill.unpriced())
      if (seen.try_emplace(item, "").second) out.push_back(item + ": no list has a price");
  }
  return out;
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
  if (!after) return "nothing meets the goal";
  const double change = after->outcome.of(aim) - before.outcome.of(aim);
  if (change == 0) return "the same";
  std::string out =
      aim == Aim::cheapest
          ? fmt::format("{}{}, {}", change > 0 ? "+" : "-", to_text(Usd(std::abs(change))),
                        shadow_price(move, std::abs(change) * (move.to > move.from ? 1 : -1)))
          : fmt::format("{}{} days", change > 0 ? "+" : "-", three_digits(std::abs(change)));
  if (after->offer != before.offer) out += " (" + offer_words(told, after->offer) + ")";
  return out;
}

Rows limit_rows(const DesignTold& told) {
  Rows out;
  for (const LimitMove& move : told.answer.limits) {
    const auto& cheapest = told.answer.answers[0].choice;
    const auto& fastest = told.answer.answers[1].choice;
    std::string row = fmt::format("{:<9}{:<22}", move.limit, amount(move.limit, move.to));
    row += "cheapest: " + change_words(told, *cheapest, move.cheapest, Aim::cheapest, move);
    row += "; fastest: " + change_words(told, *fastest, move.fastest, Aim::fastest, move);
    out.push_back(std::move(row));
  }
  return out;
}

Rows price_rows(const DesignTold& told) {
  Rows out;
  const auto& cheapest = told.answer.answers[0].choice;
  for (const PriceMove& move : told.answer.prices) {
    std::string row = fmt::format("{:<12}{:+.0f} %   ", move.price, 100 * (move.factor - 1));
    if (!move.cheapest) {
      out.push_back(row + "nothing meets the goal");
      continue;
    }
    row += fmt::format("{} ({:+.2f} %)", to_text(Usd(move.cheapest->outcome.usd)),
                       100 * (move.cheapest->outcome.usd / cheapest->outcome.usd - 1));
    if (move.cheapest->offer != cheapest->offer)
      row += ", another machine: " + offer_words(told, move.cheapest->offer);
    out.push_back(std::move(row));
  }
  const auto& [rent, own] = told.answer.by_way;
  if (rent && own) {
    const Scenario& s = rent->report.scenario;
    const double even = s.cost.price.value * own->outcome.usd / rent->outcome.usd;
    out.push_back(fmt::format("rent or own  cheapest to rent {}, to own {}: as much at {} per {}",
                              to_text(Usd(rent->outcome.usd)), to_text(Usd(own->outcome.usd)),
                              to_text(UsdPerHour(even)), s.node.gpu.name));
  }
  return out;
}

Rows fate_rows(const DesignTold& told) {
  Rows out;
  for (const auto& [fate, count] : told.answer.fates)
    out.push_back(
        fmt::format("{:>7} {}", grouped(static_cast<std::int64_t>(count)), text_of(fate)));
  std::map<std::string, std::size_t> why;
  for (const NoMachine& one : told.machines.none) ++why[one.why];
  for (const auto& [reason, count] : why)
    out.push_back(
        fmt::format("{:>7} left out: {}", grouped(static_cast<std::int64_t>(count)), reason));
  return out;
}

std::string proof_words(const DesignTold& told) {
  const DesignAnswer& a = told.answer;
  std::string out = fmt::format("{} offers on {} machines; plans of {} were searched, {} simulated",
                                grouped(static_cast<std::int64_t>(told.machines.offers.size())),
                                grouped(static_cast<std::int64_t>(told.machines.all.size())),
                                grouped(static_cast<std::int64_t>(a.searched)),
                                grouped(static_cast<std::int64_t>(a.simulated)));
  for (const AimAnswer& one : a.answers) {
    if (one.proven) continue;
    out += fmt::format("\n  not proven: {} offers are open for the {}", one.open, word_of(one.aim));
    if (one.choice && std::isfinite(one.least_open))
      out += fmt::format(
          ", gap {}", percent(std::max(0.0, 1 - one.least_open / one.choice->outcome.of(one.aim))));
  }
  return out;
}

std::string odds_words(const DesignTold& told) {
  const DesignAnswer& a = told.answer;
  if (!a.answers[0].odds || (!a.sure && a.ended)) return {};
  if (!a.sure) return "no machine meets the goal in 90 % of cases\n";
  if (a.sure->offer == a.answers[0].choice->offer)
    return "the cheapest meets the goal in 90 % of cases\n";
  return fmt::format("to meet it in 90 % of cases: {}, {}, P(goal) {}\n",
                     offer_words(told, a.sure->offer), to_text(Usd(a.sure->outcome.usd)),
                     a.sure_odds ? percent(*a.sure_odds) : "-");
}

std::string nothing_meets(const DesignTold& told) {
  std::string out = "nothing meets this goal\n";
  if (const auto& nearest = told.answer.nearest) {
    TextTable table;
    machine_columns(table);
    table.row(machine_cells(told, *nearest));
    out += fmt::format("the cheapest without its {}\n{}", told.answer.without, table.text());
  }
  return out;
}

}  // namespace

TextTable bill_table(const DesignTold& told) {
  TextTable table;
  table.column("bill of", "", TextTable::Align::left, "answer");
  table.column("item", "", TextTable::Align::left);
  table.column("number");
  table.column("USD", "each", TextTable::Align::right, "usd_each");
  table.column("USD", "", TextTable::Align::right, "usd");
  table.column("power", "at work", TextTable::Align::right, "watts");
  for (const char* detail : {"usd_low", "usd_high", "source", "date"}) table.detail(detail);
  for (const auto& [one, aims_of] : distinct(told.answer)) {
    const std::string of = answer_words(aims_of);
    const auto line_of = [&](const BillLine& line, const TableCell& each) {
      const Band total = line.total();
      const auto usd = [&](const std::string& text, double value) {
        return line.usd ? TableCell{text, value} : TableCell{"-"};
      };
      table.row({of, line.item, counted(line.count), each,
                 usd(to_text(Usd(total.value)), total.value),
                 line.power.value > 0 ? TableCell{to_text(line.power), line.power.value} : "-",
                 usd("", total.low), usd("", total.high), line.source, line.date});
    };
    for (const BillLine& line : one->bill.lines)
      line_of(line, line.usd        ? TableCell{to_text(Usd(line.usd->value)), line.usd->value}
                    : line.unpriced ? TableCell{"no price"}
                                    : TableCell{"-"});
    const bool whole = one->bill.priced();
    const BillLine sum{.item = whole ? "capital" : "capital, without what has no price",
                       .count = 1,
                       .power = one->bill.power(),
                       .usd = one->bill.capital()};
    line_of(sum, "-");
  }
  return table;
}

std::string design_text(const DesignTold& told, const std::string& bills) {
  std::string out = goal_words(told.goal, told.machines) + "\n";
  if (told.answer.met()) {
    out += "\n" + answers_table(told) + odds_words(told);
    out += section("fastest plans", plan_rows(told));
    out += "\n" + bills;
    out += section("prices of", source_rows(told));
    out += section("a little less or more", limit_rows(told));
    out += section("other prices, the cheapest", price_rows(told));
    out += "\nsimulated, beaten by none of them in days, USD and MWh\n" + front_table(told);
  } else {
    out += nothing_meets(told);
  }
  out += "\n" + proof_words(told) + "\n";
  out += section("of the offers", fate_rows(told));
  return out + section("assumed", design_assumptions(told));
}

}  // namespace stepcast::sim
