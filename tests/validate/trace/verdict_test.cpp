#include "validate/trace/verdict.hpp"

#include <catch2/catch.hpp>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;
using workloads::CollectiveKind;

namespace {

/// Llama-2 7B: 7 products a layer, each three times, and the head: 32 x 21 + 3 = 675.
SimulatedStep llama(const std::string& more = "") {
  const sim::Scenario s = sim::read_scenario(
      sim::read_toml("[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-h100\"\n[plan]\n"
                     "data = \"zero3\"\n[batch]\nlocal = 1\n[software]\nframework = "
                     "\"pytorch-fsdp2\"\n" +
                         more,
                     "a.toml"),
      catalogue());
  return simulate_breakdown(s, session());
}

const SimulatedStep& plain() {
  static const SimulatedStep step = llama();
  return step;
}

/// As the simulation has it, with these calls.
StepBreakdown measured(double products, double attention = 32) {
  StepBreakdown out = plain().mean;
  out.kernels[TraceKind::gemm].calls = products;
  out.kernels[TraceKind::attention_forward].calls = attention;
  return out;
}

}  // namespace

TEST_CASE("another model's products are told, with both counts") {
  REQUIRE(plain().mean.kernels.at(TraceKind::gemm).calls == 675);
  CHECK(verdict_of(measured(405), plain()) ==
        "this trace is not this scenario: 405 products against 675");
  CHECK_THAT(verdict_of(measured(405, 19), plain()), Contains("19 forward attentions against 32"));
  CHECK_THAT(verdict_of(measured(1350, 64), plain()), Contains("1350 products"));
}

TEST_CASE("what is explained is no verdict") {
  CHECK(verdict_of(measured(675), plain()).empty());
  CHECK(verdict_of(measured(676), plain()).empty());      // a rope table
  CHECK(verdict_of(measured(899, 64), plain()).empty());  // everything recomputed
  CHECK(verdict_of(measured(867, 0), plain()).empty());   // unfused: two more, three times
  StepBreakdown split = measured(900);
  split.kernels[TraceKind::gemm].parts = 225;
  CHECK(verdict_of(split, plain()).empty());
  CHECK(verdict_of(StepBreakdown{}, plain()).empty());  // a log
}

TEST_CASE("packed projections are named where they alone explain the count") {
  CHECK_THAT(verdict_of(measured(32 * 12 + 3), plain()),
             Contains("387 products against 675; software.packed_projections = true"));
}

TEST_CASE("a kind of collective that one side does not have is told") {
  StepBreakdown other = measured(675);
  other.collectives.erase(CollectiveKind::all_gather);
  CHECK_THAT(verdict_of(other, plain()), Contains("0 all_gather against 6"));
  other = measured(675);
  other.collectives[CollectiveKind::all_reduce].calls += 6;  // loss, norm, a flag
  CHECK(verdict_of(other, plain()).empty());
  other.collectives[CollectiveKind::broadcast].calls = 320;  // batches, to tensor ranks
  CHECK(verdict_of(other, plain()).empty());
  other.collectives[CollectiveKind::all_to_all].calls = 64;
  CHECK_THAT(verdict_of(other, plain()), Contains("64 all_to_all against 0"));
}
