// What a cluster in a box is built of, as the commands of iproute2 that build it: a bridge for each
// switch, a veth pair for each cable, a token bucket at each of its ends. Runs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "topology/cluster.hpp"

namespace stepcast::validate {

inline constexpr std::int64_t most_box_nodes = 16;

/// From a node, or from a switch, up to the switch above it.
struct BoxCable {
  std::optional<std::int64_t> node;
  std::int64_t lower = 0, upper = 0;  // switches; without a node `lower` counts
  BytesPerSecond rate{};              // each way
};

struct BoxPlan {
  std::int64_t nodes = 0, switches = 0;
  std::vector<BoxCable> cables;  // those of the nodes first
};

/// Throws InputError at `origin` where bridges cannot be that cluster: they have no second way.
BoxPlan plan_of(const topology::Cluster& cluster, const std::string& origin);

/// In the network of the box, "10.77.0.1" for node 0.
std::string address_of(std::int64_t node);

/// Lines for `ip -batch`, in the namespace of the switches; `namespaces[i]` is a path to node i's.
std::vector<std::string> switch_links(const BoxPlan& plan,
                                      const std::vector<std::string>& namespaces);
/// Lines for `tc -batch` there: what goes to the nodes and between switches.
std::vector<std::string> switch_rates(const BoxPlan& plan);
/// The same in the namespace of a node.
std::vector<std::string> node_links(std::int64_t node);
std::vector<std::string> node_rates(const BoxPlan& plan, std::int64_t node);

}  // namespace stepcast::validate
