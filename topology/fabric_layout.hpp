// The fabric above the NICs as arithmetic: how many switches in which tier, and the id of every
// link. A folded Clos network of blocks: a block of tier t is some blocks of tier t-1 under its own
// top switches; all blocks of a tier are alike, so that ids are products and sums, never searched.
//
//   tier 3   core  core    core  core        one block: all pods under the core switches
//              | \/ |        | \/ |
//   tier 2   spine spine   spine spine       a block (pod): leaves and the spines that join them
//              | \/ |        | \/ |
//   tier 1   leaf  leaf    leaf  leaf        a block: one leaf
//            |||   |||     |||   |||
//            NICs
#pragma once

#include <array>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stepcast::topology {

constexpr std::int64_t max_tiers = 4;

/// One tier of switches. `top` switches stand at the head of each of `blocks` blocks.
struct FabricTier {
  std::int64_t blocks = 0;
  std::int64_t top = 1;
  std::int64_t children = 0;  // the most blocks of the tier below in one block; tier 1: NICs
  std::int64_t group = 1;     // top switches of a child that share their parents
  std::int64_t choices = 0;   // parents of a top switch of a child
  std::int64_t cables = 0;    // between a top switch of a child and one of its parents
  std::int64_t bundles =
      1;  // links that they count as: one, or each its own where flows are hashed
  std::int64_t uplinks = 0;  // cables upward of one top switch; 0 in the highest tier
  DeviceId first_switch = 0;
  LinkId first_link = 0;  // of the links from the tier below up to this one (tier 1: injection)

  std::int64_t links_up() const { return choices * bundles; }  // of a top switch of a child
};

struct FabricLayout {
  std::vector<FabricTier> tiers;  // tiers[0] are the leaves; empty for a cluster of one node
  bool rails = false;             // NIC i meets only leaves of rail i
  std::int64_t planes = 1;        // networks that no switch joins: one for each rail, if rail-only
  std::vector<std::int64_t> places;  // of the job's nodes in the fabric; empty: node n's is n
  std::int64_t trays = 1;            // of a node: each is cabled as a node of its own
  std::int64_t nics = 0;             // of a tray
  std::int64_t unit_nodes = 0;       // trays whose NICs share a leaf: the scalable unit
  std::int64_t units = 0;
  std::int64_t leaf_groups = 1;  // rails, or 1
  std::int64_t pods_per_group = 1;
  std::int64_t units_per_pod = 1;
  std::int64_t pods_per_zone = 1;
  std::size_t num_devices = 0, num_links = 0;  // of the whole cluster, nodes and all

  std::int64_t num_tiers() const { return static_cast<std::int64_t>(tiers.size()); }
  /// Whether switches join the NICs of these numbers on two nodes.
  bool joined(std::int64_t nic_a, std::int64_t nic_b) const {
    return planes == 1 || nic_a % nics == nic_b % nics;
  }
  /// The NIC beside `nic` in its tray that is on the rail of `other`.
  std::int64_t on_rail_of(std::int64_t nic, std::int64_t other) const {
    return nic / nics * nics + other % nics;
  }
  std::int64_t leaf_of(std::int64_t node, std::int64_t nic) const;
  /// The tray of the whole fabric that has the NIC.
  std::int64_t tray_of(std::int64_t node, std::int64_t nic) const;
  /// The NIC's number with every leaf's ports filled: what destination-modulo counts with.
  std::int64_t port_of(std::int64_t node, std::int64_t nic) const;
  /// The block of tier `tier + 1` that holds block `block` of `tier`; tiers count from 1.
  std::int64_t parent_block(std::int64_t tier, std::int64_t block) const;
  /// Which top switch of the parent block the `choice`-th parent of top switch `index` is.
  std::int64_t parent_index(std::int64_t tier, std::int64_t index, std::int64_t choice) const;
  DeviceId switch_id(std::int64_t tier, std::int64_t block, std::int64_t index) const;
  LinkId injection_link(std::int64_t node, std::int64_t nic) const;  // up; down is its ^ 1
  LinkId up_link(std::int64_t tier, std::int64_t block, std::int64_t index, std::int64_t choice,
                 std::int64_t bundle) const;  // from `tier` to `tier + 1`
};

/// The smallest fabric of this kind for so many nodes, or for all that the job's fabric has. Throws
/// InputError, naming what would do.
FabricLayout lay_out_fabric(const FabricSpec&, const NodeSpec&, std::int64_t nodes,
                            const std::string& origin);

DeviceKind switch_kind(std::int64_t tier);  // 1: leaf ... 4: supercore

struct ClusterParts;
/// Sets the first ids of every tier: the fabric's come after those of all nodes.
void number_fabric(ClusterParts&);
/// Of the fabric, by its id in the cluster.
Device fabric_device(const ClusterParts&, DeviceId);
Link fabric_link(const ClusterParts&, LinkId);

}  // namespace stepcast::topology
