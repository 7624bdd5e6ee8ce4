// The fastest plans of a space, proven: best-first branch and bound over the full simulator. A plan
// is left out only where memory refuses it or its bound says that it cannot matter; what is near
// it, simulated or not, says nothing (the simulator is not monotone).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/program/shard.hpp"
#include "sim/run/memory_odds.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/rule_tally.hpp"
#include "sim/search/space.hpp"

namespace stepcast::sim {

/// What is made small.
enum class Objective : std::uint8_t { step, energy, dollars };

struct SearchOptions {
  std::size_t top = 10;  // plans whose order is proven
  double near = 0.05;    // and all that lie so near the best
  /// Simulations of plans that run.fits takes, and as many at most of risky ones; 0: as many as the
  /// proof needs.
  std::size_t limit = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  unsigned threads = 1;
  bool all = false;  // simulate whatever fits
  /// Of large spaces some plan that fits first, for who does not wait for the proof.
  bool look_first = false;
  bool look_alone = false;  // and no more, where one was found: nothing is proven then
  /// What cannot be as good as this is left out, also where nothing is found.
  double above = std::numeric_limits<double>::infinity();
  Objective objective = Objective::step;
  /// Where no plan is as likely to fit as run.fits asks, those that more likely fit than not.
  bool risky_if_none = true;
  /// By their place in the order of the bounds: other plans than these are left open, unless the
  /// machine knows them. The shards of a search simulate among them whatever the whole one would.
  Shard share{};
};

/// What no step of a plan comes below.
struct LeastStep {
  Duration time{};
  double tensor_s = 0.0;  // kernels on tensor cores, mean over the ranks

  /// Mean over the GPUs in a step of just that time. A longer one takes more energy: what tensor
  /// cores add is the same, and the rest goes on.
  Watts power(const topology::GpuSpec& gpu) const;
};

/// A plan that was simulated.
struct Found {
  KnobValues knobs;
  StepReport report;
  double bound = 0;  // below `value`
  double value = 0;  // of the objective, a step: seconds, joules or US dollars
};

/// What answers a plan, and bounds its step from below; for tests, others than the session's.
struct SearchMachine {
  std::function<StepReport(const Scenario&)> step;
  /// Called from one thread; empty: nothing is bounded.
  std::function<LeastStep(const DraftPlan&)> bound;
  /// Why the framework cannot be told to run a plan; empty: it can. Asked of plans that would be
  /// simulated.
  std::function<std::string(const Scenario&)> refusal{};
  /// Called now and then with plans walked, or simulated of those that may have to be.
  std::function<void(const char* what, std::size_t done, std::size_t of)> progress{};
  /// Called with each plan that is better than all before.
  std::function<void(const Found&)> better{};
  /// Whether `step` need not simulate a plan; empty: it has to.
  std::function<bool(const Scenario&)> knows{};
  /// Whether it may know more by now; empty: it does not.
  std::function<bool()> look_again{};
  /// How likely plans fit; none: they do or they do not.
  const MemoryOdds* odds = nullptr;
};

/// That of a session, which is borrowed; plans it bounds keep their bases (DraftPlan).
SearchMachine machine_of(Session& session);

/// A plan that does not fit.
struct Miss {
  KnobValues knobs;
  Bytes needed{};
  double p_fits = 0;  // of that
};

/// Plans that more likely fit than not, and not as likely as run.fits asks.
struct RiskyPlans {
  std::size_t plans = 0;      // of those that were looked at
  std::size_t simulated = 0;  // of them, what might have been the fastest
  std::optional<Found> fastest{};
  bool taken = false;          // nothing likelier was found: they are what was
  bool all_looked_at = false;  // and nothing is likelier
};

struct SearchResult {
  std::vector<Found> found;              // by value, equals by knobs
  RiskyPlans risky{};                    // left out of `found`
  std::vector<Miss> misses;              // of plans that memory refuses three that lack least
  std::size_t legal = 0;                 // plans of the space
  std::size_t too_large = 0;             // of them, what memory refuses: more likely too large,
  std::size_t surely_too_large = 0;      // and of those what surely is
  std::size_t left_out = 0;              // bounded away
  std::size_t refused = 0;               // that the framework cannot be told to run
  std::string refusal{};                 // the first such plan's reason
  std::vector<RefusedByRule> by_rule{};  // combinations that are no legal plan
  std::size_t open = 0;                  // neither: interrupted or limited
  double least_open = 0;  // the smallest bound of what is open, in the objective's unit
  bool walked = true;     // false: interrupted before all plans were counted
  bool ended = false;     // early, by the clock or the user
  /// Of the first `top` and all near them; and of the first alone.
  bool proven() const { return walked && open == 0; }
  bool best_is_proven() const {
    return walked && (open == 0 || (!found.empty() && least_open > found.front().value));
  }
  std::size_t simulated() const { return found.size() + risky.simulated; }
  /// Plans within `near` of the best.
  std::size_t within(double near) const;
};

/// "tensor" of "plan.tensor"; and the word of a value there.
std::string_view knob_name(const Knob&);
std::string knob_word(const SearchSpace&, const Knob&, std::int64_t value);
std::string knob_word(const SearchSpace&, const Knob&, const KnobValues&);
/// "tensor 4, pipeline 8, data zero1": the knobs of which the space has a choice.
std::string plan_words(const SearchSpace&, const KnobValues&);

/// `stop` ends it early: what was found until then is the answer.
SearchResult search_plans(const SearchSpace&, const SearchMachine&, const SearchOptions&,
                          const std::atomic<bool>& stop);

}  // namespace stepcast::sim
