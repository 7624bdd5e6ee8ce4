// What a Cluster is made of, for the files of this folder: a node layout that is repeated, a fabric
// layout on top of it, and the numbering of the devices and links of both. Ids are arithmetic;
// lists of all devices and links are made when they are first asked for.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/fabric_layout.hpp"
#include "topology/node_layout.hpp"

namespace stepcast::topology {

/// A kind of device in names and in text.
struct KindWords {
  std::string_view name, noun;
};
const KindWords& words_of(DeviceKind);

/// A list that is made when it is first asked for, by one thread while others wait. A copy makes
/// its own.
template <class T>
class ListedOnce {
 public:
  ListedOnce() = default;
  ListedOnce(const ListedOnce&) {}
  ListedOnce& operator=(const ListedOnce&) = delete;

  template <class Make>
  const std::vector<T>& get(Make make) const {
    if (made_.load(std::memory_order_acquire)) return list_;
    const std::lock_guard lock(making_);
    if (!made_.load(std::memory_order_relaxed)) list_ = make();
    made_.store(true, std::memory_order_release);
    return list_;
  }

 private:
  mutable std::atomic<bool> made_ = false;
  mutable std::mutex making_;
  mutable std::vector<T> list_;
};

struct ClusterParts {
  NodeSpec node;
  FabricSpec fabric;
  std::int64_t nodes = 0;
  NodeLayout node_layout;
  FabricLayout fabric_layout;
  /// Nodes whose cables are slower, with the factor.
  std::vector<std::pair<std::int64_t, double>> slow_cables;

  DeviceId node_devices() const { return static_cast<DeviceId>(node_layout.devices.size()); }
  LinkId node_links() const { return static_cast<LinkId>(node_layout.links.size()); }
  DeviceId first_fabric_device() const { return static_cast<DeviceId>(nodes) * node_devices(); }
  LinkId first_fabric_link() const { return static_cast<LinkId>(nodes) * node_links(); }

  std::size_t num_devices() const;
  std::size_t num_links() const;
  Device device(DeviceId) const;
  Link link(LinkId) const;
  const std::vector<Device>& devices() const;
  const std::vector<Link>& links() const;

 private:
  ListedOnce<Device> devices_;
  ListedOnce<Link> links_;
};

}  // namespace stepcast::topology
