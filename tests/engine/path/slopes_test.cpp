// Slopes against central differences of whole runs, and against closed forms.
#include "engine/path/slopes.hpp"

#include <catch2/catch.hpp>

#include <functional>

#include "../systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

namespace {

struct Logged {
  explicit Logged(const System& s) : log(s, false), result(run(s, {}, &log)) {
    log.ended_with(result);
  }
  StepLog log;
  RunResult result;
};

/// A thousand times as long, so that picoseconds do not round differences away.
System stretched_system(std::uint64_t seed, bool marked) {
  System s = random_system(seed, marked);
  for (Work& work : s.works) work.duration *= 1000;
  for (Duration& cost : s.host_costs) cost *= 1000;
  for (Transfer& transfer : s.transfers) transfer.bytes *= 1000;
  return s;
}

constexpr double h = 1e-4;

Duration times(Duration d, double factor) { return to_duration(seconds(d) * factor); }

/// Every kind of number, each scaled as one.
const std::vector<std::pair<const char*, std::function<void(System&, double)>>>& knobs() {
  static const std::vector<std::pair<const char*, std::function<void(System&, double)>>> all{
      {"work 1", [](System& s, double f) { s.works[1].duration = times(s.works[1].duration, f); }},
      {"works",
       [](System& s, double f) {
         for (Work& work : s.works) work.duration = times(work.duration, f);
       }},
      {"host",
       [](System& s, double f) {
         for (Duration& cost : s.host_costs) cost = times(cost, f);
       }},
      {"bytes", [](System& s, double f) { s.transfers[1].bytes *= f; }},
      {"caps",
       [](System& s, double f) {
         for (Transfer& t : s.transfers) t.cap = t.cap * f;
       }},
      {"shared link",
       [](System& s, double f) { s.link_capacity.back() = s.link_capacity.back() * f; }},
      {"weights",
       [](System& s, double f) {
         for (Communicator& c : s.communicators)
           for (LinkLoad& load : c.loads) load.weight *= f;
       }},
      {"stretch",
       [](System& s, double f) {
         for (double& x : s.stretch)
           if (x > 1.0) x *= f;
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("slopes are central differences where the step is smooth", "[why]") {
  int compared = 0, kinks = 0, moved = 0;
  for (const bool marked : {true, false})
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const System s = stretched_system(seed, marked);
      const Logged base(s);
      const Slopes slope = slopes(base.log);
      for (const auto& [name, knob] : knobs()) {
        CAPTURE(marked, seed, name);
        System up = s, down = s;
        knob(up, 1 + h);
        knob(down, 1 - h);
        const RunResult more = run(up), less = run(down);
        const double step = seconds(base.result.step);
        const double right = seconds(more.step - base.result.step),
                     left = seconds(base.result.step - less.step);
        // A kink: another chain becomes the longest within h, or the step repeats another way.
        if (std::abs(right - left) > 1e-3 * h * step || more.steps != base.result.steps ||
            less.steps != base.result.steps) {
          ++kinks;
          continue;
        }
        const double told = first_order(slope, s, up) - first_order(slope, s, down);
        CHECK(told == Approx(right + left).epsilon(1e-3).margin(2e-3 * h * step));
        ++compared;
        moved += std::abs(told) > 1e-2 * h * step;
      }
    }
  INFO(compared << " compared, " << moved << " of them moved, " << kinks << " kinks");
  CHECK(compared > 10 * kinks);
  CHECK(moved > 800);
}

TEST_CASE("the slope to a link that two share alike is that of what both move", "[why]") {
  // Both end at 2 B / C: a byte more of both costs 2 / C, a byte per second more saves 2 B / C^2.
  ProgramBuilder b(1);
  b.join(compute_lane, 0, 0, no_cost);
  System s = make_system(2, {b.take()}, {{{0}, {1}}});
  s.transfers = {transfer(1e6, 100)};
  s.link_capacity = {100_GBps};
  s.link_owner = {no_owner};
  for (Communicator& c : s.communicators) c.loads = {{0, 1.0}};
  StepLog log(s, true);
  log.ended_with(run(s, {.cold = true}, &log));
  const Slopes slope = slopes(log);
  CHECK(slope.capacities[0] == Approx(-2 * 1e6 / 1e22));
  CHECK(slope.bytes[0] == Approx(2 / 1e11));
  CHECK(slope.caps[0] == 0);
}

TEST_CASE("a slope to the host's costs counts the launches on the path", "[why]") {
  // 100 launches of 1 us, then a kernel: the cost counts a hundred times, the kernel once.
  ProgramBuilder b(1);
  for (int i = 0; i < 100; ++i) b.work(compute_lane, 0, launch_cost);
  System s = make_system(1, {b.take()}, {});
  s.works = {{250_ns, 0}};
  StepLog log(s, true);
  log.ended_with(run(s, {.cold = true}, &log));
  const Slopes slope = slopes(log);
  CHECK(slope.host_costs[launch_cost] == Approx(100));
  CHECK(slope.works[0] == Approx(1));
}
