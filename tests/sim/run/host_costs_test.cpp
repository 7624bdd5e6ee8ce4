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
  CHECK(arm[workloads::kernel_call] == std::chrono::nanoseconds(9200));
  CHECK(arm[workloads::step_call] == std::chrono::microseconds(4600));
  CHECK(arm[workloads::graph_node_call] == plain[workloads::graph_node_call]);
  s.software.host.graphs = workloads::Graphs::iteration;
  CHECK(host_costs_of(s)[workloads::kernel_call] ==
        host_costs_of(s.software)[workloads::kernel_call]);
  s.software.host.graphs = workloads::Graphs::none;
  s.measured_launch = true;
  CHECK(host_costs_of(s) == plain);
}

TEST_CASE("the factor of a step over a hot loop stretches calls, and nothing that no call is") {
  Scenario s;
  s.software.host.launch_kernel = std::chrono::microseconds(8);
  s.software.host.forward_call = std::chrono::microseconds(2);
  s.software.host.launch_collective = std::chrono::microseconds(70);
  s.software.host.step_overhead = std::chrono::milliseconds(4);
  s.software.host.factor = 2.5;
  const auto costs = host_costs_of(s.software);
  CHECK(costs[workloads::kernel_call] == std::chrono::microseconds(20));
  CHECK(costs[workloads::forward_kernel_call] == std::chrono::microseconds(25));
  CHECK(costs[workloads::collective_call] == std::chrono::microseconds(175));
  CHECK(costs[workloads::step_call] == std::chrono::milliseconds(4));
  s.software.host.graphs = workloads::Graphs::iteration;  // the host makes no calls
  CHECK(host_costs_of(s.software)[workloads::kernel_call] < std::chrono::microseconds(1));
}
