#include "sim/scenario/cluster_warnings.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/goal_file.hpp"
#include "topology/fabric_layout.hpp"

namespace stepcast::sim {
namespace {

using topology::NodeKind;
using topology::NodeSpec;

class Warnings {
 public:
  explicit Warnings(const Scenario& s)
      : scenario_(s),
        node_(s.node),
        one_node_(s.nodes == 1),
        switched_(s.node.kind != NodeKind::pcie) {}

  std::vector<std::string> all() && {
    if (node_.gpu.architecture.host) {
      measured();
      return std::move(out_);
    }
    referred();
    capped();
    nvlink_keys();
    latencies();
    node_keys();
    pcie_tree_keys();
    fabric_keys();
    return std::move(out_);
  }

 private:
  void say(std::string text) { out_.push_back(std::move(text)); }
  /// A key that the user changed, without effect.
  void idle(bool changed, std::string_view key, std::string_view why) {
    if (changed) say(fmt::format("{} has no effect: {}", key, why));
  }

  void measured() {
    const auto& r = node_.reference;
    const bool changed =
        !r.name.empty() &&
        (node_.nvlink_latency != r.nvlink_latency || node_.nic_latency != r.nic_latency ||
         node_.pcie_latency != r.pcie_latency || node_.socket_latency != r.socket_latency ||
         node_.nic != r.nic || node_.pcie != r.pcie || node_.socket != r.socket);
    idle(changed, "a link's key of the node", "collectives between cores take their measured time");
  }

  void referred() {
    const auto text = [](const char* what, const std::string& name, const std::string& to) {
      return fmt::format(
          "{} '{}' is no entry of the catalogue: its latencies count as differences to those of "
          "{}, the most like it",
          what, name, to);
    };
    if (node_.reference.nearest) say(text("node", node_.name, node_.reference.name));
    const topology::FabricSpec& fabric = scenario_.fabric;
    if (fabric.reference.nearest && !one_node_)
      say(text("fabric", fabric.name, fabric.reference.name));
  }

  void capped() {
    if (one_node_ || node_.nics == 0 || node_.nic <= node_.pcie) return;
    say(fmt::format("a NIC of {} takes in no more than its PCIe link gives: {}", to_text(node_.nic),
                    to_text(node_.pcie)));
  }

  void nvlink_keys() {
    idle(scenario_.collective && changed("cluster.node.gpu.announced"), "announced",
         "it marks a step's figures, and moves none");
    if (changed("cluster.node.peer_access"))
      say(switched_ ? "peer_access has no effect: GPUs with NVLink meet there"
                    : "peer_access = false bounds GPUs by host_memory, where that is known: times "
                      "move only where it is less than their PCIe links carry");
    idle(!node_.nvlinks.empty() && node_.kind != NodeKind::hybrid_cube_mesh, "nvlinks",
         "only a node of kind hybrid_cube_mesh has a table of links");
    idle(node_.nvlink_per_link.value > 0 && !switched_, "nvlink_per_link",
         "a node of kind pcie has no NVLinks");
    for (const char* key : {"nvlink", "nvlink_links"})
      idle(!switched_ && changed(std::string("cluster.node.gpu.") + key), key,
           "a node of kind pcie has no NVLinks");
    const bool has_switches = node_.kind == NodeKind::nvswitch;
    idle(node_.nvswitches > 0 && !has_switches, "nvswitches",
         "only a node of kind nvswitch has them");
    idle(has_switches && known() && node_.nvswitches > 0 &&
             node_.nvswitches != node_.reference.nvswitches,
         "nvswitches", "every GPU spreads its NVLinks evenly over them, however many they are");
    idle(has_switches && changed("cluster.node.gpu.nvlink_links") &&
             changed("cluster.node.gpu.nvlink"),
         "nvlink_links", "nvlink says what all of them carry");
  }

  bool known() const { return !node_.reference.name.empty(); }

  void latencies() {
    if (!known()) return;
    const topology::NodeReference& r = node_.reference;
    const topology::FabricSpec& fabric = scenario_.fabric;
    const char* alone = "one node has no network";
    idle(node_.nvlink_latency != r.nvlink_latency && (!switched_ || scenario_.gpus == 1),
         "nvlink_latency", "no hop is over NVLink here");
    idle(node_.nic_latency != r.nic_latency && one_node_, "nic_latency", alone);
    idle(node_.pcie_latency != r.pcie_latency && one_node_ && switched_, "pcie_latency",
         "one node with NVLink has no hop over PCIe");
    idle(node_.socket_latency != r.socket_latency && !crosses_sockets(), "socket_latency",
         "no hop is between CPU sockets here");
    idle(fabric.switch_latency != fabric.reference.switch_latency && one_node_, "switch_latency",
         alone);
    idle(fabric.cable_latency != fabric.reference.cable_latency && one_node_, "cable_latency",
         alone);
  }

  bool crosses_sockets() const { return !switched_ && node_.sockets > 1; }

  void node_keys() {
    if (!known()) return;
    const topology::NodeReference& r = node_.reference;
    idle(node_.max_power.value > 0 && node_.max_power != r.max_power && !asks_for_costs(scenario_),
         "max_power", "no whole run and no price is asked for");
    idle(node_.socket.value > 0 && node_.socket != r.socket && !crosses_sockets(), "socket",
         "no hop is between CPU sockets here");
    const BytesPerSecond planned(node_.cpu == "amd" ? 16e9 : 10e9);  // as NodeWires does
    if (node_.socket != r.socket && crosses_sockets() &&
        std::min(node_.socket, r.socket) >= planned)
      say(
          fmt::format("socket has a bound: NCCL plans with no more than {} between CPU sockets: "
                      "times move only "
                      "below, or where flows share the link",
                      to_text(planned)));
    idle(node_.nic != r.nic && one_node_, "nic", "one node has no network");
    idle(changed("cluster.node.plugin_latency") && one_node_, "plugin_latency",
         "one node has no network");
    const bool above_nic = one_node_ || (node_.pcie >= node_.nic && r.pcie >= node_.nic);
    idle(node_.pcie != r.pcie && switched_ && above_nic, "pcie",
         "it caps NICs alone, where GPUs have NVLink");
  }

  bool changed(std::string_view key) const {
    return std::ranges::find(scenario_.changed, key) != scenario_.changed.end();
  }

  /// GPUs and NICs hang on PCIe switches, switches on sockets.
  void pcie_tree_keys() {
    const bool beside = node_.gpus == node_.nics && node_.gpu_direct;
    if (changed("cluster.node.gpus_per_tray"))
      say("gpus_per_tray says which GPUs, NICs and CPU sockets share a tray: times move only where "
          "a path or what it shares is another");
    if (changed("cluster.node.kind") && !one_node_ && scenario_.collective &&
        scenario_.collective->kind == workloads::CollectiveKind::all_to_all)
      say("kind says how the GPUs of a node meet: an AlltoAll that its NICs bound takes as long");
    for (const auto& [path, key, what] :
         {std::tuple{"cluster.node.pcie_switches", "pcie_switches", "a PCIe switch"},
          {"cluster.node.sockets", "sockets", "a CPU socket"}}) {
      const bool idles = switched_ && (one_node_ || beside);
      idle(changed(path) && idles, key,
           one_node_ ? "one node with NVLink has no hop over PCIe"
                     : "every GPU has a NIC at its own switch, and NVLink to the others");
      if (changed(path) && !idles)
        say(
            fmt::format("{} says which GPUs and NICs share {}: times move only where a path or "
                        "what it shares is another",
                        key, what));
    }
  }

  /// Which switches a flow passes and with whom it shares them; without_effect() names these keys
  /// where no flow leaves a switch.
  void shared_links() {
    if (one_node_) return;
    constexpr std::pair<const char*, const char*> of_switches[] = {
        {"cluster.fabric.kind",
         "kind says which switches the NICs of a node meet: times move only where a path or what "
         "it "
         "shares is another"},
        {"cluster.fabric_nodes",
         "fabric_nodes says how many switches there are: times move only where the job's nodes are "
         "then further apart"}};
    constexpr std::pair<const char*, const char*> of_links_between[] = {
        {"cluster.placement",
         "placement says which nodes meet the same switches: times move only where flows share a "
         "link between switches, or with latencies of many hops"},
        {"cluster.other_jobs",
         "other_jobs takes its share of the links between switches: times move only where the job "
         "needs more of one than the rest"},
        {"cluster.fabric.routing",
         "routing says which of equal links between switches a flow takes: times move only where "
         "flows share one"}};
    for (const auto& [key, sentence] : of_switches)
      if (changed(key)) say(sentence);
    if (!has_room_above_leaves()) return;
    for (const auto& [key, sentence] : of_links_between)
      if (changed(key)) say(sentence);
  }

  void fabric_keys() {
    shared_links();
    const topology::FabricSpec& fabric = scenario_.fabric;
    if (!one_node_ && changed("cluster.fabric.tiers")) tiers(fabric);
    if (fabric.reference.name.empty() || fabric.ports == fabric.reference.ports) return;
    idle(one_node_, "ports", "one node has no network");
    if (!one_node_ && fabric.oversubscription == 1.0 && fabric.routing != topology::Routing::ecmp)
      say("ports decides how many switches and tiers there are: times move only where uplinks are "
          "fewer than NICs, where flows collide, or with a changed switch_latency or "
          "cable_latency");
  }

  /// There are links between switches, and either no flow needs them or they are as wide as what
  /// the leaves take in.
  bool has_room_above_leaves() const {
    const topology::FabricSpec& fabric = scenario_.fabric;
    const auto layout = topology::lay_out_fabric(fabric, node_, scenario_.nodes, scenario_.origin);
    const bool wide = fabric.oversubscription == 1.0 && fabric.routing != topology::Routing::ecmp;
    return layout.num_tiers() > 1 && (wide || scenario_.nodes <= layout.unit_nodes);
  }

  std::int64_t tiers_of(const topology::FabricSpec& fabric) const {
    return topology::lay_out_fabric(fabric, node_, scenario_.nodes, scenario_.origin).num_tiers();
  }

  void tiers(topology::FabricSpec fabric) {
    const std::int64_t asked = tiers_of(fabric);
    fabric.tiers = 0;
    const bool same = tiers_of(fabric) == asked;
    idle(same, "tiers", "as many as it takes anyway");
    if (!same)
      say("tiers makes the fabric taller than it must be: times move only where flows collide, or "
          "with a changed switch_latency or cable_latency");
  }

  const Scenario& scenario_;
  const NodeSpec& node_;
  bool one_node_, switched_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> cluster_warnings(const Scenario& scenario) {
  return Warnings(scenario).all();
}

}  // namespace stepcast::sim
