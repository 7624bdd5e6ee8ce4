#include "sim/run/host_costs.hpp"

#include <catch2/catch.hpp>

#include "sim/run/step_system.hpp"

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE("an Arm host takes longer for each call, a graph's kernels and measured costs do not") {
  Scenario s;
  s.software.host.launch_kernel = std::chrono::microseconds(8);
  s.software.host.step_overhead = std::chrono::milliseconds(4);
  s.node.cpu = "intel";
  const auto plain = host_costs_of(s.software);
  CHECK(host_costs_of(s) == plain);
  s.node.cpu = "arm";
  const auto arm = host_costs_of(s);
  CHECK(arm[workloads::kernel_call] == std::chrono::microseconds(14));
  CHECK(arm[workloads::step_call] == std::chrono::milliseconds(7));
  CHECK(arm[workloads::graph_node_call] == plain[workloads::graph_node_call]);
  s.software.host.graphs = workloads::Graphs::iteration;
  CHECK(host_costs_of(s)[workloads::kernel_call] ==
        host_costs_of(s.software)[workloads::kernel_call]);
  s.software.host.graphs = workloads::Graphs::none;
  s.measured_launch = true;
  CHECK(host_costs_of(s) == plain);
}
