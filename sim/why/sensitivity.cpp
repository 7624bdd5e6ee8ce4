#include "sim/why/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/check.hpp"
#include "sim/files/nccl_names.hpp"
#include "sim/run/timeline.hpp"
#include "sim/why/parameters.hpp"

namespace stepcast::sim {
namespace {

constexpr double h = 1e-4;  // of central differences of the system, on either side

/// What NCCL chose, and what a time rests on, by collective and pattern.
struct Choice {
  Algorithm algorithm{};
  Protocol protocol{};
  std::int64_t channels = 1;
  Provenance provenance{};
  friend bool operator==(const Choice&, const Choice&) = default;
};

CollectiveTime time_of(const BoundStep& bound, const workloads::Collective& collective,
                       std::uint32_t pattern) {
  return bound.network->model->time_of(collective, bound.step.layout->shapes()[pattern]);
}

std::vector<Choice> choices(const BoundStep& bound) {
  std::vector<Choice> out;
  for (const workloads::Collective& collective : bound.program.collectives)
    for (const std::uint32_t p : bound.step.layout->patterns_of(collective.group)) {
      const CollectiveTime time = time_of(bound, collective, p);
      out.push_back({time.algorithm, time.protocol, time.channels, time.provenance});
    }
  return out;
}

std::vector<std::string> frozen_choices(const BoundStep& bound) {
  std::set<std::string> out;
  for (const workloads::Collective& collective : bound.program.collectives)
    for (const std::uint32_t p : bound.step.layout->patterns_of(collective.group)) {
      const CollectiveTime time = time_of(bound, collective, p);
      if (bound.step.layout->shapes()[p].ranks < 2) continue;
      const TimelineEvent e = described(collective);
      out.insert(fmt::format("{} {}: {}, {}, {} channel{}", e.group, e.kind,
                             name_of(time.algorithm), name_of(time.protocol), time.channels,
                             time.channels == 1 ? "" : "s"));
    }
  return {out.begin(), out.end()};
}

bool same_make(const engine::System& a, const engine::System& b) {
  if (a.link_capacity.size() != b.link_capacity.size()) return false;
  for (std::size_t c = 0; c < a.communicators.size(); ++c)
    if (!std::ranges::equal(a.communicators[c].loads, b.communicators[c].loads, {},
                            &engine::LinkLoad::link, &engine::LinkLoad::link))
      return false;
  return true;
}

/// A step at hand, its slopes, and the scenarios around it.
class Neighbourhood {
 public:
  Neighbourhood(const LoggedStep& step, Session& session)
      : step_(step), session_(session), slopes_(engine::slopes(step.log())) {}

  std::optional<double> elasticity(const Parameter& parameter) const {
    if (parameter.in_system != nullptr) {
      engine::System up = step_.system(), down = up;
      parameter.in_system(step_, up, 1 + h);
      parameter.in_system(step_, down, 1 - h);
      return between(down, up, 2 * h);
    }
    const auto up = bound(parameter, 1 + h), down = bound(parameter, 1 - h);
    if (up && down && up->choices == down->choices) return between(down->system, up->system, 2 * h);
    // On one side NCCL does as it does here.
    const std::vector<Choice> here = choices(step_.bound());
    if (up && up->choices == here) return between(step_.system(), up->system, h);
    if (down && down->choices == here) return between(down->system, step_.system(), h);
    return std::nullopt;
  }

  std::optional<Duration> at(const Parameter& parameter, double factor) const {
    try {
      if (parameter.in_system != nullptr) {
        engine::System changed = step_.system();
        parameter.in_system(step_, changed, factor);
        return engine::run(changed, {.cold = step_.scenario().run.steps == Steps::cold}).step;
      }
      Scenario there = scenario_at(parameter, factor);
      there.run.fold = true;             // the same picosecond, sooner
      there.run.memory_is_known = true;  // no quantity changes what is held
      return session_.step(there).step_time;
    } catch (const InputError&) {
    } catch (const NoFeasiblePlan&) {
    }
    return std::nullopt;
  }

  Scenario scenario_at(const Parameter& parameter, double factor) const {
    Scenario out = step_.scenario();
    parameter.in_scenario(out, factor);
    return out;
  }

 private:
  struct Neighbour {
    engine::System system;
    std::vector<Choice> choices;
  };

  /// Nothing where there is no such machine, or where other links can be shared.
  std::optional<Neighbour> bound(const Parameter& parameter, double factor) const {
    try {
      const BoundStep bound = session_.bound_step(scenario_at(parameter, factor));
      if (!same_make(bound.step.system, step_.bound().step.system)) return std::nullopt;
      return Neighbour{folded(bound.step.system, step_.classes(), step_.scenario().run.fold).system,
                       choices(bound)};
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  double between(const engine::System& from, const engine::System& to, double by) const {
    return engine::first_order(slopes_, from, to) / by / seconds(step_.result().step);
  }

  const LoggedStep& step_;
  Session& session_;
  const engine::Slopes slopes_;
};

/// Twice as much should bring that much more than it does to be worth a search.
constexpr double worth_asking = 0.002;

/// The factor from which on the rate brings less than a twentieth of what twice as much brings.
double breakpoint(const Neighbourhood& near, const Parameter& parameter, Duration step,
                  Duration at_twice) {
  const double gain = seconds(step - at_twice);
  double low = 1.0, high = 2.0;
  for (int i = 0; i < 7; ++i) {
    const double middle = std::sqrt(low * high);
    const auto there = near.at(parameter, middle);
    const bool done = there && seconds(*there - at_twice) <= 0.05 * gain;
    (done ? high : low) = middle;
  }
  return high;
}

/// The quantity whose elasticity grows most when there is twice as much of this one.
std::optional<BindsNext> binds_next(const Neighbourhood& near, const Parameter& parameter,
                                    const Sensitivity& row, const LoggedStep& step,
                                    const std::vector<Sensitivity>& rows, Session& session) {
  const Duration now = step.result().step;
  if (!parameter.is_rate || parameter.in_scenario == nullptr) return std::nullopt;
  if (!row.elasticity || !row.at_twice) return std::nullopt;
  const double promised = 1 - std::pow(2.0, *row.elasticity);
  const double brought = 1 - seconds(*row.at_twice) / seconds(now);
  if (promised < worth_asking || promised - brought < worth_asking || brought > 0.8 * promised)
    return std::nullopt;
  const LoggedStep twice(near.scenario_at(parameter, 2.0), session);
  const Neighbourhood there(twice, session);
  std::optional<BindsNext> out;
  double most = 0.0;
  for (const Parameter& other : parameters()) {
    const auto before = std::ranges::find(rows, other.name, &Sensitivity::name);
    if (before == rows.end() || other.name == row.name) continue;
    const std::optional<double> elasticity = there.elasticity(other);
    if (!elasticity) continue;
    const double more = std::abs(*elasticity) - std::abs(before->elasticity.value_or(0.0));
    if (more <= most) continue;
    most = more;
    out = BindsNext{other.name, 1, {}};
  }
  if (!out) return out;
  out->factor = breakpoint(near, parameter, now, *row.at_twice);
  out->from = parameter.now(near.scenario_at(parameter, out->factor));
  return out;
}

}  // namespace

bool Sensitivity::without_effect(Duration step) const {
  return elasticity && std::abs(*elasticity) < 1e-9 && at_half == step && at_twice == step;
}

Sensitivities sensitivities(const LoggedStep& step, Session& session) {
  const Neighbourhood near(step, session);
  Sensitivities out;
  std::vector<const Parameter*> asked;
  for (const Parameter& parameter : parameters()) {
    const std::string now = parameter.now(step.scenario());
    if (now.empty()) continue;
    Sensitivity& row = out.rows.emplace_back();
    row.name = parameter.name;
    row.now = now;
    row.is_rate = parameter.is_rate;
    row.elasticity = near.elasticity(parameter);
    row.at_half = near.at(parameter, 0.5);
    row.at_twice = near.at(parameter, 2.0);
    asked.push_back(&parameter);
  }
  for (std::size_t r = 0; r < asked.size(); ++r)
    out.rows[r].next = binds_next(near, *asked[r], out.rows[r], step, out.rows, session);
  std::ranges::stable_sort(out.rows, std::greater{}, [](const Sensitivity& row) {
    return std::abs(row.elasticity.value_or(0.0));
  });
  out.frozen = frozen_choices(step.bound());
  return out;
}

}  // namespace stepcast::sim
