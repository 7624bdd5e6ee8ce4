#include "sim/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "engine/check.hpp"
#include "sim/goal/whole_run.hpp"
#include "sim/program/parallel.hpp"
#include "sim/run/measured_machine.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/run/power.hpp"
#include "sim/search/step_bound.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t most_misses = 3;
constexpr std::size_t batch_of_simulations = 8;    // at a time, whatever the threads
constexpr std::size_t between_looks = 4096;        // plans, at the clock and the user's interrupt
constexpr std::size_t few_combinations = 100'000;  // a whole walk of so many takes no longer

/// What a plan may need: to be taken, to be risky at least, and not to be surely too large.
struct Room {
  Bytes taken{}, tried{}, possible{};
};

struct Bounded {
  double bound = 0;
  KnobValues knobs;
};

bool sooner(const Bounded& a, const Bounded& b) {
  return std::tie(a.bound, a.knobs) < std::tie(b.bound, b.knobs);
}

class Search {
 public:
  /// `risky`: plans that more likely fit than not are taken for such as do.
  Search(const SearchSpace& space, const SearchMachine& machine, const SearchOptions& options,
         const std::atomic<bool>& stop, bool risky)
      : space_(space), machine_(machine), options_(options), stop_(stop), take_risky_(risky) {}

  SearchResult run() {
    if (options_.look_first && options_.limit == 0 && !options_.share.is_part() &&
        space_.combinations() > few_combinations)
      look_first();
    if (options_.look_alone && first_) {
      result_.walked = false;
      result_.ended = true;
      take_first();
      tell_odds(result_.found.front());
      return std::move(result_);
    }
    bound_all();
    std::ranges::sort(queue_, sooner);
    std::size_t next = 0;
    while (next < queue_.size() && !proven_from(next) && !ended()) next = simulate_from(next);
    result_.ended = !result_.walked || (next < queue_.size() && !proven_from(next) && late());
    settle(next);
    take_first();
    for (Miss& miss : result_.misses) {
      const Scenario scenario = space_.scenario_of(miss.knobs);
      miss.needed = memory_figures(scenario).needed();
      miss.p_fits = odds().fits(scenario, miss.needed);
    }
    std::ranges::sort(result_.misses, [](const Miss& a, const Miss& b) {
      return std::tie(a.needed, a.knobs) < std::tie(b.needed, b.knobs);
    });
    for (Found& found : result_.found) tell_odds(found);
    if (result_.risky.fastest) tell_odds(*result_.risky.fastest);
    return std::move(result_);
  }

 private:
  bool late() const {
    return stop_ || (options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline);
  }
  bool ended() const {
    return (options_.limit > 0 && result_.found.size() >= options_.limit) || late();
  }

  double least_value(const LeastStep& least, const Scenario& base) const {
    return value_of(base, least.power(base.node.gpu), seconds(least.time));
  }

  /// Of a step in which each GPU draws `gpu`. Joules: of the whole cluster, without the building.
  double value_of(const Scenario& s, Watts gpu, double step_s) const {
    switch (options_.objective) {
      case Objective::step:
        return step_s;
      case Objective::energy:
        return power_at_work(s, gpu).total().value * step_s;
      case Objective::dollars:
        if (const auto dollars = dollars_of_step(s, gpu, step_s)) return dollars->value;
        throw InputError(s.origin, "no price of " + s.node.gpu.name, "--price \"2.5 USD/h\"");
    }
    throw BrokenPromise("unknown objective");
  }

  const MemoryOdds& odds() const {
    static const MemoryOdds none;
    return machine_.odds != nullptr ? *machine_.odds : none;
  }

  void tell_odds(Found& found) const {
    StepReport& report = found.report;
    replay(report.memory, report.scenario);
    report.p_fits = odds().fits(report.scenario, report.memory.needed());
  }

  const Room& room_of(const Scenario& base) {
    const auto [at, isnew] = rooms_.try_emplace(&base);
    if (isnew) {
      Room& room = at->second;
      room.tried = odds().most(base, base.run.left_out_below());
      room.taken = take_risky_ ? room.tried : odds().most(base, base.run.fits);
      room.tried = std::max(room.tried, room.taken);
      room.possible = odds().most(base, RunOptions{}.refused_below());
    }
    return at->second;
  }

  /// Some plan that fits, from the few that most likely do.
  void look_first() {
    space_.walk_few([&](const KnobValues& c, const DraftPlan& plan) {
      bound(c, plan);
      return !late();
    });
    std::ranges::sort(queue_, sooner);
    std::size_t next = 0;
    while (next < queue_.size() && result_.found.empty() && !late()) next = simulate_from(next);
    if (!result_.found.empty()) first_ = std::move(result_.found.front());
    result_ = {};
    queue_.clear();
  }

  /// A whole search has found what look_first() did, or better.
  void take_first() {
    if (!first_ || !result_.ended) return;
    if (result_.found.empty() || first_->value < result_.found.front().value)
      take(*std::move(first_));
  }

  void bound(const KnobValues& c, const DraftPlan& plan) {
    const LeastStep least = machine_.bound ? machine_.bound(plan) : LeastStep{};
    queue_.push_back({least_value(least, plan.base), c});
  }

  /// Memory is not asked here: most plans are left out by their bound.
  void bound_all() {
    RuleTally tally;
    const auto visit = [&](const KnobValues& c, const DraftPlan& plan) {
      if (++result_.legal % between_looks == 0) {
        if (machine_.progress) machine_.progress("plans bounded", result_.legal, 0);
        if (ended()) return result_.walked = false;
      }
      bound(c, plan);
      return true;
    };
    space_.walk(visit, &tally);
    result_.by_rule = tally.by_rule();
  }

  void refuse(const Miss& miss, const Room& room) {
    ++result_.too_large;
    if (miss.needed > room.possible) ++result_.surely_too_large;
    auto& misses = result_.misses;
    const auto less = [](const Miss& a, const Miss& b) {
      return std::tie(a.needed, a.knobs) < std::tie(b.needed, b.knobs);
    };
    misses.insert(std::ranges::upper_bound(misses, miss, less), miss);
    if (misses.size() > most_misses) misses.pop_back();
  }

  /// Whether nothing from `next` on can be among the first `top` or near the best.
  bool proven_from(std::size_t next) const {
    const auto& found = result_.found;
    if (queue_[next].bound > options_.above) return true;
    if (options_.all || found.empty()) return false;
    const double kth = found.size() < options_.top ? std::numeric_limits<double>::infinity()
                                                   : found[options_.top - 1].value;
    return queue_[next].bound > std::max(kth, (1 + options_.near) * found.front().value);
  }

  /// What became of a plan; nothing of it: it is another shard's, and not known.
  struct Tried {
    std::optional<Found> found{};
    std::optional<Miss> missed{};
    std::string refusal{};
    bool risky = false;
    bool open() const { return !found && !missed && !risky && refusal.empty(); }
  };

  Tried try_plan(std::size_t place, const Room& room) const {
    const Bounded& one = queue_[place];
    Scenario scenario = space_.scenario_of(one.knobs);
    Tried out;
    const bool other = !options_.share.has(place) && !(machine_.knows && machine_.knows(scenario));
    if (other && options_.share.is_part()) return out;  // whose it is finds out the rest
    if (machine_.refusal) out.refusal = machine_.refusal(scenario);
    if (!out.refusal.empty()) return out;
    if (!scenario.run.ignore_memory) {
      const workloads::MemoryFigures memory = fullest_memory(scenario);
      out.risky = !fits_in(room.taken, scenario, memory);
      if (out.risky && !(room.taken < room.tried && fits_in(room.tried, scenario, memory))) {
        out.risky = false;
        out.missed = Miss{one.knobs, memory.total()};
        return out;
      }
      if (out.risky && one.bound >= risky_below_) return out;
    }
    if (other) {
      out.risky = false;
      return out;
    }
    scenario.run.memory_is_known = true;
    try {
      out.found = Found{one.knobs, machine_.step(scenario), one.bound, 0};
      out.found->report.scenario.run.memory_is_known = false;
      const StepReport& r = out.found->report;
      out.found->value = value_of(r.scenario, r.power_per_gpu, seconds(r.step_time));
    } catch (const NoFeasiblePlan&) {  // a machine with a memory of its own
      out.found.reset();
      out.risky = false;
      out.missed = Miss{one.knobs, fullest_memory(scenario).total()};
    }
    return out;
  }

  /// All at once, kept in their order.
  void try_plans(const std::vector<std::size_t>& places) {
    std::vector<Tried> tried(places.size());
    std::vector<const Room*> rooms;
    for (const std::size_t place : places)
      rooms.push_back(&room_of(space_.base(queue_[place].knobs)));
    // A risky plan is told of where it is faster than all others.
    risky_below_ = std::numeric_limits<double>::infinity();
    if (!result_.found.empty()) risky_below_ = result_.found.front().value;
    if (result_.risky.fastest) risky_below_ = std::min(risky_below_, result_.risky.fastest->value);
    if (options_.limit > 0 && result_.risky.simulated + places.size() > options_.limit)
      risky_below_ = 0;
    const std::atomic<bool> to_the_end{false};
    for_each_index(places.size(), options_.threads, to_the_end,
                   [&](std::size_t i) { tried[i] = try_plan(places[i], *rooms[i]); });
    for (std::size_t i = 0; i < tried.size(); ++i) {
      Tried& one = tried[i];
      if (one.open()) elsewhere_.push_back(places[i]);
      if (!one.refusal.empty() && result_.refused++ == 0) result_.refusal = one.refusal;
      if (one.missed) refuse(*one.missed, *rooms[i]);
      if (one.risky) ++result_.risky.plans;
      if (one.found) one.risky ? take_risky(*std::move(one.found)) : take(*std::move(one.found));
    }
  }

  void take_risky(Found found) {
    RiskyPlans& risky = result_.risky;
    ++risky.simulated;
    if (!risky.fastest ||
        std::tie(found.value, found.knobs) < std::tie(risky.fastest->value, risky.fastest->knobs))
      risky.fastest = std::move(found);
  }

  /// The next plans by bound: of a share as many as of the whole, so that the whole search looks at
  /// its proof wherever a share does. Returns the first that was not taken.
  std::size_t simulate_from(std::size_t next) {
    std::size_t end = std::min(queue_.size(), next + batch_of_simulations * options_.share.of);
    if (options_.limit > 0) end = std::min(end, next + (options_.limit - result_.found.size()));
    std::vector<std::size_t> places(end - next);
    std::iota(places.begin(), places.end(), next);
    try_plans(places);
    if (machine_.progress) machine_.progress("plans simulated", result_.simulated(), end);
    // What others have found since narrows what is left.
    if (!options_.all && !elsewhere_.empty() && machine_.look_again && machine_.look_again())
      try_plans(std::exchange(elsewhere_, {}));
    return end;
  }

  void take(Found found) {
    auto& all = result_.found;
    const auto less = [](const Found& a, const Found& b) {
      return std::tie(a.value, a.knobs) < std::tie(b.value, b.knobs);
    };
    const bool better = !least_ || found.value < *least_;
    if (better) least_ = found.value;
    if (better && machine_.better) machine_.better(found);
    all.insert(std::ranges::upper_bound(all, found, less), std::move(found));
  }

  void leave_open(double bound, std::size_t plans) {
    result_.least_open = result_.open > 0 ? std::min(result_.least_open, bound) : bound;
    result_.open += plans;
  }

  void settle(std::size_t next) {
    for (const std::size_t place : elsewhere_) leave_open(queue_[place].bound, 1);
    const std::size_t left = queue_.size() - next;
    if (left == 0) return;
    if (proven_from(next))
      result_.left_out = left;
    else
      leave_open(queue_[next].bound, left);
  }

  const SearchSpace& space_;
  const SearchMachine& machine_;
  const SearchOptions& options_;
  const std::atomic<bool>& stop_;
  std::map<const Scenario*, Room> rooms_;  // by base
  std::vector<Bounded> queue_;
  bool take_risky_ = false;
  double risky_below_ = 0;              // value from which on no risky plan is simulated
  std::optional<Found> first_;          // of look_first()
  std::optional<double> least_;         // value of what was found, then too
  std::vector<std::size_t> elsewhere_;  // places of plans that are left to other shards
  SearchResult result_;
};

}  // namespace

std::size_t SearchResult::within(double near) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      found, [&](const Found& f) { return f.value <= (1 + near) * found.front().value; }));
}

Watts LeastStep::power(const topology::GpuSpec& gpu) const {
  if (time <= Duration{}) return gpu.idle;
  constexpr double rounding = 1e-9;  // of sums of seconds
  return mean_power(gpu, {.tensor = tensor_s / seconds(time)}) * (1 - rounding);
}

SearchMachine machine_of(Session& session) {
  auto bounds = std::make_shared<std::map<const Scenario*, std::unique_ptr<StepBound>>>();
  SearchMachine out;
  out.step = [&](const Scenario& s) { return session.step(s); };
  out.bound = [&session, bounds](const DraftPlan& c) {
    std::unique_ptr<StepBound>& bound = (*bounds)[&c.base];
    if (!bound) {
      Scenario base = c.base;
      use_measurements(base, *session.rows_for(base));
      bound = std::make_unique<StepBound>(base, session.network(base), session.kernels(base));
    }
    const StepBound::Terms least = bound->of(c.plan, c.batch);
    return LeastStep{least.longest(), least.tensor_s};
  };
  out.odds = &session.memory_odds();
  return out;
}

std::string_view knob_name(const Knob& knob) {
  const std::string_view key(knob.key);
  return key.substr(key.find('.') + 1);
}

std::string knob_word(const SearchSpace& space, const Knob& knob, std::int64_t value) {
  return knob.place() == framework_knob
             ? space.bases()[static_cast<std::size_t>(value)].software.framework
             : knob.word(value);
}

std::string knob_word(const SearchSpace& space, const Knob& knob, const KnobValues& values) {
  return knob_word(space, knob, knob.in(values));
}

std::string plan_words(const SearchSpace& space, const KnobValues& c) {
  std::string out;
  for (const Knob& knob : knobs())
    if (space.values_of(knob).size() > 1)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", knob_name(knob),
                         knob_word(space, knob, c));
  return out;
}

SearchResult search_plans(const SearchSpace& space, const SearchMachine& machine,
                          const SearchOptions& options, const std::atomic<bool>& stop) {
  SearchResult out = Search(space, machine, options, stop, false).run();
  if (!options.risky_if_none || !out.found.empty() || out.risky.plans == 0) return out;
  const bool all = out.walked && out.open == 0;
  if (!out.ended) {
    out = Search(space, machine, options, stop, true).run();
  } else if (out.risky.fastest) {  // no time to look again
    out.found.push_back(*std::move(out.risky.fastest));
    out.risky.fastest.reset();
    --out.risky.simulated;
    --out.risky.plans;
  } else {
    return out;
  }
  out.risky.all_looked_at = all;
  out.risky.taken = true;
  return out;
}

}  // namespace stepcast::sim
