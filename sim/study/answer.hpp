// What a scenario came to: a step, a collective, or a refusal. Knows no sweep.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "sim/run/session.hpp"
#include "sim/run/step_report.hpp"
#include "sim/search/search.hpp"

namespace stepcast::sim {

class Confidence;

/// A plan that does not fit in memory, with the parts that it needs.
struct Refused {
  Scenario scenario;
  std::string reason;
  std::optional<Bytes> over{};  // of its memory: what the GPU lacks
};

using Answer = std::variant<StepReport, CollectiveReport, Refused>;

const Scenario& scenario_of(const Answer& answer);

/// What answers one scenario: a session, or a test's own.
struct Simulator {
  std::function<StepReport(const Scenario&)> step;
  std::function<CollectiveReport(const Scenario&)> collective;
  // Says how far to trust what is answered; may be empty.
  std::function<void(StepReport&)> judge_step{};
  std::function<void(CollectiveReport&)> judge_collective{};
  // Warns of what NCCL's own choices cost; may be empty.
  std::function<void(StepReport&)> question_nccl{};
  // What bounds the plans of a space; empty: `step` answers each of them.
  std::function<SearchMachine(const SearchSpace&)> machine{};
};
/// The error bars are those of the session's catalogue (sim/confidence).
Simulator simulator_of(Session& session);
Simulator simulator_of(Session& session, std::shared_ptr<Confidence> confidence);

/// What a whole run takes of a step, and its error bar where it has one.
StepFigures figures_of(const StepReport&);
/// Share of the wall clock that makes progress: that of [failures] with its band, or what is
/// stated; never nothing at all.
Band goodput_band(const StepReport&);
/// Fills in what the scenario asks for beside the step, and its warnings: goodput, whole run.
void complete(StepReport&, const Simulator&);
/// Fills in report.whole_run and its warnings.
void add_whole_run(StepReport& report);

/// Answers one scenario. Of keys that say "best", the fastest plan that fits in memory
/// (sim/search), the smaller degrees of equals.
Answer answer(const Scenario& scenario, const Simulator& simulator);

}  // namespace stepcast::sim
