// One step of a scenario, run with a log of every call. Of ranks that are provably alike, the
// first.
#pragma once

#include <memory>

#include "engine/fold.hpp"
#include "engine/path/step_log.hpp"
#include "engine/run.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

class LoggedStep {
 public:
  /// `scenario` must be without noise and admitted. Throws InputError where its ranks, unfolded,
  /// make more calls than a log holds.
  LoggedStep(const Scenario& scenario, Session& session);
  LoggedStep(const LoggedStep&) = delete;

  const Scenario& scenario() const { return scenario_; }
  const BoundStep& bound() const { return bound_; }
  const engine::Fold& fold() const { return fold_; }
  /// Ranks, communicators and links that are alike.
  const engine::Classes& classes() const { return *classes_; }
  const engine::System& system() const { return fold_.system; }
  const engine::StepLog& log() const { return *log_; }
  const engine::RunResult& result() const { return result_; }
  /// The first rank of the whole that a simulated one stands for.
  std::int64_t rank(std::uint32_t simulated) const { return first_[simulated]; }

 private:
  Scenario scenario_;
  BoundStep bound_;
  std::shared_ptr<const engine::Classes> classes_;
  engine::Fold fold_;
  std::vector<std::uint32_t> first_;
  std::unique_ptr<engine::StepLog> log_;
  engine::RunResult result_;
};

/// `system` as it is folded, or as it stands where the scenario says so.
engine::Fold folded(const engine::System& system, const engine::Classes& classes, bool fold);

}  // namespace stepcast::sim
