#include "topology/fabric_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::topology {
namespace {

constexpr std::size_t at(std::int64_t tier) { return static_cast<std::size_t>(tier - 1); }

BytesPerSecond fabric_link(const FabricSpec& fabric, const NodeSpec& node) {
  return fabric.link.value > 0 ? fabric.link : node.nic;
}

/// Uplink cables a leaf needs for each NIC below it: bandwidth down / bandwidth up =
/// oversubscription.
double uplinks_per_nic(const FabricSpec& fabric, const NodeSpec& node) {
  const BytesPerSecond link = fabric_link(fabric, node);
  return std::min(node.nic, link) / link / fabric.oversubscription;
}

/// Puts the fewest switches over `below`: C parents for every top switch, shared by a group of g
/// top switches of each child, so that children x g x (uplinks / C) cables end at one parent.
/// C divides the uplinks and g the top switches: all bundles are equal, as in the SuperPOD plans.
bool join(const FabricTier& below, FabricTier& tier, std::int64_t down_ports) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t g = 1; g <= below.top; ++g) {
    if (below.top % g != 0) continue;
    for (std::int64_t choices = 1; choices <= below.uplinks; ++choices) {
      const std::int64_t cables = below.uplinks / choices;
      if (below.uplinks % choices != 0 || tier.children * g * cables > down_ports) continue;
      const std::int64_t top = below.top / g * choices;
      if (top >= fewest) break;
      fewest = tier.top = top;
      tier.group = g;
      tier.choices = choices;
      tier.cables = cables;
      break;
    }
  }
  return fewest != std::numeric_limits<std::int64_t>::max();
}

/// Leaves: how many nodes share one, how many there are, how many cables go up. False: no room.
bool lay_out_leaves(FabricLayout& layout, const FabricSpec& fabric, const NodeSpec& node,
                    std::int64_t nodes, std::int64_t num_tiers) {
  layout.rails = fabric.kind != FabricKind::fat_tree;
  layout.planes = fabric.kind == FabricKind::rail_only ? node.nics : 1;
  layout.nics = node.nics;
  layout.leaf_groups = layout.rails ? node.nics : 1;
  const std::int64_t nics_per_node = layout.rails ? 1 : node.nics;
  const double up = uplinks_per_nic(fabric, node);
  // The small addend keeps 48 = floor(64 / (1 + 1/3)) from becoming 47 by rounding.
  const auto down_ports =
      num_tiers == 1 ? fabric.ports
                     : static_cast<std::int64_t>(
                           std::floor(static_cast<double>(fabric.ports) / (1.0 + up) + 1e-9));
  layout.unit_nodes = std::min(nodes, down_ports / nics_per_node);
  if (layout.unit_nodes < 1) return false;
  layout.units = ceil_div(nodes, layout.unit_nodes);
  FabricTier& leaves = layout.tiers.front();
  leaves.blocks = layout.units * layout.leaf_groups;
  leaves.children = layout.unit_nodes * nics_per_node;
  leaves.choices = leaves.cables = 1;
  if (num_tiers == 1) return leaves.blocks == layout.planes;
  const double wanted = static_cast<double>(leaves.children) * up;
  leaves.uplinks = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(wanted - 1e-9)));
  return leaves.children + leaves.uplinks <= fabric.ports;
}

/// How the blocks nest. Pods stay within a rail (a "spine group"), as in the DGX SuperPOD A100 plan
/// (RA-09950-001: 8 spine groups of 10 over 56 leaves), so that a rail crosses few switches.
void nest_blocks(FabricLayout& layout, std::int64_t half_ports) {
  const std::int64_t num_tiers = layout.num_tiers();
  auto& tiers = layout.tiers;
  if (num_tiers == 2) {
    tiers[at(2)].children = tiers[at(1)].blocks / layout.planes;
  } else if (num_tiers > 2) {
    layout.pods_per_group = ceil_div(layout.units, half_ports);
    layout.units_per_pod = ceil_div(layout.units, layout.pods_per_group);
    tiers[at(2)].blocks = layout.leaf_groups * layout.pods_per_group;
    tiers[at(2)].children = layout.units_per_pod;
    tiers[at(3)].children = tiers[at(2)].blocks / layout.planes;
  }
  if (num_tiers == 4) {
    const std::int64_t pods = tiers[at(2)].blocks / layout.planes;
    layout.pods_per_zone = ceil_div(pods, ceil_div(pods, half_ports));
    tiers[at(3)].blocks = ceil_div(pods, layout.pods_per_zone) * layout.planes;
    tiers[at(3)].children = layout.pods_per_zone;
    tiers[at(4)].children = tiers[at(3)].blocks / layout.planes;
  }
  if (num_tiers > 1) tiers.back().blocks = layout.planes;
}

/// The layout with exactly `num_tiers`; no tiers when it does not fit.
FabricLayout try_tiers(const FabricSpec& fabric, const NodeSpec& node, std::int64_t nodes,
                       std::int64_t num_tiers) {
  FabricLayout layout;
  layout.tiers.resize(static_cast<std::size_t>(num_tiers));
  bool fits = lay_out_leaves(layout, fabric, node, nodes, num_tiers);
  if (fits) nest_blocks(layout, fabric.ports / 2);
  for (std::int64_t t = 2; fits && t <= num_tiers; ++t) {
    FabricTier& tier = layout.tiers[at(t)];
    fits = join(layout.tiers[at(t - 1)], tier, t == num_tiers ? fabric.ports : fabric.ports / 2);
    if (fabric.routing == Routing::ecmp) tier.bundles = tier.cables;
    // No oversubscription above the leaf: as many cables up as down.
    if (t < num_tiers) tier.uplinks = tier.children * tier.group * tier.cables;
  }
  if (!fits) layout.tiers.clear();
  return layout;
}

FabricLayout try_fabric(const FabricSpec& fabric, const NodeSpec& node, std::int64_t nodes) {
  if (fabric.tiers != 0) return try_tiers(fabric, node, nodes, fabric.tiers);
  FabricLayout layout;
  for (std::int64_t t = 1; t <= max_tiers && layout.tiers.empty(); ++t)
    layout = try_tiers(fabric, node, nodes, t);
  return layout;
}

/// The most nodes that fit; room only shrinks as nodes grow, so halving finds it.
std::int64_t most_nodes(const FabricSpec& fabric, const NodeSpec& node) {
  std::int64_t fits = 0, too_many = 1 << 24;
  while (too_many - fits > 1) {
    const std::int64_t middle = (fits + too_many) / 2;
    (try_fabric(fabric, node, middle).tiers.empty() ? too_many : fits) = middle;
  }
  return fits;
}

std::string what_would_do(FabricSpec fabric, const NodeSpec& node, std::int64_t nodes) {
  const std::int64_t given_tiers = fabric.tiers;
  for (std::int64_t t = std::max<std::int64_t>(1, given_tiers + 1); t <= max_tiers; ++t) {
    fabric.tiers = t;
    if (!try_fabric(fabric, node, nodes).tiers.empty())
      return fmt::format("tiers = {} would hold them", t);
  }
  fabric.tiers = given_tiers;
  for (const std::int64_t ports : {36, 40, 64, 128, 144, 256, 512, 1024}) {
    fabric.ports = ports;
    if (!try_fabric(fabric, node, nodes).tiers.empty())
      return fmt::format("switches with ports = {} would hold them", ports);
  }
  return "use fewer nodes";
}

void check(const FabricSpec& fabric, const NodeSpec& node, std::int64_t nodes,
           const std::string& origin) {
  const auto demand = [&](bool holds, const char* what, const char* hint) {
    if (!holds) throw InputError(origin, fmt::format("fabric {}: {}", fabric.name, what), hint);
  };
  demand(nodes == 1 || node.nics > 0, "nodes without NICs cannot be joined",
         "give the node nics, or use one node");
  demand(fabric.ports >= 2 && fabric.ports <= 4096, "ports must be 2 to 4096",
         "64 is an NDR switch");
  demand(fabric.tiers >= 0 && fabric.tiers <= max_tiers, "tiers must be 0 (as needed) to 4",
         "2 tiers of 64 ports join 2,048 GPUs, 3 join 65,536");
  demand(std::isfinite(fabric.oversubscription) && fabric.oversubscription >= 1.0 / 64 &&
             fabric.oversubscription <= 4096.0,
         "oversubscription must be 1/64 to 4096", "1.0 is non-blocking, 2.0 halves the uplinks");
  demand(fabric.ecmp_seed >= 0, "ecmp_seed must not be negative", "any other number will do");
  demand(fabric.link.value >= 0, "link must not be negative", "leave it out: as the NIC");
  demand(fabric.switch_latency.count() >= 0 && fabric.cable_latency.count() >= 0,
         "a latency is negative", "give it as e.g. \"130 ns\"");
  demand(fabric.kind != FabricKind::rail_only || node.kind == NodeKind::nvswitch,
         "rail_only needs NVSwitches in a node: bytes change rails there",
         "kind = \"rail_optimized\" joins the rails by switches");
  const JobPlace& job = fabric.job;
  demand(job.fabric_nodes == 0 || job.fabric_nodes >= nodes,
         "fabric_nodes are fewer than the job's", "leave it out: the job's own");
  demand(job.seed >= 0, "placement_seed must not be negative", "any other number will do");
  demand(job.other_jobs >= 0 && job.other_jobs < 1, "other_jobs must be 0 or more and below 1",
         "0.3 leaves this job 70 % of every link between switches");
}

/// Drawn without return (Fisher-Yates), the same on every machine.
std::vector<std::int64_t> random_places(std::int64_t nodes, std::int64_t of, std::int64_t seed) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(of));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i);
  std::mt19937_64 draw(static_cast<std::uint64_t>(seed));
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i)
    std::swap(places[i], places[i + draw() % (places.size() - i)]);
  places.resize(static_cast<std::size_t>(nodes));
  return places;
}

}  // namespace

FabricLayout lay_out_fabric(const FabricSpec& fabric, const NodeSpec& whole, std::int64_t nodes,
                            const std::string& origin) {
  check(fabric, whole, nodes, origin);
  if (nodes == 1) return {};
  const std::int64_t trays = whole.trays();
  NodeSpec node = whole;  // one tray of it
  node.nics /= trays;
  const std::int64_t all_nodes = std::max(nodes, fabric.job.fabric_nodes);
  FabricLayout layout = try_fabric(fabric, node, all_nodes * trays);
  layout.trays = trays;
  if (fabric.job.placement == Placement::random)
    layout.places = random_places(nodes, all_nodes, fabric.job.seed);
  if (!layout.tiers.empty()) return layout;
  nodes = all_nodes * trays;
  throw InputError(
      origin,
      fmt::format("fabric {} cannot join {} {} of {} NICs: {} tiers of {}-port switches hold {}",
                  fabric.name, nodes, trays > 1 ? "trays" : "nodes", node.nics,
                  fabric.tiers == 0 ? max_tiers : fabric.tiers, fabric.ports,
                  most_nodes(fabric, node)),
      what_would_do(fabric, node, nodes));
}

std::int64_t FabricLayout::tray_of(std::int64_t node, std::int64_t nic) const {
  const std::int64_t place = places.empty() ? node : places[static_cast<std::size_t>(node)];
  return place * trays + nic / nics;
}

std::int64_t FabricLayout::leaf_of(std::int64_t node, std::int64_t nic) const {
  return (rails ? nic % nics * units : 0) + tray_of(node, nic) / unit_nodes;
}

std::int64_t FabricLayout::port_of(std::int64_t node, std::int64_t nic) const {
  const std::int64_t within = tray_of(node, nic) % unit_nodes;
  return leaf_of(node, nic) * tiers.front().children +
         (rails ? within : within * nics + nic % nics);
}

std::int64_t FabricLayout::parent_block(std::int64_t tier, std::int64_t block) const {
  const std::int64_t in_plane = tiers[at(tier)].blocks / planes, plane = block / in_plane;
  if (tier + 1 == num_tiers()) return plane;
  if (tier == 1) return block / units * pods_per_group + block % units / units_per_pod;
  return plane * (tiers[at(tier + 1)].blocks / planes) + block % in_plane / pods_per_zone;
}

std::int64_t FabricLayout::parent_index(std::int64_t tier, std::int64_t index,
                                        std::int64_t choice) const {
  const FabricTier& up = tiers[at(tier + 1)];
  return index / up.group * up.choices + choice;
}

DeviceId FabricLayout::switch_id(std::int64_t tier, std::int64_t block, std::int64_t index) const {
  const FabricTier& t = tiers[at(tier)];
  return t.first_switch + static_cast<DeviceId>(block * t.top + index);
}

LinkId FabricLayout::injection_link(std::int64_t node, std::int64_t nic) const {
  return tiers.front().first_link + static_cast<LinkId>(2 * (node * trays * nics + nic));
}

LinkId FabricLayout::up_link(std::int64_t tier, std::int64_t block, std::int64_t index,
                             std::int64_t choice, std::int64_t bundle) const {
  const FabricTier& up = tiers[at(tier + 1)];
  const std::int64_t top_switch = block * tiers[at(tier)].top + index;
  return up.first_link +
         static_cast<LinkId>(2 * ((top_switch * up.choices + choice) * up.bundles + bundle));
}

}  // namespace stepcast::topology
