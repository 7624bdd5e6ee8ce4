// A step folded from the start is the step bound whole and folded afterwards: rank by rank, group
// by group, link by link, to the last bit.
#include "sim/run/folded_step.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "engine/fold.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {
namespace {

class EvenKernels final : public KernelModel {
 public:
  KernelTime time_of(const workloads::Kernel&) const override { return {.duration = 10_us}; }
};

/// A machine and a plan drawn at random; nodes of a stage mostly whole.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  Scenario scenario() {
    const std::uint32_t pipeline = 1 + below(4), tensor = 1U << below(4), context = 1U << below(2);
    // Half of them whole leaves.
    const std::uint32_t nodes =
        pipeline * (below(2) == 0 ? 2 + below(30) : 8 * (1 + below(pipeline > 2 ? 4 : 9)));
    const bool a100 = below(3) == 0;
    const std::string data = pick({"ddp", "zero1", "zero2", "zero3"});
    text = "[model]\nname = \"" + pick({"llama2-7b", "gpt-22b"}) + "\"\n[cluster]\nnode = \"dgx-" +
           (a100 ? "a100" : "h100") + "\"\nnodes = " + std::to_string(nodes) + "\nfabric = \"" +
           pick({"rail-optimized", "fat-tree"}) + "\"\n[software]\nframework = \"" +
           pick({"pytorch-fsdp2", "megatron-core"}) +
           "\"\n[plan]\ntensor = " + std::to_string(tensor) +
           "\ncontext = " + std::to_string(context) + "\npipeline = " + std::to_string(pipeline) +
           "\ndata = \"" + data + "\"\n[batch]\nlocal = 8\n";
    Scenario s = read_scenario(read_toml(text, "a.toml"), catalogue());
    s.fabric.ports = std::vector<std::int64_t>{8, 16, 24, 32, 64}[below(5)];
    if (below(2) == 0) s.fabric.oversubscription = 1 + below(3);
    if (below(6) == 0) s.fabric.kind = topology::FabricKind::rail_only;
    if (below(6) == 0) s.fabric.job.other_jobs = 0.25;
    if (below(6) == 0) s.fabric.job.fabric_nodes = 2 * nodes;
    if (below(10) == 0) s.fabric.job.placement = topology::Placement::random;
    if (below(10) == 0) s.fabric.routing = topology::Routing::spray;
    if (below(10) == 0) s.fabric.routing = topology::Routing::ecmp;
    return s;
  }

  std::string text;

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::string pick(const std::vector<std::string>& words) {
    return words[below(static_cast<std::uint32_t>(words.size()))];
  }
  std::mt19937 random_;
};

void check_same(const engine::System& a, const engine::System& b) {
  REQUIRE(a.role_of_rank == b.role_of_rank);
  REQUIRE(a.communicator_of == b.communicator_of);
  REQUIRE(a.num_patterns == b.num_patterns);
  REQUIRE(a.transfers.size() == b.transfers.size());
  for (std::size_t t = 0; t < a.transfers.size(); ++t) {
    REQUIRE(a.transfers[t].bytes == b.transfers[t].bytes);
    REQUIRE(a.transfers[t].cap == b.transfers[t].cap);
  }
  REQUIRE(a.link_capacity == b.link_capacity);
  REQUIRE(a.link_owner == b.link_owner);
  REQUIRE(a.communicators.size() == b.communicators.size());
  for (std::size_t c = 0; c < a.communicators.size(); ++c) {
    REQUIRE(a.communicators[c].members == b.communicators[c].members);
    REQUIRE(a.communicators[c].pattern == b.communicators[c].pattern);
    const auto &x = a.communicators[c].loads, &y = b.communicators[c].loads;
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(x[i].link == y[i].link);
      REQUIRE(x[i].weight == y[i].weight);
    }
  }
}

TEST_CASE("a step folded from the start is the whole one, folded") {
  std::size_t folded = 0, links = 0, merged = 0, apart = 0, four_tiers = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    Draw draw(seed);
    std::shared_ptr<const Network> network;
    Scenario s;
    workloads::StepProgram program;
    try {
      s = draw.scenario();
      network = session().network(s);
      program = workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software);
    } catch (const InputError&) {
      continue;  // a plan that does not divide, a fabric that does not fit
    }
    INFO(seed << '\n' << draw.text << "ports " << s.fabric.ports);
    const auto here = fold_from_the_start(s, program, *network, EvenKernels());
    if (!here) continue;
    const BoundStep whole = bind_step(s, program, network, EvenKernels());
    const engine::Fold fold = engine::fold(whole.step.system);
    CHECK(here->multiplicity == fold.multiplicity);
    check_same(here->step.system, fold.system);
    CHECK(here->step.choices.size() == whole.step.choices.size());
    ++folded;
    const std::int64_t period = topology::nodes_reached_apart(network->cluster());
    if (period > 2 && s.nodes / s.plan.pipeline % period == 0) {
      ++apart;
      if (network->cluster().num_tiers() == 4) ++four_tiers;
    }
    links += fold.system.link_capacity.size();
    merged += whole.step.system.num_ranks() - fold.system.num_ranks();
  }
  CHECK(folded > 40);
  CHECK(apart > 10);
  CHECK(four_tiers > 3);
  CHECK(links > 500);
  CHECK(merged > 5'000);
}

TEST_CASE("what does not repeat is not folded from the start") {
  std::size_t asked = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    try {
      Scenario s = Draw(seed).scenario();
      s.fabric.job.placement = topology::Placement::random;
      s.fabric.job.seed = seed;
      const auto network = session().network(s);
      const auto program =
          workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software);
      CHECK_FALSE(fold_from_the_start(s, program, *network, EvenKernels()).has_value());
      ++asked;
    } catch (const InputError&) {
    }
  }
  CHECK(asked > 5);
}

}  // namespace
}  // namespace stepcast::sim
