#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/pictures/pareto_picture.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/search.hpp"

namespace stepcast::sim {
namespace {

bool has_price(const SearchAnswer& a) {
  const Cost& cost = a.space.bases().front().cost;
  return cost.price.value > 0 || cost.capex.value > 0;
}

/// Completed (complete()) where the caller did so: with error bars and [failures].
WholeRun run_of(const StepReport& r) {
  return r.whole_run ? *r.whole_run : whole_run(r.scenario, figures_of(r), goodput_band(r));
}

/// "33.5 to 57.4"
TableCell between(const Band& band, double scale = 1) {
  return {three_digits(band.low / scale) + " to " + three_digits(band.high / scale), band.low};
}

double gib(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 30); }

double exposed_share(const StepReport& r) {
  return seconds(r.exposed.total()) / seconds(r.step_time);
}

std::string value_text(const SearchAnswer& a, double value) {
  switch (a.options.objective) {
    case Objective::step:
      return to_text(to_duration(value));
    case Objective::energy:
      return to_text(Joules(value));
    case Objective::dollars:
      return to_text(Usd(value)) + " a step";
  }
  throw BrokenPromise("unknown objective");
}

std::string nearest_text(const SearchAnswer& a) {
  const Miss& nearest = a.result.misses.front();
  const Bytes card = a.space.base(nearest.knobs).node.gpu.memory;
  return nearest.needed > card ? to_text(nearest.needed - card) + " over"
                               : "P(fits) " + percent(nearest.p_fits);
}

/// "3.20 GiB more than h100-sxm-80gb has"
std::string beside_card(Bytes needed, const topology::GpuSpec& gpu) {
  return needed > gpu.memory ? to_text(needed - gpu.memory) + " more than " + gpu.name + " has"
                             : "close to what " + gpu.name + " has";
}

/// Knobs in which the first `shown` plans differ, and of those that they share the words.
struct Columns {
  std::vector<const Knob*> differ;
  std::string shared;
};

Columns columns_of(const SearchAnswer& a, std::size_t shown) {
  Columns out;
  for (const Knob& knob : knobs()) {
    if (a.space.values_of(knob).size() < 2) continue;
    const auto word = [&](std::size_t i) {
      return knob_word(a.space, knob, a.result.found[i].knobs);
    };
    bool same = true;
    for (std::size_t i = 1; i < shown; ++i) same = same && word(i) == word(0);
    if (!same)
      out.differ.push_back(&knob);
    else
      out.shared +=
          fmt::format("{}{} {}", out.shared.empty() ? "" : ", ", knob_name(knob), word(0));
  }
  return out;
}

std::size_t shown_plans(const SearchAnswer& a) {
  return std::min(a.options.top, a.result.found.size());
}

/// "sequence_parallel" in two lines.
void add_knob_column(TextTable& table, const Knob& knob) {
  std::string name(knob_name(knob)), rest;
  if (const std::size_t cut = name.find('_'); cut != std::string::npos && name.size() > 8)
    rest = name.substr(cut + 1), name.resize(cut);
  table.column(name, rest, knob.words.empty() ? TextTable::Align::right : TextTable::Align::left,
               knob.key);
}

std::string own_text(const SearchAnswer& a) {
  const OwnPlan& own = *a.own;
  const StepReport& best = a.result.found.front().report;
  std::string out = "your plan  ";
  if (!own.report) return out + "is refused: " + own.refused + "\n";
  const double more = seconds(own.report->step_time) / seconds(best.step_time) - 1;
  out += fmt::format("{}, {:+.1f} % against the first", to_text(own.report->step_time), 100 * more);
  if (own.changes.empty()) return out + ": it is the first\n";
  TextTable table;
  for (const char* heading : {"one change alone", "from", "to"})
    table.column(heading, "", TextTable::Align::left);
  table.column("step");
  table.column("change");
  for (const KnobChange& change : own.changes) {
    if (!change.report) {
      table.sentence({change.knob, change.from, change.to},
                     "not alone: " + change.refused.substr(0, change.refused.find(':')));
      continue;
    }
    const double gain = seconds(change.report->step_time) / seconds(own.report->step_time) - 1;
    table.row({change.knob, change.from, change.to, to_text(change.report->step_time),
               fmt::format("{:+.1f} %", 100 * gain)});
  }
  return out + "\n" + table.text();
}

std::string misses_text(const SearchAnswer& a) {
  if (!a.result.proven())
    return "no plan found yet: a longer --time, a higher --limit, or --fix of more knobs\n";
  std::string out = "no plan fits; the nearest:\n";
  for (const Miss& miss : a.result.misses) {
    const topology::GpuSpec& gpu = a.space.base(miss.knobs).node.gpu;
    out += fmt::format("  {}: {} per GPU, {}, P(fits) {}\n", plan_words(a.space, miss.knobs),
                       to_text(miss.needed), beside_card(miss.needed, gpu), percent(miss.p_fits));
  }
  return out;
}

}  // namespace

std::vector<Order::Contender> contenders_of(const SearchAnswer& a) {
  std::vector<Order::Contender> out;
  for (std::size_t i = 0; i < shown_plans(a); ++i) {
    const StepReport& report = a.result.found[i].report;
    out.push_back({seconds(report.step_time), report.p_fits.value_or(1.0)});
  }
  return out;
}

TextTable plans_table(const SearchAnswer& a) {
  const auto& found = a.result.found;
  const std::size_t shown = shown_plans(a);
  const Columns columns = columns_of(a, shown);
  const bool energy = a.options.objective == Objective::energy;
  TextTable table;
  table.column("", "", TextTable::Align::right, "rank");
  for (const Knob* knob : columns.differ) add_knob_column(table, *knob);
  table.column("step", "", TextTable::Align::right, "step_time_s");
  table.column("tokens/s", "per GPU", TextTable::Align::right, "tokens_per_s_per_gpu");
  table.column("MFU", "", TextTable::Align::right, "mfu");
  table.column("memory", "GiB", TextTable::Align::right, "memory_gib_per_gpu");
  table.column("P(fits)", "", TextTable::Align::right, "p_fits");
  table.column("exposed", "", TextTable::Align::right, "exposed_share");
  table.column("bubble", "", TextTable::Align::right, "bubble_share");
  if (energy) table.column("energy", "cluster", TextTable::Align::right, "cluster_energy_j");
  const bool price = has_price(a), goal = a.space.bases().front().goal.on();
  if (price) table.column("USD per", "M tokens", TextTable::Align::right, "usd_per_million_tokens");
  const bool bars = found.front().report.whole_run.has_value();
  if (goal) {
    const auto column = [&](const char* heading, const char* key) {
      table.column(heading, "", TextTable::Align::right, key);
    };
    column("days", "run.days");
    if (bars) column("between", "run.days_low");
    column("MWh", "run.energy_mwh");
    if (price) column("k USD", "run.usd");
    if (price && bars) column("between", "run.usd_low");
  }
  const bool order = a.order && !energy;
  std::vector<double> best;
  if (order) {
    best = a.order->best(contenders_of(a));
    table.column("P(best)", "", TextTable::Align::right, "p_best");
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const StepReport& r = found[i].report;
    const bool tie = i > 0 && found[i].value <= (1 + a.options.near) * found.front().value;
    const double step = seconds(r.step_time), bubble = seconds(r.bubble) / step;
    TableCells cells{{(tie ? "=" : "") + std::to_string(i + 1), static_cast<std::int64_t>(i + 1)}};
    for (const Knob* knob : columns.differ)
      cells.push_back(knob_word(a.space, *knob, found[i].knobs));
    cells.push_back({to_text(r.step_time), step});
    cells.push_back(rounded(r.tokens_per_second / static_cast<double>(r.scenario.gpus)));
    cells.push_back({percent(r.mfu), r.mfu});
    cells.push_back(rounded(gib(r.memory.total())));
    cells.push_back({percent(r.p_fits.value_or(1.0)), r.p_fits.value_or(1.0)});
    cells.push_back({percent(exposed_share(r)), exposed_share(r)});
    cells.push_back({percent(bubble), bubble});
    if (energy) cells.push_back({to_text(Joules(found[i].value)), found[i].value});
    const WholeRun run = price || goal ? run_of(r) : WholeRun{};
    if (price) cells.push_back(rounded(run.dollars_per_million_tokens.value_or(Band{}).value));
    if (goal) {
      cells.push_back(rounded(run.days.value));
      if (bars) cells.push_back(between(run.days));
      cells.push_back(rounded(run.megawatt_hours.value));
      if (price) cells.push_back({three_digits(run.dollars->value / 1e3), run.dollars->value});
      if (price && bars) cells.push_back(between(*run.dollars, 1e3));
    }
    if (order) cells.push_back({percent(best[i]), best[i]});
    table.row(std::move(cells));
  }
  return table;
}

std::string proof_text(const SearchAnswer& a) {
  const SearchResult& r = a.result;
  const auto plans = [](std::size_t n) { return grouped(static_cast<std::int64_t>(n)); };
  const std::string space = plans(r.legal) + " legal plans of this space";
  std::string out = r.found.empty() ? "nothing found" : "the best found";
  if (r.best_is_proven()) out = r.found.empty() ? "no plan" : "optimal";
  out += " among " + space + ": " + plans(r.too_large) + " do not fit";
  if (r.surely_too_large > 0 && r.surely_too_large < r.too_large)
    out += ", " + plans(r.surely_too_large) + " of them surely";
  if (!r.misses.empty()) out += " (nearest: " + nearest_text(a) + ")";
  if (r.left_out > 0)
    out += fmt::format(", {} cannot come within {} of {}", plans(r.left_out),
                       percent(a.options.near), value_text(a, r.found.front().value));
  if (r.refused > 0)
    out += fmt::format(", {} cannot be launched ({})", plans(r.refused), r.refusal);
  out += ", " + plans(r.simulated()) + " simulated";
  if (r.open > 0) {
    out += ", " + plans(r.open) + " still open";
    if (r.best_is_proven())
      out += fmt::format(", all of them slower than {}", value_text(a, r.least_open));
    else if (!r.found.empty())
      out += fmt::format(": not proven, the least bound left is {}, a gap of {}",
                         value_text(a, r.least_open),
                         percent(std::max(0.0, 1 - r.least_open / r.found.front().value)));
  }
  if (!r.walked) out += "; interrupted before all plans were seen";
  if (!r.found.empty()) {
    const std::size_t near = r.within(a.options.near);
    out += fmt::format("; {} plan{} within {}", plans(near), near == 1 ? " lies" : "s lie",
                       percent(a.options.near));
  }
  return out;
}

namespace {

/// Which rules left combinations of values out: the most first, each with its first sentence.
std::string not_legal_text(const SearchAnswer& a) {
  constexpr std::size_t most_rules = 5;
  const std::vector<RefusedByRule>& rules = a.result.by_rule;
  std::size_t all = 0, shown = 0;
  std::string lines;
  const auto line = [&](std::size_t plans, const std::string& why) {
    lines += fmt::format("  {:>11}  {}\n", grouped(static_cast<std::int64_t>(plans)), why);
  };
  for (std::size_t i = 0; i < rules.size(); all += rules[i++].plans) {
    if (i >= most_rules) continue;
    shown += rules[i].plans;
    line(rules[i].plans, rules[i].key + ": " + rules[i].first);
  }
  if (all == 0) return {};
  if (all > shown) line(all - shown, fmt::format("{} other rules", rules.size() - most_rules));
  return fmt::format("not legal, of combinations of these values {}, by the first rule broken:\n{}",
                     grouped(static_cast<std::int64_t>(all)), lines);
}

/// What was left out although it more likely fits than not, and what that would bring.
std::string risky_text(const SearchAnswer& a) {
  const RiskyPlans& risky = a.result.risky;
  const RunOptions& run = a.space.bases().front().run;
  const std::string wanted = percent(run.fits), least = percent(run.left_out_below());
  if (risky.taken)
    return fmt::format("no plan {}fits with {}: those below fit with {} and more\n",
                       risky.all_looked_at ? "" : "looked at ", wanted, least);
  if (risky.plans == 0) return {};
  std::string out = fmt::format("{} more fit with {} to {} and are left out (--fits {} takes them)",
                                grouped(static_cast<std::int64_t>(risky.plans)), least, wanted,
                                run.left_out_below());
  if (!a.result.found.empty() && risky.fastest) {
    const Found& fastest = *risky.fastest;
    const double gain = 1 - fastest.value / a.result.found.front().value;
    if (gain > 0)
      out += fmt::format(
          "; the fastest of them takes {}, {} less than the first, and fits with {}: {}",
          value_text(a, fastest.value), percent(gain), percent(fastest.report.p_fits.value_or(0)),
          plan_words(a.space, fastest.knobs));
    else
      out += "; none of them is faster";
  }
  return folded(out, 0, 2) + "\n";
}

/// What the user has fixed of what is usually tried.
std::string fixed_text(const SearchAnswer& a) {
  std::string out;
  for (const Knob& knob : knobs().subspan(1))
    if (a.space.values_of(knob).size() == 1 && !knob.on_request &&
        knob.usual(a.space.bases().front(), false).size() > 1)
      out += fmt::format("{}{} {}", out.empty() ? "  fixed: " : ", ", knob_name(knob),
                         knob.word(a.space.values_of(knob).front()));
  return out.empty() ? out : out + "\n";
}

}  // namespace

std::string search_text(const SearchAnswer& a, const std::string& table) {
  const Scenario& s = a.space.bases().front();
  std::string out =
      fmt::format("{} on {} x {}, {} sequences of {} tokens\n", s.model.name, grouped(s.gpus),
                  s.node.gpu.name, grouped(s.global_batch), grouped(s.batch.sequence));
  for (const std::string& line : a.space.choices()) out += "  " + line + "\n";
  out += fixed_text(a);
  out += folded(proof_text(a), 0, 2) + "\n" + risky_text(a) + not_legal_text(a);
  if (a.result.found.empty()) return a.result.misses.empty() ? out : out + misses_text(a);
  const std::string shared = columns_of(a, shown_plans(a)).shared;
  out += shared.empty() ? "\n" : "\nall: " + shared + "\n";
  out += table;
  if (a.result.within(a.options.near) > 1)
    out +=
        fmt::format("=: within {} of the first, a tie as forecasts go\n", percent(a.options.near));
  if (table.find("P(best)") != std::string::npos)
    out += "P(best): that it is the fastest of these that fit when measured\n";
  return a.own ? out + "\n" + own_text(a) : out;
}

std::string search_picture(const SearchAnswer& a) {
  const Scenario& s = a.space.bases().front();
  const double card = gib(s.node.gpu.memory);
  ParetoPicture out;  // part by part: gcc 12 takes a list that throws for one left uninitialised
  out.title = fmt::format("{} on {} x {}", s.model.name, grouped(s.gpus), s.node.gpu.name);
  out.across = {"memory per GPU, GiB", card, fmt::format("GPU: {:.3g} GiB", card)};
  out.up.title = "step, s";
  out.point_meaning = "plan";
  out.front_meaning = "front: no plan is faster with less memory";
  out.sign_words = {"best", "own"};
  const auto add = [&](const StepReport& r, const std::string& plan) -> ParetoPoint& {
    const double memory = gib(r.memory.total());
    return out.points.emplace_back(
        ParetoPoint{memory, seconds(r.step_time),
                    fmt::format("{}, {:.3g} GiB: {}", to_text(r.step_time), memory, plan)});
  };
  for (const Found& found : a.result.found) {
    ParetoPoint& point = add(found.report, plan_words(a.space, found.knobs));
    if (out.points.size() == 1) point.signs = {ParetoSign::diamond};
  }
  if (a.own && a.own->report) add(*a.own->report, "your plan").signs = {ParetoSign::square};
  mark_front(out.points);
  return pareto_picture(out);
}

}  // namespace stepcast::sim
