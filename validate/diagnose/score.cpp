#include "validate/diagnose/score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "engine/arithmetic.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "validate/diagnose/attribution.hpp"
#include "validate/diagnose/clues.hpp"

namespace stepcast::validate {
namespace {

/// Plans that faults are put into: small models, so that a step of 512 ranks is soon run.
struct Base {
  const char *name, *model, *node, *data, *batch, *framework;
  std::int64_t layers, sequence, nodes, tensor = 1, pipeline = 1, expert = 1;

  std::string toml() const {
    std::string out = fmt::format(
        "[model]\nname = \"{}\"\nlayers = {}\nsequence = {}\n[cluster]\nnode = \"{}\"\n"
        "nodes = {}\n[batch]\n{}\n[software]\nframework = \"{}\"\n[plan]\ndata = \"{}\"\n",
        model, layers, sequence, node, nodes, batch, framework, data);
    if (tensor > 1) out += fmt::format("tensor = {}\nsequence_parallel = true\n", tensor);
    if (pipeline > 1) out += fmt::format("pipeline = {}\n", pipeline);
    if (expert > 1) out += fmt::format("expert = {}\n[routing]\nkind = \"balanced\"\n", expert);
    return out;
  }
};
constexpr Base bases[] = {
    {"FSDP, 16 ranks", "llama3-8b", "dgx-h100", "zero3", "local = 1", "pytorch-fsdp2", 16, 4096, 2},
    {"tensor 4 x pipeline 2, 32 ranks", "llama3-8b", "dgx-h100", "zero1", "global = 32",
     "megatron-core", 16, 4096, 4, 4, 2},
    {"data parallel, 64 ranks", "llama2-1b", "dgx-a100", "zero1", "local = 2", "megatron-core", 22,
     2048, 8},
    {"tensor 8 x pipeline 4, 128 ranks", "llama3-70b", "dgx-h100", "zero1", "global = 32",
     "megatron-core", 16, 4096, 16, 8, 4},
    {"tensor 8 x data 64, 512 ranks", "llama3-70b", "dgx-h100", "zero1", "global = 64",
     "megatron-core", 4, 4096, 64, 8},
    {"expert 8, 16 ranks", "mixtral-8x7b", "dgx-h100", "zero1", "local = 1", "megatron-core", 4,
     4096, 2, 1, 1, 8},
};

/// Whether the base can have the fault: one stage has no imbalance, a dense model no experts.
bool can_have(const Base& base, Fault fault) {
  if ((fault == Fault::experts) != (base.expert > 1)) return false;
  return fault != Fault::imbalance || base.pipeline > 1;
}

bool names_right(Fault fault, CauseKind cause) {
  switch (fault) {
    case Fault::none:
      return false;
    case Fault::slow_gpu:
      return cause == CauseKind::slow_rank;
    case Fault::slow_nic:
      return cause == CauseKind::slow_link;
    case Fault::host_pause:
      return cause == CauseKind::host_pause;
    case Fault::data_stall:
      return cause == CauseKind::data_loader;
    case Fault::copies:
      return cause == CauseKind::copies;
    case Fault::protocol:
      return cause == CauseKind::wrong_protocol;
    case Fault::imbalance:
      return cause == CauseKind::stage_imbalance;
    case Fault::launch_blocking:
      return cause == CauseKind::launch_blocking;
    case Fault::host_bound:
      return cause == CauseKind::host_bound;
    case Fault::recompute:
      return cause == CauseKind::recompute;
    case Fault::unfused:
      return cause == CauseKind::unfused;
    case Fault::slow_attention:
      return cause == CauseKind::slow_attention;
    case Fault::fp32_products:
      return cause == CauseKind::fp32_products;
    case Fault::slow_kernels:
      return cause == CauseKind::slow_kernels;
    case Fault::clocks:
      return cause == CauseKind::clocks;
    case Fault::experts:
      return cause == CauseKind::expert_imbalance;
    case Fault::stalls:
      return cause == CauseKind::stalls;
    case Fault::drift:
      return cause == CauseKind::drift;
  }
  return false;
}

FaultOutcome judged(const FaultCase& one, const Attribution& found, double step, double lengthened,
                    std::optional<std::int64_t> rank) {
  FaultOutcome out{one.fault, one.base, one.seed, step, lengthened};
  for (const Cause& cause : found.causes)
    out.causes += fmt::format("{}{} {}", out.causes.empty() ? "" : ", ", words_of(cause.kind).key,
                              milliseconds(cause.seconds));
  const Cause& first = found.causes.front();
  if (first.kind == CauseKind::not_explained) return out;
  out.first = first.kind;
  out.named = first.seconds;
  out.cause_right = names_right(one.fault, first.kind);
  out.close = std::abs(first.seconds - lengthened) <= close_enough * lengthened;
  if (rank) out.rank_right = first.ranks == std::vector<std::int64_t>{*rank};
  return out;
}

FaultOutcome outcome_of(const FaultCase& one, FaultyRun run, sim::Session& session) {
  const ExpectedStep expected = expected_step(one.scenario, session, true);
  const auto under = [&](const std::string& name, const std::string& value) {
    return exchanges_under(expected.report.scenario, session, name, value);
  };
  const Attribution found = attribute(parts_of(std::move(run.traces), 1), expected, under);
  return judged(one, found, run.step, run.lengthened, run.rank);
}

/// Of a log, which shows no rank.
FaultOutcome outcome_of_log(const FaultCase& one, sim::Session& session) {
  const FaultyLog run = log_with_fault(one, session);
  StepLog log;
  log.step_s = run.step_s;
  Attribution found;
  found.measured = run.step;
  found.expected = run.expected;
  found.causes.push_back({CauseKind::not_explained, run.step - run.expected});
  if (const auto series = series_of(log, 0)) add_series(found, *series);
  return judged(one, found, run.step, run.lengthened, std::nullopt);
}

/// What is drawn for a place in the list: fault, first plan, seed.
struct Drawn {
  Fault fault{};
  std::size_t base = 0;
  std::uint64_t seed = 1;
};

/// Another draw, and after three another plan, where the fault hardly lengthens the step.
FaultOutcome drawn_outcome(const Drawn& drawn, const std::vector<sim::Scenario>& scenarios,
                           sim::Session& session) {
  constexpr std::size_t most_draws = 20, draws_of_a_plan = 3;
  constexpr std::uint64_t next_draw = 1'000'003;
  for (std::size_t draw = 0;; ++draw) {
    const std::size_t base = (drawn.base + draw / draws_of_a_plan) % std::size(bases);
    if (!can_have(bases[base], drawn.fault)) continue;
    const FaultCase one{drawn.fault, scenarios[base], bases[base].name,
                        drawn.seed + draw * next_draw};
    if (is_of_log(drawn.fault)) return outcome_of_log(one, session);
    FaultyRun run = run_with_fault(one, session);
    const bool lengthens = run.lengthened >= least_fault * (run.step - run.lengthened);
    if (!lengthens && drawn.fault != Fault::none && draw < most_draws) continue;
    return outcome_of(one, std::move(run), session);
  }
}

struct Tally {
  double runs = 0, cause = 0, close = 0, ranks = 0, ranks_right = 0, named = 0;
  std::vector<double> errors{};

  void add(const FaultOutcome& one) {
    ++runs;
    cause += one.cause_right ? 1 : 0;
    close += one.close ? 1 : 0;
    named += one.first ? 1 : 0;
    if (one.rank_right) ++ranks, ranks_right += *one.rank_right ? 1 : 0;
    if (one.cause_right) errors.push_back(std::abs(one.named / one.lengthened - 1));
  }
};

std::map<Fault, Tally> tallies_of(const std::vector<FaultOutcome>& outcomes) {
  std::map<Fault, Tally> out;
  for (const FaultOutcome& one : outcomes) out[one.fault].add(one);
  return out;
}

Tally of_faults(const std::vector<FaultOutcome>& outcomes) {
  Tally out;
  for (const FaultOutcome& one : outcomes)
    if (one.fault != Fault::none) out.add(one);
  return out;
}

sim::TableCell share_cell(double part, double whole) {
  if (whole == 0) return {};
  return {sim::percent(part / whole), part / whole};
}

}  // namespace

std::vector<FaultOutcome> diagnose_faults(const sim::Catalogue& catalogue, std::int64_t each,
                                          std::int64_t healthy, std::uint64_t seed,
                                          unsigned threads) {
  sim::Session session(catalogue);
  std::vector<sim::Scenario> scenarios;
  for (const Base& base : bases) {
    scenarios.push_back(sim::read_scenario(sim::read_toml(base.toml(), base.name), catalogue));
    scenarios.back().run.ignore_memory = true;
  }
  std::vector<Drawn> all;
  const auto add = [&](Fault fault) {
    all.push_back({fault, all.size() % std::size(bases), seed + all.size()});
  };
  for (int fault = 1; fault < num_faults; ++fault)
    for (std::int64_t i = 0; i < each; ++i) add(static_cast<Fault>(fault));
  for (std::int64_t i = 0; i < healthy; ++i) add(Fault::none);
  std::vector<FaultOutcome> out(all.size());
  const std::atomic<bool> stop = false;
  sim::for_each_index(all.size(), threads, stop,
                      [&](std::size_t i) { out[i] = drawn_outcome(all[i], scenarios, session); });
  return out;
}

bool good_enough(const std::vector<FaultOutcome>& outcomes) {
  const Tally all = of_faults(outcomes);
  const auto tallies = tallies_of(outcomes);
  const auto healthy = tallies.find(Fault::none);
  return all.cause >= 0.9 * all.runs && all.ranks_right >= 0.95 * all.ranks &&
         all.close >= 0.9 * all.runs && (healthy == tallies.end() || healthy->second.named == 0);
}

sim::ToldSection told_of(const std::vector<FaultOutcome>& outcomes) {
  sim::ToldSection out;
  const Tally all = of_faults(outcomes);
  const auto tallies = tallies_of(outcomes);
  sim::TextTable faults{{"fault", "fault", sim::TextTable::Align::left},
                        {"runs", "runs"},
                        {"first cause right", "first_cause_right"},
                        {"slow rank found", "slow_rank_found"},
                        {"time within 20 %", "time_within"},
                        {"median error", "median_error"}};
  const auto row = [&](const std::string& name, const Tally& tally) {
    faults.row({name, sim::counted(static_cast<std::int64_t>(tally.runs)),
                share_cell(tally.cause, tally.runs), share_cell(tally.ranks_right, tally.ranks),
                share_cell(tally.close, tally.runs),
                tally.errors.empty() ? sim::TableCell() : share_cell(median(tally.errors), 1)});
  };
  for (const auto& [fault, tally] : tallies)
    if (fault != Fault::none) row(std::string(word_of(fault)), tally);
  row("all", all);
  out.table("faults", faults);
  const auto healthy = tallies.find(Fault::none);
  if (healthy != tallies.end()) {
    const Tally& none = healthy->second;
    out.say();
    out.say(
        fmt::format("{} healthy runs with noise: a cause is named on {}.", none.runs, none.named));
    out.keep("summary/healthy", static_cast<std::int64_t>(none.runs));
    out.keep("summary/false_alarms", static_cast<std::int64_t>(none.named));
  }
  out.keep("summary/good_enough", good_enough(outcomes));
  sim::TextTable runs;
  for (const char* key : {"fault", "plan", "seed", "step_s", "lengthened_s", "first_cause",
                          "first_cause_s", "causes", "cause_right", "rank_right", "close"})
    runs.detail(key);
  for (const FaultOutcome& one : outcomes)
    runs.row(
        {std::string(word_of(one.fault)), one.base,
         sim::counted(static_cast<std::int64_t>(one.seed)), sim::rounded(one.step),
         sim::rounded(one.lengthened),
         one.first ? std::string(words_of(*one.first).key) : std::string("none"),
         sim::rounded(one.named), one.causes, sim::kept(one.cause_right),
         one.rank_right ? sim::kept(*one.rank_right) : sim::kept(nullptr), sim::kept(one.close)},
        sim::TextTable::For::files);
  out.table("runs", runs);
  return out;
}

}  // namespace stepcast::validate
