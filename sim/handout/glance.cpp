// The first screen: for whoever pays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/handout/step_handout.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

constexpr double hours_a_day = 24, seconds_a_day = 86400;

KeyFigure tokens_a_day(const StepReport& r) {
  const TokensPerDay with_failures = tokens_per_day(r);
  if (!std::isnan(with_failures.mean))
    return {"tokens a day", to_text(Count(with_failures.mean)),
            fmt::format("{} to {}, failures included", to_text(Count(with_failures.low)),
                        to_text(Count(with_failures.high)))};
  return {"tokens a day", to_text(Count(r.tokens_per_second * seconds_a_day)),
          fmt::format("{} tokens/s; no failures", three_digits(r.tokens_per_second))};
}

KeyFigures money_and_time(const StepReport& r) {
  const Scenario& s = r.scenario;
  KeyFigures out;
  const WholeRun run = r.whole_run ? *r.whole_run : whole_run(s, figures_of(r), s.goal.goodput);
  if (s.goal.on()) {
    out.push_back(banded_figure("whole run", days_text(run.days),
                                to_text(Count(run.tokens.value)) + " tokens"));
    out.push_back(run.dollars ? banded_figure("cost", dollars_text(*run.dollars), s.cost.source)
                              : KeyFigure{"cost", "no price", "give --price \"2.5 USD/h\""});
  } else if (run.dollars_per_million_tokens) {
    out.push_back({"cost of a million tokens",
                   three_digits(run.dollars_per_million_tokens->value) + " USD", s.cost.source});
  }
  out.push_back(tokens_a_day(r));
  if (s.goal.on()) {
    out.push_back(banded_figure("energy", energy_text(run.megawatt_hours)));
    if (s.site.carbon.value > 0)
      out.push_back(banded_figure("emissions", co2_text(run.tonnes_co2), to_text(s.site.carbon)));
  } else {
    const double watts = run.power.total().value * s.site.pue;
    out.push_back(
        {"energy a day", three_digits(watts * hours_a_day / 1000) + " kWh",
         fmt::format("{} J a token, PUE {:g}", three_digits(run.joules_per_token), s.site.pue)});
  }
  return out;
}

KeyFigures of_the_step(const StepReport& r) {
  KeyFigures out;
  KeyFigure step{"step", to_text(r.step_time)};
  if (r.step_bar)
    step.note =
        fmt::format("{} to {}", to_text(to_duration(seconds(r.step_time) * r.step_bar->low)),
                    to_text(to_duration(seconds(r.step_time) * r.step_bar->high)));
  out.push_back(step);
  out.push_back({"MFU", percent(r.mfu), to_text(r.model_flops_per_gpu) + " per GPU"});
  const double card = static_cast<double>(r.scenario.node.gpu.memory.value);
  out.push_back(
      {"memory per GPU", to_text(r.memory.total()),
       fmt::format("{} of {}", percent(static_cast<double>(r.memory.total().value) / card),
                   to_text(r.scenario.node.gpu.memory))});
  return out;
}

std::string limit_text(const StepHandout& h) {
  std::string out = "What limits it: " + largest_loss(times_of(h.report));
  if (!h.why) return out + ".";
  for (const Sensitivity& row : h.why->slopes.rows) {
    if (!row.elasticity || row.without_effect(h.why->path.length)) continue;
    out += fmt::format(". It hangs most on {} ({}): 1 % more of it, {:+.2f} % of the step",
                       row.name, row.now, *row.elasticity);
    break;
  }
  return out + ".";
}

/// Own plan and other plans in the same columns.
void add_plan(TextTable& table, const std::string& name, const std::string& plan,
              const StepReport& r, double own_s, const std::string& sure) {
  const Scenario& s = r.scenario;
  const WholeRun run = whole_run(s, figures_of(r), s.goal.goodput);
  const double step = seconds(r.step_time);
  TableCells cells{name,
                   plan,
                   {to_text(r.step_time), step},
                   step == own_s ? "" : fmt::format("{:+.1f} %", 100 * (step / own_s - 1))};
  if (!s.goal.on()) cells.push_back(rounded(r.tokens_per_second * seconds_a_day / 1e9));
  if (s.goal.on()) cells.push_back(rounded(run.days.value));
  if (s.goal.on() && run.dollars) cells.push_back({to_text(Usd(run.dollars->value))});
  cells.push_back(rounded(run.joules_per_token));
  cells.push_back({to_text(r.memory.total())});
  cells.push_back({sure});
  table.row(std::move(cells));
}

/// "pipeline 1 instead of 4, micro_batch 2 instead of 1".
std::string changed_words(const SearchAnswer& a, const KnobValues& own, const KnobValues& other) {
  std::string out;
  for (const Knob& knob : knobs()) {
    const std::string was = knob_word(a.space, knob, own), is = knob_word(a.space, knob, other);
    if (was != is)
      out +=
          fmt::format("{}{} {} instead of {}", out.empty() ? "" : ", ", knob_name(knob), is, was);
  }
  return out;
}

/// How sure it is that a plan is faster than this one when both are measured.
std::string faster_text(const SearchAnswer& a, double step_s, double own_s) {
  if (!a.order) return "-";
  const double order = a.order->probability(std::min(step_s, own_s), std::max(step_s, own_s));
  return fmt::format("{:.2f}", step_s <= own_s ? order : 1 - order);
}

std::string counted_plans(std::size_t n) {
  return fmt::format("{} plan{} simulated", grouped(static_cast<std::int64_t>(n)),
                     n == 1 ? "" : "s");
}

ToldBlock plans_block(const StepHandout& h) {
  const SearchAnswer& a = *h.search;
  const Scenario& s = h.report.scenario;
  const double own_s = seconds(h.report.step_time);
  const bool dollars = whole_run(s, figures_of(h.report), s.goal.goodput).dollars.has_value();
  TextTable table;
  table.column("", "", TextTable::Align::left, "which");
  table.column("plan", "", TextTable::Align::left);
  for (const char* heading : {"step", "against this"}) table.column(heading);
  if (!s.goal.on()) table.column("tokens a day", "(billion)");
  if (s.goal.on()) table.column("days");
  if (s.goal.on() && dollars) table.column("cost");
  table.column("J a token");
  table.column("memory", "per GPU");
  table.column("P(it is", "faster)");
  const KnobValues own = h.knobs.value_or(knob_values_of(s));
  add_plan(table, "this plan", "as above", h.report, own_s, "");
  int shown = 0;
  for (const Found& found : a.result.found) {
    if (found.knobs == own || shown == 3) continue;
    ++shown;
    add_plan(table, fmt::format("alternative {}", shown), changed_words(a, own, found.knobs),
             found.report, own_s, faster_text(a, seconds(found.report.step_time), own_s));
  }
  table.sentence({}, fmt::format("of {}; within 5 % is a tie as forecasts go",
                                 counted_plans(a.result.found.size())));
  if (shown == 0) return Paragraph{"Alternatives: no other plan of this framework fits."};
  return ToldTable{"Alternatives on the same machine", std::move(table)};
}

}  // namespace

KeyFigure banded_figure(const std::string& label, const std::string& text,
                        const std::string& note) {
  const std::size_t open = text.find(" (");
  if (open == std::string::npos) return {label, text, note};
  const std::string band = text.substr(open + 2, text.size() - open - 3);
  return {label, text.substr(0, open), band + (note.empty() ? "" : "; " + note)};
}

StageTimes times_of(const StepReport& r) {
  return {seconds(r.compute), seconds(r.exposed.total()), seconds(r.bubble), seconds(r.wait),
          seconds(r.host)};
}

std::string confidence_text(const StepReport& r) {
  std::string out = "Confidence: ";
  if (!r.step_bar) return out + "no error bar, for want of published errors to rest on.";
  const ErrorBar& bar = *r.step_bar;
  out += fmt::format("{} of such forecasts lie between {:.2f} and {:.2f} times the measured step",
                     bar.assured ? level_text(bar) : "most", 1 / bar.high, 1 / bar.low);
  return out + " (" + origin_text(bar) + ").";
}

ToldSection glance_section(const StepHandout& h) {
  ToldSection out{"At a glance", {}};
  const StepReport& r = h.report;
  out.blocks.emplace_back(money_and_time(r));
  out.blocks.emplace_back(Paragraph{"Plan: " + plan_text(r.scenario) + "."});
  out.blocks.emplace_back(Paragraph{limit_text(h)});
  out.blocks.emplace_back(Paragraph{confidence_text(r)});
  if (h.search) out.blocks.push_back(plans_block(h));
  if (!r.scenario.goal.on())
    out.blocks.emplace_back(
        Paragraph{"No goal is given: --tokens 15T (or --samples, --days) adds days, cost, energy "
                  "and emissions of the whole run."});
  out.blocks.emplace_back(of_the_step(r));
  return out;
}

}  // namespace stepcast::sim
