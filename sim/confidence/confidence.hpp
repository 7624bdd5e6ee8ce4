// Fills in how far to trust an answer. What it needs is read when it is first asked, and once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/confidence/evidence.hpp"
#include "sim/confidence/interval.hpp"
#include "sim/confidence/order.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

/// Threads may share one.
class Confidence {
 public:
  /// `session` is borrowed: it answers a user's own runs, and its catalogue holds confidence/. A
  /// catalogue without that gives no bars, and a warning that says so.
  explicit Confidence(Session& session) : session_(session) {}

  /// The bars of step and memory, and whether the runner-up is slower. Throws InputError for a
  /// level that the sources do not allow, and what own_runs.hpp throws.
  void judge(StepReport& report);
  void judge(CollectiveReport& report);

  /// None where the catalogue has no pairs.
  const Order* order();

 private:
  std::string folder() const;
  /// False, and a warning, where there is none.
  bool has_evidence(std::vector<std::string>& warnings);
  /// Read when they are first asked for: a step needs none of collectives.
  const std::vector<Residual>& residuals(std::once_flag& read, EvidenceTable table);
  /// ln(measured / forecast) of the scenario's own runs.
  std::vector<double> own_residuals(const Scenario& scenario);

  /// interval_for(), its basis remembered: the points of a sweep are of few kinds.
  std::optional<Interval> interval(const std::vector<Residual>& known, const Case& forecast,
                                   double level);

  /// The residuals, null those of memory; generation, reach and kind of the case; level.
  using BasisKey =
      std::tuple<const std::vector<Residual>*, std::string, std::string, std::string, double>;

  Session& session_;
  std::once_flag outline_read_, steps_read_, collectives_read_;
  std::optional<Evidence> evidence_;
  std::optional<Order> order_;
  std::mutex remembering_;
  std::map<BasisKey, std::optional<IntervalBasis>> bases_;
};

}  // namespace stepcast::sim
