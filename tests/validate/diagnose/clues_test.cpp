#include "validate/diagnose/clues.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "validate/diagnose/percentile.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

sim::Scenario small() {
  return sim::read_scenario(
      sim::read_toml("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n"
                     "[plan]\ndata = \"ddp\"\n[batch]\nlocal = 1\n",
                     "small.toml"),
      catalogue());
}

struct Explained {
  Attribution found;
  std::vector<std::string> notes;
};

/// Of a log alone whose step takes `factor` times the expected one.
Explained explained(const std::vector<Sign>& signs, double factor) {
  const sim::Scenario s = small();
  Explained out;
  out.found.expected = seconds(session().step(s).step_time);
  out.found.measured = factor * out.found.expected;
  out.found.causes.push_back({CauseKind::not_explained, out.found.measured - out.found.expected});
  Surroundings around;
  around.signs = signs;
  add_signs(out.found, around, s, false, session(), out.notes);
  return out;
}

double sum(const Attribution& found) {
  return std::accumulate(found.causes.begin(), found.causes.end(), 0.0,
                         [](double all, const Cause& one) { return all + one.seconds; });
}

const Sign blocking{CauseKind::launch_blocking, "CUDA_LAUNCH_BLOCKING=1", "run.sh:1",
                    "CUDA_LAUNCH_BLOCKING", "1"};
const Sign protocol{CauseKind::wrong_protocol, "NCCL_PROTO=LL", "run.sh:2", "NCCL_PROTO", "LL"};

}  // namespace

TEST_CASE("variables that overlap are shared out, and causes add up to the gap") {
  const Explained one = explained({blocking}, 20), other = explained({protocol}, 20),
                  both = explained({blocking, protocol}, 20);
  const double gap = both.found.measured - both.found.expected;
  CHECK(sum(both.found) == Approx(gap).epsilon(1e-12));
  REQUIRE(both.found.causes.size() == 3);
  const auto of = [&](const Explained& e, CauseKind kind) {
    return std::ranges::find(e.found.causes, kind, &Cause::kind)->seconds;
  };
  // Blocked launches hide nothing behind compute, so that a slower protocol costs all of itself:
  // together they cost more than the sum, and each half of what is more.
  const double together =
      of(both, CauseKind::launch_blocking) + of(both, CauseKind::wrong_protocol);
  const double alone = of(one, CauseKind::launch_blocking) + of(other, CauseKind::wrong_protocol);
  CHECK(together != Approx(alone).epsilon(1e-6));
  CHECK(of(both, CauseKind::launch_blocking) - of(one, CauseKind::launch_blocking) ==
        Approx((together - alone) / 2).epsilon(1e-6));
  CHECK(both.found.causes[0].evidence.find("beside the others") != std::string::npos);
}

TEST_CASE("checks of collectives cost what the simulation says of them") {
  const Sign checks{CauseKind::launch_blocking, "TORCH_DISTRIBUTED_DEBUG=DETAIL", "run.sh:1",
                    "TORCH_DISTRIBUTED_DEBUG", "DETAIL"};
  const Explained one = explained({checks}, 20), blocked = explained({blocking}, 20);
  REQUIRE(one.found.causes[0].kind == CauseKind::launch_blocking);
  CHECK(one.found.causes[0].seconds > 0);
  CHECK(one.found.causes[0].seconds != blocked.found.causes[0].seconds);
  CHECK(one.found.causes[0].evidence.find("by the simulation") != std::string::npos);
}

TEST_CASE("causes reach no further than the gap") {
  const Explained both = explained({blocking, protocol}, 1.1);
  CHECK(sum(both.found) == Approx(both.found.measured - both.found.expected).epsilon(1e-12));
  CHECK(both.found.causes.back().kind == CauseKind::not_explained);
  CHECK(both.found.causes.back().seconds >= -1e-12);
  const Explained none = explained({blocking, protocol}, 0.9);
  CHECK(none.found.causes.size() == 1);
  CHECK(none.notes.size() == 2);
}

TEST_CASE("the share of runs that are no slower grows with the step, and never to all") {
  const sim::StepReport report = session().step(small());
  const double expected = seconds(report.step_time);
  CHECK_FALSE(slower_than_share(report, 0.5 * expected, session()));
  const auto at = [&](double factor) {
    return slower_than_share(report, factor * expected, session()).value_or(0);
  };
  CHECK(at(1.2) <= at(1.5));
  CHECK(at(1.5) <= at(100));
  CHECK(at(100) > 0.8);
  CHECK(at(100) < 1);
}
