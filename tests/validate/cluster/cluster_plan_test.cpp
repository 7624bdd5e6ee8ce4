// What a box is built of, from the cluster that is described.
#include "validate/cluster/plan.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "validate/cluster/fabric.hpp"

namespace stepcast::validate {
namespace {

sim::Scenario scenario(std::int64_t nodes, const std::string& fabric = {}) {
  const std::string text = R"([model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
nodes = )" + std::to_string(nodes) +
                           R"(
[cluster.node]
name = "host"
gpus = 1
nic = "0.2 Gbit/s"
[cluster.fabric]
name = "fat-tree"
)" + fabric + R"(
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
)";
  return sim::read_scenario(sim::read_toml(text, "box.toml"), catalogue());
}

BoxPlan plan(const sim::Scenario& of, const std::string& word) {
  const BoxFabric fabric = fabrics_of(word).front();
  return plan_of(cluster_of(on_fabric(of, fabric), fabric), "box.toml:14");
}

bool any_starts(const std::vector<std::string>& lines, const std::string& with) {
  return std::ranges::any_of(lines, [&](const auto& line) { return line.starts_with(with); });
}

}  // namespace

TEST_CASE("one switch joins all nodes at the speed of their NICs") {
  const BoxPlan box = plan(scenario(4), "nonblocking");
  CHECK(box.switches == 1);
  REQUIRE(box.cables.size() == 4);
  for (const BoxCable& cable : box.cables) CHECK(cable.rate == BytesPerSecond(25e6));
}

// 8 nodes in two leaves of 4; k:1 leaves 4 / k cables up, each as fast as a NIC.
TEST_CASE("leaves that are k to 1 have the uplink that the simulated fabric has") {
  for (const auto& [word, up] : {std::pair{"2:1", 50e6}, {"4:1", 25e6}}) {
    const BoxPlan box = plan(scenario(8), word);
    CHECK(box.switches == 3);
    REQUIRE(box.cables.size() == 10);
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(box.cables[i].node.has_value() == (i < 8));
      CHECK(box.cables[i].rate.value == Approx(i < 8 ? 25e6 : up));
    }
    CHECK(box.cables[0].upper == box.cables[3].upper);
    CHECK(box.cables[0].upper != box.cables[4].upper);
  }
}

TEST_CASE("a slow NIC is the last node's, at half its speed, both ways") {
  const BoxPlan box = plan(scenario(4), "slow-nic");
  CHECK(box.cables[2].rate.value == Approx(25e6));
  CHECK(box.cables[3].rate.value == Approx(12.5e6));
  CHECK(any_starts(switch_rates(box), "qdisc add dev n3 root tbf rate 100000000bit"));
  CHECK(any_starts(node_rates(box, 3), "qdisc add dev eth0 root tbf rate 100000000bit"));
}

TEST_CASE("every end of every cable is shaped, and every device belongs to a namespace") {
  const BoxPlan box = plan(scenario(8), "2:1");
  const std::vector<std::string> namespaces(8, "/proc/self/fd/9");
  const auto links = switch_links(box, namespaces), rates = switch_rates(box);
  CHECK(rates.size() == 8 + 2 * 2);
  CHECK(std::ranges::count_if(links, [](const auto& line) {
          return line.find("type veth") != std::string::npos;
        }) == 10);
  CHECK(std::ranges::count_if(links, [](const auto& line) {
          return line.find("eth0 netns /proc/self/fd/9") != std::string::npos;
        }) == 8);
  CHECK(any_starts(node_links(7), "addr add 10.77.0.8/24"));
}

TEST_CASE("what bridges cannot be is refused with what would do") {
  // Four uplinks of a leaf to four spines: bridges would have loops.
  CHECK_THROWS_AS(plan(scenario(8, "ports = 4\ntiers = 2"), "own"), InputError);
  auto two_ranks = scenario(4);
  two_ranks.node.gpus = 2;
  CHECK_THROWS_AS(plan(two_ranks, "nonblocking"), InputError);
  CHECK_THROWS_AS(plan(scenario(32), "nonblocking"), InputError);
  CHECK_THROWS_AS(plan(scenario(4), "4:1"), InputError);  // leaves of two have no half cable
  CHECK_THROWS_AS(fabrics_of("3to1"), sim::UsageError);
  CHECK_THROWS_AS(fabrics_of("1:1"), sim::UsageError);
  CHECK_THROWS_AS(fabrics_of("2:1,"), sim::UsageError);
}

}  // namespace stepcast::validate
