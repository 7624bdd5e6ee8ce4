// Which links bytes take from one device to another. Paths are shortest in hops; where several
// uplinks are equally short, the key picks one (destination-modulo, as static InfiniBand routing
// does), so the same pair always takes the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topology/cluster.hpp"

namespace stepcast::topology {

using Path = std::vector<LinkId>;

class Router {
 public:
  virtual ~Router() = default;
  /// Links in order. Throws BrokenPromise when there is no way.
  virtual Path path(DeviceId from, DeviceId to, std::uint64_t flow_key) const = 0;
};

/// Static routes over a cluster: NVLink inside a node where there is a link or a switch, else PCIe;
/// between nodes GPU -> PCIe -> NIC of its rail -> leaf -> spine (-> core) -> leaf -> NIC of the
/// destination's rail -> PCIe -> GPU. Uplinks by destination-modulo: the digits of the
/// destination's port number plus `flow_key`, so key 0 is InfiniBand's static routing and other
/// keys are its other planes (also the NVSwitch that is used). Ends are GPUs, NICs, CPUs or PCIe
/// switches. The cluster must outlive the router; moving the Cluster is allowed.
class StaticRouter final : public Router {
 public:
  explicit StaticRouter(const Cluster& cluster);
  ~StaticRouter() override;
  Path path(DeviceId from, DeviceId to, std::uint64_t flow_key) const override;

  /// The same without an allocation of its own: appends to `path`.
  void append_path(DeviceId from, DeviceId to, std::uint64_t flow_key, Path& path) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

/// Latency of a path: the sum over its links.
Duration latency_of(const Cluster&, const Path&);
/// Fabric switches that a path crosses.
std::int64_t switches_on(const Cluster&, const Path&);

}  // namespace stepcast::topology
