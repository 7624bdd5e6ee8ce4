// What many communicators put on links, one communicator after the other, in little memory: steps
// of thousands of nodes have millions of loads with few different weights, and most communicators
// are copies of another one in another node.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/network/model.hpp"

namespace stepcast::sim {

class LoadList {
 public:
  /// The loads of the next communicator, which has `unit` flows' bytes per byte.
  void add(std::span<const LinkLoad> loads, double unit = 1.0) {
    const auto first = static_cast<std::uint32_t>(loads_.size());
    for (const LinkLoad& load : loads)
      if (load.bytes_per_byte > 0.0)
        loads_.push_back({load.link, number_of(load.bytes_per_byte / unit)});
    ranges_.push_back({first, static_cast<std::uint32_t>(loads_.size()) - first, 0});
  }
  /// The next communicator loads links as an earlier one does, `offset` after those.
  void add_copy(std::size_t of, topology::LinkId offset) {
    Range copy = ranges_[of];
    copy.offset += offset;
    ranges_.push_back(copy);
  }

  std::size_t size() const { return ranges_.size(); }
  /// Weights that differ, by their numbers.
  const std::vector<double>& weights() const { return weights_; }
  /// Calls use(link, number of the weight) for each load of a communicator.
  template <class Use>
  void each(std::size_t communicator, Use use) const {
    const Range& range = ranges_[communicator];
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
      use(static_cast<topology::LinkId>(loads_[i].link + range.offset), loads_[i].weight);
  }

 private:
  struct Load {
    topology::LinkId link;
    std::uint32_t weight;  // its number
  };
  struct Range {  // of loads_
    std::uint32_t first, count;
    topology::LinkId offset;  // modulo 2^32: an earlier node's comes after
  };

  std::uint32_t number_of(double weight) {
    if (!weights_.empty() && weights_[last_] == weight) return last_;
    const auto next = static_cast<std::uint32_t>(weights_.size());
    const auto [at, added] = numbers_.try_emplace(std::bit_cast<std::uint64_t>(weight), next);
    if (added) weights_.push_back(weight);
    return last_ = at->second;
  }

  std::vector<Load> loads_;
  std::vector<Range> ranges_;  // by communicator
  std::vector<double> weights_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // looked up only, never walked
  std::uint32_t last_ = 0;
};

}  // namespace stepcast::sim
