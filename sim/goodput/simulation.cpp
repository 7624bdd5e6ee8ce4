#include "sim/goodput/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/check.hpp"
#include "engine/jitter.hpp"
#include "sim/goodput/checkpoint_grid.hpp"

namespace stepcast::sim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Instants of a Poisson process, and the draws that go with them.
class EventStream {
 public:
  EventStream(double per_second, std::uint64_t seed, std::uint64_t run, std::uint64_t stream)
      : per_second_(per_second),
        // Odd factors: different triples, different seeds.
        random_(seed * 0x9e3779b97f4a7c15U + run * 0xbf58476d1ce4e5b9U +
                stream * 0x94d049bb133111ebU) {
    draw_next(0.0);
  }
  double next() const { return next_; }
  void draw_next(double now) {
    next_ = per_second_ > 0.0 ? now - std::log1p(-uniform()) / per_second_ : never;
  }
  void shift(double by) { next_ += by; }
  /// In [0, 1).
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  double per_second_, next_ = never;
  std::mt19937_64 random_;
};

/// The earliest of a few instants.
double first_of(const std::vector<double>& instants) {
  const auto first = std::min_element(instants.begin(), instants.end());
  return first == instants.end() ? never : *first;
}
void take_first(std::vector<double>& instants) {
  instants.erase(std::min_element(instants.begin(), instants.end()));
}

class FailingRun {
 public:
  FailingRun(const FailureProcess& process, std::uint64_t seed, std::uint64_t number)
      : process_(process),
        grid_(process.tiers),
        slow_(process.slow.per_second, seed, number, 0),
        flaps_(process.flaps_per_second, seed, number, 1) {
    for (std::size_t i = 0; i < process.interruptions.size(); ++i)
      interruptions_.emplace_back(process.interruptions[i].per_second, seed, number, 2 + i);
  }

  RunOutcome run(double wall_s) {
    while (now_ < wall_s) {
      const double next = std::clamp(next_event(), now_, wall_s);
      pass(next - now_);
      now_ = next;
      if (now_ < wall_s) handle();
    }
    outcome_.seconds.training = grid_.position_s();
    return outcome_;
  }

 private:
  enum class Phase : std::uint8_t { up, flap, down, waiting };

  double next_event() const {
    double next = std::min(first_of(returns_), phase_ == Phase::up ? never : phase_end_);
    if (phase_ == Phase::waiting) return next;  // nothing runs that could fail
    for (const EventStream& stream : interruptions_) next = std::min(next, stream.next());
    next = std::min({next, slow_.next(), flaps_.next()});
    return phase_ == Phase::up ? std::min(next, first_of(notices_)) : next;
  }

  void pass(double wall_s) {
    WallTime& seconds = outcome_.seconds;
    switch (phase_) {
      case Phase::up: {
        const auto passed = grid_.advance(wall_s, speed());
        seconds.checkpoint += passed.checkpoint_s;
        seconds.slowed += wall_s - passed.checkpoint_s - passed.training_s;
        return;
      }
      case Phase::flap:
        seconds.flapped += wall_s;
        return;
      case Phase::down:
        seconds.down += wall_s;
        return;
      case Phase::waiting:
        seconds.waiting += wall_s;
        for (EventStream& stream : interruptions_) stream.shift(wall_s);
        slow_.shift(wall_s);
        flaps_.shift(wall_s);
        return;
    }
  }

  void handle() {
    if (phase_ != Phase::up && phase_end_ <= now_) return end_phase();
    if (first_of(returns_) <= now_) return bring_back();
    if (phase_ == Phase::waiting) return;
    for (std::size_t i = 0; i < interruptions_.size(); ++i)
      if (interruptions_[i].next() <= now_) return interrupt(i);
    if (slow_.next() <= now_) {
      slow_.draw_next(now_);
      notices_.push_back(now_ + process_.slow.noticed_s);
    } else if (flaps_.next() <= now_) {
      flaps_.draw_next(now_);
      if (phase_ == Phase::up) begin(Phase::flap, process_.flap_s);
    } else {
      swap_slow_node();
    }
  }

  void begin(Phase phase, double wall_s) {
    phase_ = phase;
    phase_end_ = now_ + wall_s;
  }

  void end_phase() {
    // What was noticed meanwhile is swapped with the rest.
    if (phase_ == Phase::down)
      while (first_of(notices_) <= now_) take_first(notices_);
    phase_ = Phase::up;
  }

  void interrupt(std::size_t kind) {
    EventStream& stream = interruptions_[kind];
    stream.draw_next(now_);
    ++outcome_.interruptions;
    const double drawn = stream.uniform();
    std::size_t tier = 0;
    while (tier + 1 < process_.tiers.size() && drawn >= process_.tiers[tier].survives) ++tier;
    outcome_.seconds.lost += grid_.roll_back(tier, speed());
    restart(process_.interruptions[kind].down_s + process_.tiers[tier].load_s,
            process_.interruptions[kind].takes_node);
  }

  /// Down, after waiting for a node where none is left.
  void restart(double down_s, bool takes_node) {
    if (takes_node && process_.pool) returns_.push_back(now_ + process_.pool->repair_s);
    if (missing() == 0 || process_.pool->lost_speed) return begin(Phase::down, down_s);
    after_waiting_s_ = down_s;
    begin(Phase::waiting, never);
  }

  void bring_back() {
    const std::int64_t before = missing();
    take_first(returns_);
    if (phase_ == Phase::waiting && missing() == 0)
      begin(Phase::down, after_waiting_s_);
    else if (phase_ == Phase::up && before > 0)
      begin(Phase::down, process_.pool->restart_s);  // with its checkpoint: nothing is lost
  }

  void swap_slow_node() {
    take_first(notices_);
    restart(process_.slow.restart_s, true);
  }

  std::int64_t missing() const {
    if (!process_.pool) return 0;
    return std::max<std::int64_t>(0, std::ssize(returns_) - process_.pool->spares);
  }

  std::int64_t losses() const {
    const std::int64_t each = process_.pool->nodes_per_loss;
    return (missing() + each - 1) / each;
  }

  double speed() const {
    double speed = notices_.empty() ? 1.0 : process_.slow.speed;
    if (process_.pool && process_.pool->lost_speed)
      speed *= std::max(0.01, 1.0 - static_cast<double>(losses()) * *process_.pool->lost_speed);
    return speed;
  }

  const FailureProcess& process_;
  CheckpointGrid grid_;
  std::vector<EventStream> interruptions_;
  EventStream slow_, flaps_;
  std::vector<double> notices_, returns_;  // of slow nodes, of repaired ones
  Phase phase_ = Phase::up;
  double now_ = 0.0, phase_end_ = never, after_waiting_s_ = 0.0;
  RunOutcome outcome_;
};

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Rates of interruptions at this quantile of those between clusters.
FailureProcess drawn(FailureProcess process, double sigma, double probability) {
  const double factor = std::exp(sigma * engine::normal_quantile(probability));
  for (Interruption& i : process.interruptions) i.per_second *= factor;
  return process;
}

}  // namespace

WallTime& WallTime::operator+=(const WallTime& o) {
  training += o.training;
  checkpoint += o.checkpoint;
  lost += o.lost;
  down += o.down;
  waiting += o.waiting;
  slowed += o.slowed;
  flapped += o.flapped;
  return *this;
}

WallTime operator*(WallTime t, double k) {
  return {t.training * k, t.checkpoint * k, t.lost * k,   t.down * k,
          t.waiting * k,  t.slowed * k,     t.flapped * k};
}

RunOutcome simulate_failures(const FailureProcess& process, double wall_s, std::uint64_t seed,
                             std::uint64_t number) {
  return FailingRun(process, seed, number).run(wall_s);
}

FailureBand simulate_failures(const FailureProcess& process, const FailureStudy& study) {
  expects(study.runs > 0 && study.wall_s > 0.0, "runs of some length");
  FailureBand out;
  std::vector<double> training;
  const auto runs = static_cast<std::uint64_t>(study.runs);
  for (std::uint64_t i = 0; i < runs; ++i) {
    const RunOutcome run = simulate_failures(process, study.wall_s, study.seed, i);
    out.shares += run.seconds * (1.0 / study.wall_s);
    out.interruptions += static_cast<double>(run.interruptions);
    training.push_back(run.seconds.training / study.wall_s);
  }
  const double mean = 1.0 / static_cast<double>(runs);
  out.shares = out.shares * mean;
  out.interruptions *= mean;
  // Each quantile of the rate once, each with a run of its own.
  for (std::uint64_t i = 0; study.rate_sigma > 0.0 && i < runs; ++i) {
    const double probability = (static_cast<double>(i) + 0.5) * mean;
    const FailureProcess other = drawn(process, study.rate_sigma, probability);
    training[i] = simulate_failures(other, study.wall_s, study.seed, runs + i).seconds.training /
                  study.wall_s;
  }
  std::sort(training.begin(), training.end());
  out.low = quantile(training, (1.0 - study.level) / 2.0);
  out.high = quantile(training, (1.0 + study.level) / 2.0);
  return out;
}

}  // namespace stepcast::sim
