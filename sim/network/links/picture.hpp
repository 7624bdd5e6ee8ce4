// From the links of a cluster to the few that can matter to a run. Which communicators load which
// link, and how much, is the layout's; how fast their transfers drain is the step's. A link that
// could carry every transfer over it at full speed at once never slows one: it is left out. Links
// that carry the same communicators with the same weights differ at most in capacity: the narrowest
// stands for all.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"
#include "sim/network/links/load_list.hpp"
#include "sim/network/model.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// What a collective moves through its busiest end per byte: of all NICs, or of all GPUs' ports
/// where no bytes leave the node. 1 without any load.
double busiest_end(const topology::Cluster& cluster, const std::vector<LinkLoad>& loads);

class LinkPicture {
 public:
  LinkPicture(const topology::Cluster& cluster, const LoadList& loads);
  /// The loads of every communicator.
  LinkPicture(const topology::Cluster& cluster, const std::vector<std::vector<LinkLoad>>& loads);

  /// Fills in capacities, owners and the communicators' loads. `fastest`, by communicator: the rate
  /// (bytes/s of the load's byte) that its transfers have by their ends alone; uplinks may allow
  /// less. Returns, by link of the system, one of those that it stands for.
  std::vector<topology::LinkId> put_on(engine::System& system,
                                       const std::vector<double>& fastest) const;

 private:
  struct Use {
    std::uint32_t communicator = 0;
    std::uint32_t weight = 0;  // its number
    friend bool operator==(const Use&, const Use&) = default;
  };
  /// How fast links of a class are.
  struct Speed {
    BytesPerSecond capacity{};
    BytesPerSecond end{};  // what a transfer alone is spared (picture.cpp)
    bool uplink = false;
    friend bool operator==(const Speed&, const Speed&) = default;
  };
  /// Links of one speed that the same communicators load alike; its uses end where those of the
  /// next class begin.
  struct Class {
    std::uint32_t first_use = 0;
    std::uint32_t speed = 0;  // its number
    std::uint32_t owner = 0;  // of the first of them
    topology::LinkId first = 0;
  };
  struct NicLoad {
    std::uint32_t communicator = 0;
    BytesPerSecond end{};
    double weight = 0.0;
    friend bool operator==(const NicLoad&, const NicLoad&) = default;
  };
  void note_nics(const topology::Cluster& cluster, const LoadList&);
  void sort_links(const topology::Cluster& cluster, const LoadList&);
  std::uint32_t number_of(const Speed&);

  std::vector<double> weights_;
  std::vector<Speed> speeds_;
  std::vector<Use> uses_;
  std::vector<Class> classes_;  // by their first link; and one more, where the last one's uses end
  std::vector<NicLoad> nics_;   // by communicator: those that differ
};

}  // namespace stepcast::sim
