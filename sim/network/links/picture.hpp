// From the links of a cluster to the few that can matter to a run. Which communicators load which
// link, and how much, is the layout's; how fast their transfers drain is the step's. A link that
// could carry every transfer over it at full speed at once never slows one: it is left out. Links
// that carry the same communicators with the same weights differ at most in capacity: the narrowest
// stands for all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/system.hpp"
#include "sim/network/links/load_list.hpp"
#include "sim/network/model.hpp"
#include "sim/program/cache.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// What a collective moves through its busiest end per byte: of all NICs, or of all GPUs' ports
/// where no bytes leave the node. 1 without any load.
double busiest_end(const topology::Cluster& cluster, const std::vector<LinkLoad>& loads);

class LinkPicture {
 public:
  /// `groups`, by communicator: those of one group will always be as fast as each other. Empty:
  /// each is a group of its own.
  LinkPicture(const topology::Cluster& cluster, const LoadList& loads,
              std::vector<std::uint32_t> groups = {});
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
    std::uint32_t likeness = 0;  // the first class of its speed with the same weights of groups
  };
  struct NicLoad {
    std::uint32_t communicator = 0;
    BytesPerSecond end{};
    double weight = 0.0;
    friend bool operator==(const NicLoad&, const NicLoad&) = default;
  };
  /// The uses of alike classes that count in a step, by their place in the class. Weights have
  /// numbers, so that steps with other weights over the same links have the same.
  struct Counting {
    struct Place {
      std::uint32_t use = 0, weight = 0;
      friend bool operator==(const Place&, const Place&) = default;
    };
    std::vector<Place> places;
    std::vector<std::uint32_t> ends;  // of the places, by alike classes in their order
    friend bool operator==(const Counting&, const Counting&) = default;
  };
  /// Links that are put on, and who loads them.
  struct Links {
    struct Load {
      std::uint32_t link = 0, weight = 0;
    };
    std::vector<BytesPerSecond> capacity;
    std::vector<std::uint32_t> owner;
    std::vector<topology::LinkId> origins;
    std::vector<Load> loads;
    std::vector<std::uint32_t> end_of_communicator;  // of the loads
  };
  void note_nics(const topology::Cluster& cluster, const LoadList&);
  void sort_links(const topology::Cluster& cluster, const LoadList&);
  void sort_groups(std::size_t communicators);
  void find_alike_classes();
  std::uint32_t number_of(const Speed&);
  std::span<const Use> uses_of(std::uint32_t c) const {
    return std::span(uses_).subspan(classes_[c].first_use,
                                    classes_[c + 1].first_use - classes_[c].first_use);
  }
  std::vector<double> carried_of_groups(const std::vector<double>& fastest) const;
  Counting counting_uses(const std::vector<double>& fastest, std::vector<double>& weights) const;
  Links links_of(const Counting&) const;

  std::vector<double> weights_;
  std::vector<Speed> speeds_;
  std::vector<Use> uses_;
  std::vector<Class> classes_;  // by their first link; and one more, where the last one's uses end
  std::vector<NicLoad> nics_;   // of the first communicator of each group: those that differ
  std::vector<std::uint32_t> groups_;          // by communicator
  std::vector<std::uint32_t> first_of_group_;  // its first communicator
  std::unique_ptr<Cache<Counting, Links>> known_;
};

}  // namespace stepcast::sim
