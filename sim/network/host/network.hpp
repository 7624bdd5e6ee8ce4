// The network of a machine whose "GPUs" are its own cores: collectives take the time that was
// measured between its ranks. Ranks of one machine share no link; those of several send over the
// cluster's, every rank to every other as the trainer's sockets do. Knows no model: what was not
// measured is an error that names the command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/network/links/loads.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/collective_curves.hpp"
#include "sim/tables/calibration_table.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// What joins several machines; nothing: there is one.
struct BetweenHosts {
  std::unique_ptr<const LinkLoads> links{};
  BytesPerSecond nic{};  // of each machine
};

class HostNetwork final : public NetworkModel {
 public:
  /// `origin` stands in errors.
  HostNetwork(const topology::GpuSpec& core, const std::vector<CollectiveRow>& rows,
              std::string origin, BetweenHosts between = {});

  CollectiveTime time_of(const workloads::Collective&, const GroupShape&) const override;
  /// None in one machine: ranks talk through memory, which the measured times hold.
  std::vector<LinkLoad> loads_of(const Delivery&,
                                 const std::vector<std::int64_t>& ranks) const override;

 private:
  struct Measured {
    CollectiveCurve curve;
    std::string dtype;  // of sums; empty: bytes that are only moved
  };
  Duration on_nic(workloads::CollectiveKind, Bytes, const GroupShape& shape) const;
  const Measured& measured(workloads::CollectiveKind, const GroupShape& shape,
                           const std::string& dtype) const;

  std::string core_, origin_;
  BetweenHosts between_;
  std::vector<Measured> curves_;
};

/// The error of a time that the tables do not hold and nothing else can tell for a host.
InputError not_measured(const std::string& where, const std::string& what);

}  // namespace stepcast::sim
