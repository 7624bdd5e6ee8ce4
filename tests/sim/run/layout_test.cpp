// Steps over one layout: bound as if each were the only one, whatever was bound before.
#include "sim/run/layout.hpp"

#include <catch2/catch.hpp>
#include <memory>

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
