// Answers what a comparison asks: whole forecasts for its sides, steps alone for the points between
// them. Knows no table.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/compare/attribution.hpp"
#include "sim/compare/side.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

/// A side before it is answered.
struct Asked {
  std::string name;
  std::optional<TomlValue> document{};  // none: a result, in `known`
  std::optional<Side> known{};
};

struct RunnerOptions {
  unsigned threads = 1;
  Progress::Style progress = Progress::Style::none;
  bool ignore_memory = false;
  const std::atomic<bool>& stop = stop_requested();
};

class Runner {
 public:
  /// `session` and what `options` refers to are borrowed.
  Runner(Session& session, const RunnerOptions& options);
  Runner(Session& session, const RunnerOptions& options, std::shared_ptr<Confidence> confidence);

  Scenario read(const TomlValue& document) const;

  /// All sides, labelled; a scenario that cannot be is one with its reason. A mistake in all of
  /// them is the user's, and thrown. Throws Failure when it is interrupted.
  std::vector<Side> sides(std::vector<Asked> asked);

  /// The steps of these documents, whether they fit in memory or not; of those with other tokens
  /// than the first, the time of as many.
  std::vector<Outcome> outcomes(const std::vector<TomlValue>& documents);

  /// None where the catalogue has no pairs of plans.
  std::optional<Order> order();

 private:
  Side side(Asked asked);
  void each(std::size_t count, const std::function<void(std::size_t)>& work);

  Session& session_;
  RunnerOptions options_;
  std::shared_ptr<Confidence> confidence_;
  Simulator simulator_;
};

}  // namespace stepcast::sim
