// The network model of a cluster that runs NCCL: choice by version, time from measured curves where
// they exist and from the physical model elsewhere, loads on the cluster's own links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/network/links/loads.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/collective_curves.hpp"
#include "sim/network/nccl/time.hpp"
#include "sim/network/path_latency.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::sim {

/// Times of collectives over groups of any shape on nodes of one kind; needs no cluster. Threads
/// may share one: what it remembers of a group follows from its shape.
class CollectiveTimes {
 public:
  CollectiveTimes(topology::NodeSpec node, NcclFacts nccl,
                  const std::vector<CollectiveRow>& rows = {}, NcclOverrides overrides = {});
  CollectiveTimes(CollectiveTimes&&) = default;

  CollectiveTime time_of(const NcclCall&, const GroupShape&) const;
  CollectiveTime time_of(workloads::CollectiveKind kind, Bytes bytes,
                         const GroupShape& shape) const {
    return time_of({.kind = kind, .bytes = bytes}, shape);
  }
  /// The time of one of NCCL's ways, chosen or not, by the model alone. `machine` is the planned
  /// one.
  CollectiveTime time_of_way(const NcclCall&, const NcclMachine& machine, const NcclOption&) const;
  const CollectiveCurves& curves() const { return curves_; }

 private:
  struct Group;     // its machine
  struct Modelled;  // NCCL's way, and its time by the model
  struct Memory;
  std::shared_ptr<const Group> group_of(const GroupShape&) const;
  Modelled model(const NcclCall&, const Group&) const;
  Modelled way(const NcclCall&, const Group&, const NcclOption&) const;
  CollectiveTime described(const NcclCall&, const Group&, const Modelled&) const;
  std::int64_t ctas_of(const NcclCall&, const Group&, const NcclOption&) const;
  Duration slowest_below(const NcclCall&, const Group&, const Modelled& at_its_bytes) const;
  Duration monotone(const NcclCall&, const Group&, const Modelled&) const;
  Duration extended(const CollectiveCurve&, Bytes) const;
  double mean_ratio(const CollectiveCurve&) const;
  Duration longest_of_fewer(const CollectiveCurve&, Bytes) const;
  Duration between_nodes(const CollectiveCurves::Neighbours&, Bytes, std::int64_t nodes,
                         Duration modelled) const;
  void correct(CollectiveTime&, const NcclCall&, const GroupShape&) const;

  topology::NodeSpec node_;
  NcclTuning tuning_;
  NetworkConstants constants_;
  CollectiveCurves curves_;
  NcclOverrides overrides_;
  std::shared_ptr<Memory> memory_;
};

/// `cluster` and `router` are borrowed.
class NcclNetwork final : public NetworkModel {
 public:
  NcclNetwork(const topology::Cluster& cluster, const topology::Router& router, NcclFacts nccl,
              const std::vector<CollectiveRow>& rows = {}, NcclOverrides overrides = {});

  CollectiveTime time_of(const workloads::Collective&, const GroupShape&) const override;
  std::vector<LinkLoad> loads_of(const Delivery&,
                                 const std::vector<std::int64_t>& ranks) const override;

 private:
  CollectiveTimes times_;
  TokenExchangeTimes exchanges_;
  PathLatency paths_;
  LinkLoads loads_;
};

}  // namespace stepcast::sim
