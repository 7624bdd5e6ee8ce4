// Steps over one layout: bound as if each were the only one, whatever was bound before.
#include "sim/run/layout.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "sim/network/links/group_links.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/run/remembered_network.hpp"
#include "sim/run/step_system.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {
namespace {

class EvenKernels final : public KernelModel {
 public:
  KernelTime time_of(const workloads::Kernel&) const override { return {.duration = 10_us}; }
};

Scenario scenario_of(const std::string& plan, const std::string& batch) {
  const std::string text =
      "[model]\nname = \"llama2-7b\"\n"
      "[cluster]\nnode = \"dgx-h100\"\nnodes = 4\nfabric = \"rail-optimized\"\n"
      "[software]\nframework = \"pytorch-fsdp2\"\n[plan]\n" +
      plan + "[batch]\n" + batch;
  return read_scenario(read_toml(text, "a.toml"), catalogue());
}

struct Bench {
  explicit Bench(const Scenario& s)
      : cluster(topology::Cluster::build(s.node, s.nodes, s.fabric, s.origin)),
        router(cluster),
        network(std::make_unique<NcclNetwork>(cluster, router, catalogue().nccl(s.nccl, s.origin))),
        layouts(cluster, network) {}

  StepSystem bind(const Scenario& s) const {
    const auto program =
        workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software);
    return make_step_system(s, program, layouts, EvenKernels(), network);
  }

  topology::Cluster cluster;
  topology::StaticRouter router;
  RememberedNetwork network;
  Layouts layouts;
};

void check_same(const engine::System& a, const engine::System& b) {
  REQUIRE(a.link_owner == b.link_owner);
  REQUIRE(a.communicators.size() == b.communicators.size());
  REQUIRE(a.communicator_of == b.communicator_of);
  REQUIRE(a.role_of_rank == b.role_of_rank);
  for (std::size_t l = 0; l < a.link_capacity.size(); ++l)
    REQUIRE(a.link_capacity[l].value == b.link_capacity[l].value);
  for (std::size_t t = 0; t < a.transfers.size(); ++t) {
    REQUIRE(a.transfers[t].bytes == b.transfers[t].bytes);
    REQUIRE(a.transfers[t].cap.value == b.transfers[t].cap.value);
  }
  for (std::size_t c = 0; c < a.communicators.size(); ++c) {
    const auto &x = a.communicators[c].loads, &y = b.communicators[c].loads;
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(x[i].link == y[i].link);
      REQUIRE(x[i].weight == y[i].weight);
    }
  }
}

TEST_CASE("a step is bound over a kept layout as over a new one, and folds alike") {
  const Bench shared(scenario_of("", "global = 64\n"));
  std::size_t links = 0;
  for (const std::string& plan :
       {std::string("tensor = 2\npipeline = 2\n"), std::string("tensor = 8\n"),
        std::string("pipeline = 4\ndata = \"ddp\"\n"), std::string("data = \"zero3\"\n"),
        std::string("tensor = 2\nshard_degree = 4\n")})
    for (const std::string& batch :
         {std::string("global = 64\n"), std::string("global = 128\nmicro_batch = 2\n"),
          std::string("global = 64\nmicro_batch = 1\n")}) {
      INFO(plan << batch);
      const Scenario s = scenario_of(plan, batch);
      const StepSystem kept = shared.bind(s), alone = Bench(s).bind(s);
      check_same(kept.system, alone.system);
      links += kept.system.link_capacity.size();
      const engine::Fold fold = engine::fold(kept.system, *kept.layout->classes_of(kept.system));
      const engine::Fold anew = engine::fold(alone.system);
      CHECK(fold.representative == anew.representative);
      check_same(fold.system, anew.system);
    }
  CHECK(links > 0);
}

TEST_CASE("loads copied from node to node are those computed for each group") {
  // Ranks of random cuts over eight or sixteen nodes: what the layout puts
  // on a system, and what every communicator's own loads put on it.
  std::size_t links = 0, groups = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t nodes = 8 * (1 + below(2)), tensor = 1U << below(4),
                        context = 1U << below(2);
    const bool fsdp = below(2) == 0;
    const std::string text = "[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"dgx-" +
                             std::string(below(3) > 0 ? "h100" : "a100") +
                             "\"\nnodes = " + std::to_string(nodes) + "\nfabric = \"" +
                             (below(2) > 0 ? "rail-optimized" : "fat-tree") +
                             "\"\n[plan]\ntensor = " + std::to_string(tensor) +
                             "\ncontext = " + std::to_string(context) +
                             "\npipeline = " + std::to_string(1U << below(3)) + "\ndata = \"" +
                             (fsdp ? "zero3" : "ddp") + "\"\n[batch]\nlocal = 8\nmicro_batch = 1\n";
    INFO(text);
    Scenario s = read_scenario(read_toml(text, "a.toml"), catalogue());
    s.fabric.oversubscription = 1 + below(3);
    s.fabric.routing = below(2) > 0 ? topology::Routing::destination : topology::Routing::spray;
    const Bench bench(s);
    const auto program =
        workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software);
    const auto layout = bench.layouts.of(layout_key(s.plan, program));
    std::vector<Movement> movements;
    for (int k = 0; k < workloads::num_group_kinds; ++k) {
      const auto kind = static_cast<workloads::GroupKind>(k);
      const bool pair = axis_of(kind).meeting != workloads::Meeting::all;
      for (const std::uint32_t pattern : layout->patterns_of(kind))
        movements.push_back({kind,
                             pattern,
                             {pair ? workloads::CollectiveKind::send_receive
                                   : workloads::CollectiveKind::all_gather,
                              Algorithm::ring}});
    }
    engine::System copied = layout->groups(), computed = copied;
    std::vector<std::vector<LinkLoad>> loads;
    std::vector<double> fastest;
    for (std::size_t c = 0; c < computed.communicators.size(); ++c) {
      const engine::Communicator& group = computed.communicators[c];
      const workloads::GroupKind kind = layout->kind_of(c);
      const auto movement = *std::ranges::find_if(movements, [&](const Movement& m) {
        return m.group == kind && m.pattern == group.pattern;
      });
      loads.push_back(loads_of(bench.network, kind, movement.delivery,
                               {group.members.begin(), group.members.end()}));
      for (LinkLoad& load : loads.back()) load.bytes_per_byte /= layout->unit_of(movement);
      fastest.push_back(2e10 * (1 + static_cast<int>(kind)));
    }
    layout->picture_of(movements)->put_on(copied, fastest);
    LinkPicture(bench.cluster, loads).put_on(computed, fastest);
    REQUIRE(copied.link_capacity == computed.link_capacity);
    check_same(copied, computed);
    links += copied.link_capacity.size();
    groups += loads.size();
  }
  CHECK(links > 1'000);
  CHECK(groups > 1'000);
}

TEST_CASE("plans that cut ranks alike share a layout, others do not") {
  const Scenario one = scenario_of("tensor = 2\n", "global = 64\n");
  const Bench bench(one);
  const auto layout = bench.bind(one).layout;
  CHECK(bench.bind(scenario_of("tensor = 2\nrecompute = \"full\"\n", "global = 256\n")).layout ==
        layout);
  CHECK(bench.bind(scenario_of("tensor = 4\n", "global = 64\n")).layout != layout);
}

}  // namespace
}  // namespace stepcast::sim
