// Adds up what hops put on links: small groups by sorting, large ones in one pass over all links.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/network/model.hpp"

namespace stepcast::sim {

/// Weights are rounded up to multiples of 1 / this. Sprayed packets and hashed flows leave small
/// parts on many links: 1/8 of a ring over 32 x 32 ways is 2^-13.
inline double weight_units(topology::Routing routing) {
  return routing == topology::Routing::destination ? 1024.0 : 0x1p24;
}

/// Products like 1/8 of 7/8 may miss their multiple by a rounding error.
inline double rounded_up(double weight, double units) {
  return std::ceil(weight * units - 1e-9 * units / 1024.0) / units;
}

class LinkLoadSum {
 public:
  explicit LinkLoadSum(std::size_t num_links) : num_links_(num_links) {}

  void add(topology::LinkId link, double weight) { loads_.push_back({link, weight}); }
  void reserve(std::size_t count) { loads_.reserve(count); }
  std::size_t num_links() const { return num_links_; }
  /// A router's answer before it is added: one allocation for all of them.
  std::vector<topology::LinkShare>& scratch() { return scratch_; }

  /// Every link once, ascending, as it stands; empties the sum.
  std::vector<LinkLoad> take() {
    if (loads_.size() > num_links_ / 8)
      merge_densely();
    else
      merge();
    return std::move(loads_);
  }

  /// The same, rounded up to multiples of 1 / units, without links that carry nothing.
  std::vector<LinkLoad> take_rounded(double units) {
    std::vector<LinkLoad> loads = take();
    for (LinkLoad& load : loads) load.bytes_per_byte = rounded_up(load.bytes_per_byte, units);
    std::erase_if(loads, [](const LinkLoad& load) { return load.bytes_per_byte <= 0.0; });
    return loads;
  }

 private:
  void merge() {
    std::sort(loads_.begin(), loads_.end(),
              [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < loads_.size();) {
      LinkLoad sum = loads_[i];
      for (++i; i < loads_.size() && loads_[i].link == sum.link; ++i)
        sum.bytes_per_byte += loads_[i].bytes_per_byte;
      loads_[kept++] = sum;
    }
    loads_.resize(kept);
  }

  void merge_densely() {
    std::vector<double> sums(num_links_, 0.0);
    for (const LinkLoad& load : loads_) sums[load.link] += load.bytes_per_byte;
    loads_.clear();
    for (std::size_t link = 0; link < num_links_; ++link)
      if (sums[link] != 0.0) loads_.push_back({static_cast<topology::LinkId>(link), sums[link]});
  }

  std::size_t num_links_;
  std::vector<LinkLoad> loads_;
  std::vector<topology::LinkShare> scratch_;
};

}  // namespace stepcast::sim
