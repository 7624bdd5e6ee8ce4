// Which links bytes take from one device to another. Paths are shortest in hops; where several
// uplinks are equally short, the fabric's routing picks one or takes all (FabricSpec::routing). The
// same flow always takes the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topology/cluster.hpp"

namespace stepcast::topology {

using Path = std::vector<LinkId>;

/// A link with the part of a flow's bytes that crosses it, above 0 and at most 1.
struct LinkShare {
  LinkId link = 0;
  double share = 1.0;
};

class Router {
 public:
  virtual ~Router() = default;
  /// Links in order. Throws BrokenPromise when there is no way.
  virtual Path path(DeviceId from, DeviceId to, std::uint64_t flow_key) const = 0;

  /// Appends every link that the flow's bytes take with its share of them; a link may come twice.
  /// Here the links of its path, each with all bytes.
  virtual void append_shares(DeviceId from, DeviceId to, std::uint64_t flow_key,
                             std::vector<LinkShare>& shares) const;
};

/// Static routes over a cluster: NVLink inside a node where there is a link or a switch, else PCIe;
/// between nodes GPU -> PCIe -> NIC of its rail -> leaf -> spine (-> core) -> leaf -> NIC of the
/// destination's rail -> PCIe -> GPU; where switches do not join the two rails (rail-only), first
/// over NVLink to the GPU beside the NIC of the destination's rail (NCCL's PXN). `flow_key` tells
/// the flows of one pair apart (NCCL: the channel, which has a queue pair of its own): it picks the
/// NVSwitch or the NVLink route and, under ECMP, goes into the hash; routes by destination do not
/// see it. Ends are GPUs, NICs, CPUs or PCIe switches. The cluster must outlive the router; moving
/// the Cluster is allowed.
class StaticRouter final : public Router {
 public:
  explicit StaticRouter(const Cluster& cluster);
  ~StaticRouter() override;
  StaticRouter(StaticRouter&&) noexcept;
  /// Under Routing::spray one of the ways: that of Routing::destination.
  Path path(DeviceId from, DeviceId to, std::uint64_t flow_key) const override;
  /// Under Routing::spray all equal ways, each with its part.
  void append_shares(DeviceId from, DeviceId to, std::uint64_t flow_key,
                     std::vector<LinkShare>& shares) const override;

  /// path() without an allocation of its own: appends to `path`.
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
