#include "sim/handout/design_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "engine/units_text.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/pictures/pareto_picture.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

constexpr double million = 1e6;
constexpr std::size_t most_choices = 400;

/// Of an answer, as its offer is come by.
Scenario scenario_of(const DesignTold& told, const DesignChoice& choice) {
  return priced(choice.report.scenario, told.machines.offers[choice.offer].terms, told.parts, {});
}

/// What each answer is chosen for, with its machine below.
KeyFigures answer_figures(const DesignTold& told) {
  KeyFigures out;
  for (const AimAnswer& one : told.answer.answers) {
    if (!one.choice) continue;
    const DesignOutcome& outcome = one.choice->outcome;
    const std::string figure = one.aim == Aim::cheapest  ? dollars_text(outcome.money)
                               : one.aim == Aim::fastest ? days_text(outcome.run.days)
                                                         : energy_text(outcome.run.megawatt_hours);
    out.push_back(banded_figure(word_of(one.aim), figure, offer_words(told, one.choice->offer)));
  }
  const AimAnswer& cheapest = told.answer.answers.front();
  if (cheapest.odds)
    out.push_back(
        {"P(goal) of the cheapest", percent(*cheapest.odds), "that it keeps to the goal"});
  if (const auto& sure = told.answer.sure; sure && sure->offer != cheapest.choice->offer)
    out.push_back({"to meet it in 90 % of cases", to_text(Usd(sure->outcome.usd)),
                   offer_words(told, sure->offer)});
  return out;
}

/// The limits that a little less or more of would change an answer; else that none is.
std::string limit_words(const DesignTold& told) {
  std::string out;
  for (const MovedLimit& one : moved_limits(told))
    if (one.matters)
      out += fmt::format("{}{} {}: cheapest {}, fastest {}", out.empty() ? "" : "; ", one.limit,
                         one.to, one.cheapest, one.fastest);
  if (out.empty() && told.answer.limits.empty()) out = "no limit was moved";
  if (out.empty()) out = "prices alone: 5 % less or more of a limit of the goal changes no answer";
  return "What limits it: " + out +
         ". The cheapest: " + largest_loss(times_of(told.answer.answers.front().choice->report)) +
         ".";
}

ToldSection met_section(const DesignTold& told) {
  ToldSection out{"At a glance", {}};
  out.blocks.emplace_back(answer_figures(told));
  out.blocks.emplace_back(ToldTable{"The answers", answers_table(told)});
  if (const std::string words = odds_words(told); !words.empty())
    out.blocks.emplace_back(Paragraph{"How sure: " + words + "."});
  for (const auto& [name, one] : named_answers(told.answer))
    out.blocks.emplace_back(
        Paragraph{fmt::format("Plan, {}: {}.", name, plan_text(one->choice->report.scenario))});
  out.blocks.emplace_back(Paragraph{limit_words(told)});
  out.blocks.emplace_back(Paragraph{confidence_text(told.answer.answers.front().choice->report)});
  return out;
}

ToldSection unmet_section(const DesignTold& told) {
  ToldSection out{"At a glance", {Paragraph{"Nothing meets this goal."}}};
  if (const auto& nearest = told.answer.nearest)
    out.blocks.emplace_back(ToldTable{"The cheapest without its " + told.answer.without,
                                      choices_table(told, {*nearest})});
  return out;
}

/// Of the bills, USD by what is bought.
Chart bill_chart(const DesignTold& told) {
  struct Sort {
    const char* name;
    std::optional<PartKind> kind;
  };
  constexpr Sort all_sorts[] = {{"nodes", PartKind::node},
                                {"switches", PartKind::switch_},
                                {"cables and transceivers", PartKind::cable},
                                {"building and operation", PartKind::facility},
                                {"storage, spares, installation", {}}};
  const auto answers = named_answers(told.answer);
  const auto usd_of = [](const Bill& bill, const Sort& sort) {
    double out = 0;
    for (const BillLine& line : bill.lines)
      if (line.kind == sort.kind) out += line.total().value;
    return out;
  };
  BarPicture picture{"bill", "What is bought", "million USD", {}};
  if (std::isfinite(told.goal.limits.capital)) {
    picture.limit = told.goal.limits.capital / million;
    picture.limit_text = "capital: " + to_text(Usd(told.goal.limits.capital));
  }
  std::vector<Sort> sorts;
  TextTable table;
  table.column("bill of", "", TextTable::Align::left);
  for (const Sort& sort : all_sorts) {
    if (std::ranges::all_of(answers,
                            [&](const auto& one) { return usd_of(one.answer->bill, sort) == 0; }))
      continue;
    sorts.push_back(sort);
    picture.series.emplace_back(sort.name);
    table.column(sort.name, "million USD");
  }
  if (sorts.empty()) picture.series = {""};
  table.column("capital", "million USD");
  for (const auto& [name, one] : answers) {
    BarRow row{name, {}, to_text(Usd(one->bill.capital().value))};
    TableCells cells{name};
    for (const Sort& sort : sorts) {
      row.parts.push_back(usd_of(one->bill, sort) / million);
      cells.push_back(rounded(row.parts.back()));
    }
    cells.push_back(rounded(one->bill.capital().value / million));
    picture.rows.push_back(std::move(row));
    table.row(std::move(cells));
  }
  return {picture.name, picture.title, bar_picture(picture), std::move(table),
          "The capital of each answer; of a rented one, what its provider has bought."};
}

ToldSection bill_section(const DesignTold& told) {
  ToldSection out{"Bill of materials", {bill_chart(told)}};
  for (const auto& [name, one] : named_answers(told.answer))
    out.blocks.emplace_back(
        ToldTable{fmt::format("{}: {}", name, offer_words(told, one->choice->offer)),
                  one_bill_table(one->bill)});
  TextTable sources;
  sources.column("price of", "", TextTable::Align::left);
  sources.column("source and date", "", TextTable::Align::left);
  for (const auto& [item, source] : price_sources(told)) sources.row({item, source});
  if (sources.num_rows() > 0)
    out.blocks.emplace_back(ToldTable{"Where the prices come from", std::move(sources)});
  return out;
}

Chart prices_chart(const std::vector<MovedPrice>& moves) {
  BarPicture picture{"prices", "The cheapest at other prices", "change of the run's USD, %"};
  TextTable table;
  table.column("price", "", TextTable::Align::left);
  for (const char* heading : {"by", "USD of the run", "change"}) table.column(heading);
  table.column("another machine", "", TextTable::Align::left);
  for (const MovedPrice& one : moves) {
    const std::string by = fmt::format("{:+.0f} %", 100 * one.by);
    const std::string change = one.change ? fmt::format("{:+.2f} %", 100 * *one.change) : "-";
    picture.rows.push_back({one.price + " " + by, {100 * one.change.value_or(0)}, change});
    table.row({one.price, by, one.usd, change, one.machine.empty() ? "the same" : one.machine});
  }
  return {picture.name, picture.title, bar_picture(picture), std::move(table),
          "One price at a time, solved anew."};
}

ToldSection moves_section(const DesignTold& told) {
  ToldSection out{"What would change it", {}};
  TextTable limits;
  for (const char* heading : {"limit", "at", "cheapest", "fastest"})
    limits.column(heading, "", TextTable::Align::left);
  for (const MovedLimit& one : moved_limits(told))
    limits.row({one.limit, one.to, one.cheapest, one.fastest});
  if (limits.num_rows() > 0)
    out.blocks.emplace_back(ToldTable{"A little less or more of each limit", std::move(limits)});
  else
    out.blocks.emplace_back(Paragraph{"The goal has no limit to move, or time was up before."});
  if (const auto moves = moved_prices(told); !moves.empty())
    out.blocks.emplace_back(prices_chart(moves));
  if (!told.answer.by_way.empty())
    out.blocks.emplace_back(ToldTable{"The cheapest of each way, USD", ways_table(told)});
  if (const std::string words = rent_or_own_words(told); !words.empty())
    out.blocks.emplace_back(Paragraph{"Rent or own: " + words + "."});
  return out;
}

ParetoSign sign_of(Aim aim) {
  return aim == Aim::cheapest  ? ParetoSign::diamond
         : aim == Aim::fastest ? ParetoSign::square
                               : ParetoSign::triangle;
}

/// Every offer that was simulated; none where no offer has a price.
std::optional<Chart> choices_chart(const DesignTold& told) {
  std::vector<DesignChoice> known = told.designer.known(DesignLimits{});
  std::erase_if(known, [](const DesignChoice& c) { return !std::isfinite(c.outcome.usd); });
  if (known.empty()) return std::nullopt;
  std::ranges::stable_sort(known, {}, [](const DesignChoice& c) { return c.outcome.days; });
  const DesignLimits& limits = told.goal.limits;
  ParetoPicture picture{"Days against dollars",
                        {"days", std::isfinite(limits.days) ? limits.days : 0,
                         fmt::format("deadline: {} days", three_digits(limits.days))},
                        {"million USD", std::isfinite(limits.usd) ? limits.usd / million : 0,
                         "budget: " + to_text(Usd(limits.usd))},
                        "offer, simulated",
                        "front: none is faster for less money",
                        {"cheapest", "fastest", "greenest"}};
  for (const DesignChoice& one : known) {
    ParetoPoint& point = picture.points.emplace_back(
        ParetoPoint{one.outcome.days, one.outcome.usd / million,
                    fmt::format("{}: {} days, {}", offer_words(told, one.offer),
                                three_digits(one.outcome.days), to_text(Usd(one.outcome.usd)))});
    for (const AimAnswer& answer : told.answer.answers)
      if (answer.choice && answer.choice->offer == one.offer)
        point.signs.push_back(sign_of(answer.aim));
  }
  mark_front(picture.points);
  const std::size_t all = known.size();
  known.resize(std::min(all, most_choices));
  TextTable table = choices_table(told, known);
  if (all > most_choices)
    table.sentence({}, fmt::format("{} slower offers",
                                   grouped(static_cast<std::int64_t>(all - most_choices))));
  return Chart{"days_dollars", picture.title, pareto_picture(picture), std::move(table),
               "Every offer that was simulated, also those that miss a limit."};
}

ToldSection space_section(const DesignTold& told) {
  ToldSection out{"What was tried, and what ruled it out", {}};
  if (auto chart = choices_chart(told)) out.blocks.emplace_back(std::move(*chart));
  std::string proof;
  for (const std::string& sentence : proof_words(told)) proof += sentence + ". ";
  out.blocks.emplace_back(Paragraph{"Proof: " + proof});
  BarPicture picture{"ruled_out", "What became of the offers", "offers"};
  TextTable table;
  table.column("offers");
  table.column("they", "", TextTable::Align::left);
  for (const auto& [count, words] : what_became(told)) {
    const auto number = static_cast<std::int64_t>(count);
    picture.rows.push_back({words, {static_cast<double>(count)}, grouped(number)});
    table.row({counted(number), words});
  }
  out.blocks.emplace_back(Chart{picture.name, picture.title, bar_picture(picture), std::move(table),
                                "Each by the first reason that sorted it out."});
  TextTable none;
  for (const char* heading : {"machine", "why"}) none.column(heading, "", TextTable::Align::left);
  for (const NoMachine& one : told.machines.none)
    if (none.num_rows() < most_choices) none.row({one.name, one.why});
  if (told.machines.none.size() > most_choices)
    none.sentence({}, fmt::format("{} further machines: --json has all",
                                  told.machines.none.size() - most_choices));
  if (none.num_rows() > 0)
    out.blocks.emplace_back(ToldTable{"Machines that were left out", std::move(none), true});
  return out;
}

/// The values of all machines that were tried, each once, in their order.
template <class Word>
std::string tried(const DesignTold& told, Word word) {
  std::vector<std::string> words;
  for (const Machine& machine : told.machines.all) {
    const std::string one = word(machine.scenario);
    if (std::ranges::count(words, one) == 0) words.push_back(one);
  }
  std::string out;
  for (const std::string& one : words) out += (out.empty() ? "" : ", ") + one;
  return out;
}

ToldTable tried_table(const DesignTold& told) {
  TextTable table;
  for (const char* heading : {"choice", "values"})
    table.column(heading, "", TextTable::Align::left);
  table.row({"node", tried(told, [](const Scenario& s) { return s.node.name; })});
  table.row({"nodes", tried(told, [](const Scenario& s) { return grouped(s.nodes); })});
  table.row({"fabric", tried(told, [](const Scenario& s) { return s.fabric.name; })});
  table.row({"oversubscription", tried(told, [](const Scenario& s) {
               return fmt::format("{:g}", s.fabric.oversubscription);
             })});
  table.row(
      {"NICs of a node", tried(told, [](const Scenario& s) { return grouped(s.node.nics); })});
  std::string ways;
  for (const Acquisition& way : told.machines.ways())
    ways += (ways.empty() ? "" : ", ") + words_of(way);
  table.row({"ways to come by it", ways});
  table.row({"list of parts", "parts/" + told.parts.name});
  return {"Machines that were tried", std::move(table)};
}

ToldTable plans_of_answers(const DesignTold& told) {
  TextTable table;
  for (const char* heading : {"answer", "framework", "plan"})
    table.column(heading, "", TextTable::Align::left);
  for (const char* heading : {"step", "MFU", "compute", "exposed", "bubble", "memory",
                              "of the GPU's", "power", "datasheet"})
    table.column(heading);
  for (const auto& [name, one] : named_answers(told.answer)) {
    const StepReport& r = one->choice->report;
    const Scenario& s = r.scenario;
    const auto share = [&](Duration part) { return percent(seconds(part) / seconds(r.step_time)); };
    table.row({name, software_text(s), one->choice->plan, to_text(r.step_time), percent(r.mfu),
               share(r.compute), share(r.exposed.total()), share(r.bubble),
               to_text(r.memory.total()), to_text(s.node.gpu.memory), to_text(r.power_per_gpu),
               percent(datasheet_share(r))});
  }
  return {"Fastest plan of each answer", std::move(table)};
}

ToldSection assumptions_section(const DesignHandout& h) {
  TextTable notes;
  for (const char* heading : {"kind", "what"}) notes.column(heading, "", TextTable::Align::left);
  for (const std::string& text : design_assumptions(h.told)) notes.row({"assumed", text});
  for (const std::string& text : h.warnings) notes.row({"warning", text});
  return {"What is assumed", {ToldTable{"Assumptions and warnings", std::move(notes)}}};
}

}  // namespace

Told design_page(const DesignHandout& h, const Catalogue& catalogue, const Origin& origin) {
  const DesignTold& told = h.told;
  const bool met = told.answer.met();
  const Scenario& any = told.machines.bases.front().front();
  const std::string goal = goal_words(told.goal, told.machines);
  Told out{any.title.empty() ? goal : any.title,
           "Which cluster to rent or to buy: " + goal + ".",
           {met ? met_section(told) : unmet_section(told)}};
  if (met) {
    out.sections.push_back(bill_section(told));
    out.sections.push_back(moves_section(told));
  }
  out.sections.push_back(space_section(told));
  out.sections.back().blocks.emplace_back(tried_table(told));
  if (met) out.sections.push_back({"Plans", {plans_of_answers(told)}});
  if (h.step) {
    for (ToldSection& section : engineer_sections(*h.step)) {
      section.title = "The cheapest: " + section.title;
      out.sections.push_back(std::move(section));
    }
  }
  out.sections.push_back(assumptions_section(h));
  std::vector<std::pair<std::string, Scenario>> scenarios;
  for (const auto& [name, one] : named_answers(told.answer))
    scenarios.emplace_back(name, scenario_of(told, *one->choice));
  if (scenarios.empty()) scenarios.emplace_back("", any);
  std::vector<const Scenario*> inputs;
  for (const auto& [name, scenario] : scenarios) inputs.push_back(&scenario);
  out.sections.push_back(inputs_section(inputs, catalogue));
  ToldSection made = origin_section(origin, nullptr);
  made.blocks.emplace_back(Listing{"Goal (TOML)", write_toml(h.asked)});
  if (met)
    for (const auto& [name, scenario] : scenarios)
      made.blocks.emplace_back(
          Listing{"Resolved scenario: " + name, write_toml(resolved_document(scenario))});
  if (h.step)
    for (const std::string& missing : h.step->missing)
      made.blocks.emplace_back(Paragraph{"Not on this page: " + missing + "."});
  out.sections.push_back(std::move(made));
  return out;
}

}  // namespace stepcast::sim
