// What a scenario came to: a step, a collective, or a refusal; and the loop that answers many
// scenarios on several threads, in order and deterministically.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/step_report.hpp"

namespace stepcast::sim {

/// A plan that does not fit in memory, with the parts that it needs.
struct Refused {
  Scenario scenario;
  std::string reason;
};

using Answer = std::variant<StepReport, CollectiveReport, Refused>;

const Scenario& scenario_of(const Answer& answer);

/// What answers one scenario; simulate() and simulate_collective(), or a test's own.
struct Simulator {
  std::function<StepReport(const Scenario&)> step;
  std::function<CollectiveReport(const Scenario&)> collective;
};

/// Answers one scenario. "best" degrees are resolved: powers of two that divide heads and batch,
/// the fastest step that fits in memory, the smaller degrees of equals.
Answer answer(const Scenario& scenario, const Simulator& simulator);

struct Batched {
  std::vector<std::optional<Answer>> answers;  // empty where the run was stopped before
  bool interrupted = false;
};

/// Answers all, on `threads` threads. `stop` is looked at between points; `finished` is called
/// after each, one at a time. An exception of a point ends the whole; that of the first point is
/// thrown.
Batched answer_all(const std::vector<Scenario>& scenarios, const Simulator& simulator,
                   unsigned threads, const std::atomic<bool>& stop,
                   const std::function<void(std::size_t)>& finished);

}  // namespace stepcast::sim
