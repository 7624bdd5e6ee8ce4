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
/// between nodes NIC -> leaf -> spine (-> core) -> leaf -> NIC by destination-modulo.
class StaticRouter final : public Router {
 public:
  explicit StaticRouter(const Cluster& cluster);
  Path path(DeviceId from, DeviceId to, std::uint64_t flow_key) const override;

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

/// Latency of a path: the sum over its links.
Duration latency_of(const Cluster&, const Path&);

}  // namespace stepcast::topology
