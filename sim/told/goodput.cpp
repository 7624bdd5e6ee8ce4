#include "sim/told/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/told/labelled_line.hpp"
#include "sim/told/metrics.hpp"

namespace stepcast::sim {
namespace {

std::string goodput_line(const std::string& label, const std::string& value) {
  return labelled_line("  " + label, value);
}

/// "4.21 s", "8.20 min", "3.09 h", "12.5 days".
std::string long_time(double s) {
  if (s < 120.0) return to_text(to_duration(s));
  if (s < 7200.0) return three_digits(s / 60.0) + " min";
  if (s < 172'800.0) return three_digits(s / 3600.0) + " h";
  return three_digits(s / 86400.0) + " days";
}

/// A count of tokens: "15.0 billion".
std::string many(double tokens) {
  if (tokens >= 1e12) return three_digits(tokens / 1e12) + " trillion";
  return three_digits(tokens / 1e9) + " billion";
}

std::string points(double share) { return three_digits(100.0 * share) + " points"; }

/// Causes by their share of the interruptions, largest first, the small ones as one.
std::string causes_text(const FailureRates& rates) {
  std::vector<FailureCause> causes = rates.causes;
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) {
    return a.per_1000_node_days > b.per_1000_node_days;
  });
  const double all = rates.per_1000_node_days();
  std::string out;
  double rest = 1.0;
  for (std::size_t i = 0; i < std::min<std::size_t>(causes.size(), 4); ++i) {
    const double share = causes[i].per_1000_node_days / all;
    out += (out.empty() ? "" : ", ") + causes[i].name + " " + percent(share);
    rest -= share;
  }
  return causes.size() > 4 ? out + ", others " + percent(rest) : out;
}

std::string rates_text(const StepReport& report) {
  const Failures& f = report.scenario.failures;
  const Goodput& g = *report.goodput;
  std::string out =
      goodput_line("interruptions", fmt::format("every {}, {} in {:g} days", long_time(g.between_s),
                                                three_digits(g.interruptions), g.days));
  out += goodput_line(
      "rates",
      fmt::format("{} per 1,000 node-days ({})", three_digits(f.rate()),
                  f.per_1000_node_days ? "stated, causes of " + f.rates.name : f.rates.name));
  return out + goodput_line("causes", causes_text(f.rates));
}

std::string tier_text(const CheckpointTraffic& tier, bool chosen) {
  std::string out =
      fmt::format("{}, {} per GPU: stops {} every {}", to_text(tier.total), to_text(tier.rank),
                  long_time(tier.blocking_s), long_time(tier.every_s));
  out += chosen ? " (the best)" : fmt::format(" (best {})", long_time(tier.best_every_s));
  if (tier.behind_s > 0.0) out += fmt::format(", there after {}", long_time(tier.behind_s));
  return out + fmt::format(", read in {}", long_time(tier.load_s));
}

std::string wall_text(const WallTime& shares) {
  std::string out;
  for (const auto& [label, share, always] : {std::tuple{"training", shares.training, true},
                                             {"checkpoints", shares.checkpoint, true},
                                             {"work done again", shares.lost, true},
                                             {"down", shares.down, true},
                                             {"waiting for nodes", shares.waiting, false},
                                             {"slowed", shares.slowed, false},
                                             {"links gone", shares.flapped, false}})
    if (always || share > 1e-9) out += fmt::format("    {:<18}{:>8}\n", label, percent(share));
  return out;
}

std::string conditions(const Scenario& s, const Goodput& g) {
  std::string out;
  const Failures& f = s.failures;
  if (g.slow_speed)
    out += goodput_line("slow node", fmt::format("the step takes {:.3f} times as long, simulated",
                                                 1.0 / *g.slow_speed));
  if (g.shrunk_speed)
    out += goodput_line("missing nodes",
                        fmt::format("{} of the tokens/s without one copy of the model, simulated",
                                    percent(*g.shrunk_speed)));
  if (g.empty_share)
    out += goodput_line("spares", fmt::format("{}; none left for {} of the time (Erlang)",
                                              *f.spares, percent(*g.empty_share)));
  return out;
}

}  // namespace

std::string goodput_text(const StepReport& report) {
  if (!report.goodput) return {};
  const Goodput& g = *report.goodput;
  const Failures& f = report.scenario.failures;
  std::string out = "\nfailures and goodput\n" + rates_text(report);
  for (std::size_t i = 0; i < g.tiers.size(); ++i)
    out += goodput_line("checkpoint, " + g.tiers[i].to,
                        tier_text(g.tiers[i], !f.tiers[i].every.has_value()));
  out += conditions(report.scenario, g);
  out += goodput_line(
      "goodput (ETTR)",
      fmt::format("{} ({} to {} %, {:g} %), {} runs; Daly's formula {}", percent(g.mean),
                  three_digits(100 * g.low), three_digits(100 * g.high), 100 * g.level,
                  grouped(f.runs), percent(g.daly)));
  out += wall_text(g.shares);
  const TokensPerDay tokens = tokens_per_day(report);
  out += goodput_line("tokens per day", fmt::format("{} ({} to {})", many(tokens.mean),
                                                    many(tokens.low), many(tokens.high)));
  out += goodput_line("step and checkpoint",
                      to_text(report.step_time + to_duration(g.checkpoints_per_step_s)));
  out += goodput_line("a minute of restart",
                      fmt::format("{}, {} tokens per day", points(g.minute),
                                  many(report.tokens_per_second * 86400.0 * g.minute)));
  return out;
}

const Form<StepReport>& failures_form() {
  using S = const StepReport&;
  using C = const CheckpointTraffic&;
  using W = const WallTime&;
  static const Form<CheckpointTraffic> checkpoint =
      Form<CheckpointTraffic>("checkpoint")
          .has("to", "Where it is written.", [](C c) { return c.to; })
          .has("bytes", "Of all GPUs together.", [](C c) { return c.total.value; })
          .has("bytes_per_gpu", "Of the GPU that writes most.", [](C c) { return c.rank.value; })
          .has("blocking_s", "Training stops for so long.", [](C c) { return c.blocking_s; })
          .has("behind_s", "Written behind training for so long.", [](C c) { return c.behind_s; })
          .has("load_s", "Read again in.", [](C c) { return c.load_s; })
          .has("every_s", "From one to the next.", [](C c) { return c.every_s; })
          .has("best_every_s", "The period that leaves most goodput.",
               [](C c) { return c.best_every_s; });
  static const Form<WallTime> wall =
      Form<WallTime>("wall")
          .has("training", "Progress that is kept.", [](W w) { return w.training; })
          .has("checkpoint", "Stopped to write checkpoints.", [](W w) { return w.checkpoint; })
          .has("lost", "Work that is done again.", [](W w) { return w.lost; })
          .has("down", "Finding the fault and starting again.", [](W w) { return w.down; })
          .has("waiting", "Without enough nodes.", [](W w) { return w.waiting; })
          .has("slowed", "Slowed by a node.", [](W w) { return w.slowed; })
          .has("flapped", "Links that were gone.", [](W w) { return w.flapped; });
  static const Form<StepReport> form =
      Form<StepReport>("failures")
          .has("rates", "Whose rates of failures these are.",
               [](S s) { return s.scenario.failures.rates.name; })
          .has(
              "per_1000_node_days", "Interruptions.",
              [](S s) { return s.scenario.failures.rate(); }, "1/1000 node-days")
          .has("rate_sigma", "How uncertain that rate is: the sigma of its logarithm.",
               [](S s) { return s.scenario.failures.rate_sigma(); })
          .has("between_interruptions_s", "Mean time from one interruption to the next.",
               [](S s) { return s.goodput->between_s; })
          .has("interruptions", "Expected in `days`.", [](S s) { return s.goodput->interruptions; })
          .has("days", "Of the run that was simulated.", [](S s) { return s.goodput->days; })
          .has("level", "Of the band of goodput.", [](S s) { return s.goodput->level; })
          .has("daly", "Goodput by Daly's formula, for comparison.",
               [](S s) { return s.goodput->daly; })
          .has(
              "minute_of_restart", "Share of goodput that a minute more of restart costs.",
              [](S s) { return s.goodput->minute; }, "share")
          .has("step_with_checkpoints_s", "A step with its part of the checkpoints.",
               [](S s) { return seconds(s.step_time) + s.goodput->checkpoints_per_step_s; })
          .object("wall", "Shares of wall time; they add up to 1.", wall,
                  [](S s) -> const WallTime& { return s.goodput->shares; })
          .list("checkpoints", "By where they go.", checkpoint,
                [](S s) {
                  return s.goodput->tiers.empty() ? std::nullopt : std::optional(s.goodput->tiers);
                })
          .has("slow_speed", "Speed of a step with a slow node, of the usual one.",
               [](S s) { return s.goodput->slow_speed; })
          .has("shrunk_speed", "Speed without one copy of the model, of the usual one.",
               [](S s) { return s.goodput->shrunk_speed; })
          .has("without_spare", "Share of time in which no spare node is left.",
               [](S s) { return s.goodput->empty_share; });
  return form;
}

}  // namespace stepcast::sim
