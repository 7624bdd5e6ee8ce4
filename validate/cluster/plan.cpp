#include "validate/cluster/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using topology::DeviceId;
using topology::DeviceKind;
using topology::LinkKind;

// Frames of data centres (IEEE 802.3 allows 1,500; switches of clusters are set to about 9,000):
// fewer packets for the cores that stand in for the switches.
constexpr int mtu = 9000;
// What passes at once after a pause: two frames at least, else 250 us of the rate. Small beside the
// messages whose time is compared.
constexpr double least_burst = 2 * (mtu + 14 + 4), burst_s = 250e-6;
// Room for what all other nodes' sockets may have on their way (most_window of box.cpp), so that
// nothing is lost: the links are to be slow, not bad.
constexpr std::int64_t room = std::int64_t{2} * most_box_nodes << 20;

std::string rate_of(const std::string& device, BytesPerSecond rate) {
  const double burst = std::max(least_burst, rate.value * burst_s);
  return fmt::format("qdisc add dev {} root tbf rate {:.0f}bit burst {:.0f} limit {}", device,
                     8 * rate.value, burst, room);
}

std::string switch_name(std::int64_t index) { return fmt::format("sw{}", index); }
/// The end at the upper switch of a node's cable.
std::string port_name(std::int64_t node) { return fmt::format("n{}", node); }
/// The ends of a cable between switches: at the lower, at the upper.
std::string up_name(std::int64_t lower) { return fmt::format("u{}", lower); }
std::string down_name(std::int64_t lower) { return fmt::format("d{}", lower); }

void refuse(bool wrong, const std::string& where, const std::string& what,
            const std::string& hint) {
  if (wrong) throw InputError(where, "a cluster in a box " + what, hint);
}

/// Numbers of the switches by device.
std::map<DeviceId, std::int64_t> switches_of(const topology::Cluster& cluster) {
  std::map<DeviceId, std::int64_t> switches;
  const auto devices = cluster.devices();
  for (DeviceId d = 0; d < devices.size(); ++d)
    if (devices[d].kind >= DeviceKind::leaf)
      switches.emplace(d, static_cast<std::int64_t>(switches.size()));
  return switches;
}

}  // namespace

BoxPlan plan_of(const topology::Cluster& cluster, const std::string& origin) {
  refuse(cluster.num_nodes() < 2 || cluster.num_nodes() > most_box_nodes, origin,
         fmt::format("has 2 to {} nodes", most_box_nodes), "change cluster.nodes");
  refuse(cluster.node().gpus != 1 || cluster.node().nics != 1, origin,
         "has one rank and one NIC on a node",
         "[cluster.node] name = \"host\", gpus = 1, nics = 1");
  refuse(cluster.fabric().sharp, origin, "has bridges, which sum nothing", "leave sharp out");
  const auto switches = switches_of(cluster);
  BoxPlan plan{cluster.num_nodes(), static_cast<std::int64_t>(switches.size()), {}};
  std::map<std::int64_t, std::int64_t> uplinks;
  for (topology::LinkId l = 0; l < cluster.links().size(); l += 2) {  // 2k + 1 leads back
    const topology::Link& link = cluster.links()[l];
    if (link.kind == LinkKind::injection)
      plan.cables.push_back(
          {cluster.devices()[link.from].node, 0, switches.at(link.to), link.bandwidth});
    if (link.kind != LinkKind::fabric) continue;
    const std::int64_t lower = switches.at(link.from);
    refuse(++uplinks[lower] > 1, origin, "has one way up from a switch",
           "choose cluster.fabric.ports so that one spine takes all uplinks, no ecmp");
    plan.cables.push_back({{}, lower, switches.at(link.to), link.bandwidth});
  }
  std::ranges::stable_partition(plan.cables, [](const BoxCable& c) { return c.node.has_value(); });
  return plan;
}

std::string address_of(std::int64_t node) { return fmt::format("10.77.0.{}", node + 1); }

std::vector<std::string> switch_links(const BoxPlan& plan,
                                      const std::vector<std::string>& namespaces) {
  std::vector<std::string> lines;
  for (std::int64_t s = 0; s < plan.switches; ++s) {
    lines.push_back(fmt::format("link add name {} mtu {} type bridge", switch_name(s), mtu));
    lines.push_back(fmt::format("link set dev {} up", switch_name(s)));
  }
  const auto join = [&](const std::string& end, std::int64_t to) {
    lines.push_back(fmt::format("link set dev {} master {} up", end, switch_name(to)));
  };
  for (const BoxCable& cable : plan.cables) {
    const std::string lower = cable.node ? port_name(*cable.node) : up_name(cable.lower);
    const std::string other =
        cable.node ? "eth0 netns " + namespaces[static_cast<std::size_t>(*cable.node)]
                   : down_name(cable.lower);
    lines.push_back(fmt::format("link add name {} mtu {} type veth peer mtu {} name {}", lower, mtu,
                                mtu, other));
    join(lower, cable.node ? cable.upper : cable.lower);
    if (!cable.node) join(down_name(cable.lower), cable.upper);
  }
  return lines;
}

std::vector<std::string> switch_rates(const BoxPlan& plan) {
  std::vector<std::string> lines;
  for (const BoxCable& cable : plan.cables) {
    lines.push_back(
        rate_of(cable.node ? port_name(*cable.node) : up_name(cable.lower), cable.rate));
    if (!cable.node) lines.push_back(rate_of(down_name(cable.lower), cable.rate));
  }
  return lines;
}

std::vector<std::string> node_links(std::int64_t node) {
  return {"link set dev lo up", fmt::format("addr add {}/24 dev eth0", address_of(node)),
          "link set dev eth0 up"};
}

std::vector<std::string> node_rates(const BoxPlan& plan, std::int64_t node) {
  for (const BoxCable& cable : plan.cables)
    if (cable.node == node) return {rate_of("eth0", cable.rate)};
  throw BrokenPromise("every node has a cable");
}

}  // namespace stepcast::validate
