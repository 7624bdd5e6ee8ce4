#include "sim/network/links/picture.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>
#include <utility>

#include "topology/wires.hpp"

namespace stepcast::sim {
namespace {

/// Finds what equals an earlier one, by a hash. Open addressing: a step of thousands of nodes has a
/// million links.
class Alike {
 public:
  /// The earlier one's id for which equals(id), else `id`, which is known from now on.
  template <class Equals>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t id, Equals equals) {
    if (2 * ++count_ > known_.size()) grow();
    const auto tag = static_cast<std::uint32_t>((hash ^ hash >> 29) * 0x9e3779b97f4a7c15U >> 32);
    std::size_t at = tag & (known_.size() - 1);
    for (; known_[at].id != none; at = (at + 1) & (known_.size() - 1)) {
      if (known_[at].tag != tag || !equals(known_[at].id)) continue;
      --count_;
      return known_[at].id;
    }
    known_[at] = {tag, id};
    return id;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Known {
    std::uint32_t tag = 0, id = none;
  };

  void grow() {
    const std::vector<Known> before = std::exchange(known_, std::vector<Known>(2 * known_.size()));
    for (const Known& known : before) {
      if (known.id == none) continue;
      std::size_t at = known.tag & (known_.size() - 1);
      while (known_[at].id != none) at = (at + 1) & (known_.size() - 1);
      known_[at] = known;
    }
  }

  std::vector<Known> known_ = std::vector<Known>(64);
  std::size_t count_ = 0;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 1099511628211U;  // FNV-1a
}
constexpr std::uint64_t seed = 1469598103934665603U;

// Of a link's capacity. A transfer that never takes as much leaves the others what they had, and is
// as fast as its time says: the world's sum of a norm is latency alone, but the ends of its tree
// would make ranks differ that are alike in all else.
constexpr double negligible = 1e-6;

/// Bytes of the load's byte that a link carries while a transfer moves one at its fastest.
double carried_by(BytesPerSecond capacity, double fastest) {
  return capacity.value / fastest * (1 - 1e-9);
}

/// What a transfer alone takes of a link at its end: a NIC's cable that is narrower than the NIC
/// is no part of the transfer's own time, so it is not spared.
BytesPerSecond end_of(const topology::Cluster& cluster, const topology::Link& link) {
  const bool cable = link.kind == topology::LinkKind::injection;
  return cable ? std::max(link.bandwidth, cluster.node().nic) : link.bandwidth;
}

}  // namespace

double busiest_end(const topology::Cluster& cluster, const std::vector<LinkLoad>& loads) {
  double nic = 0.0, port = 0.0;
  std::unordered_map<topology::DeviceId, double> ports;  // bytes out of a GPU; looked up only
  for (const LinkLoad& load : loads) {
    const topology::Link link = topology::link_of(cluster, load.link);
    if (link.kind == topology::LinkKind::injection) nic = std::max(nic, load.bytes_per_byte);
    if (topology::device_of(cluster, link.from).kind == topology::DeviceKind::gpu)
      port = std::max(port, ports[link.from] += load.bytes_per_byte);
  }
  return nic > 0.0 ? nic : port > 0.0 ? port : 1.0;
}

LinkPicture::LinkPicture(const topology::Cluster& cluster, const LoadList& loads)
    : weights_(loads.weights()) {
  note_nics(cluster, loads);
  sort_links(cluster, loads);
}

LinkPicture::LinkPicture(const topology::Cluster& cluster,
                         const std::vector<std::vector<LinkLoad>>& loads)
    : LinkPicture(cluster, [&] {
        LoadList list;
        for (const std::vector<LinkLoad>& of_one : loads) list.add(of_one);
        return list;
      }()) {}

void LinkPicture::note_nics(const topology::Cluster& cluster, const LoadList& loads) {
  const std::span<const topology::Link> links = cluster.links();
  for (std::uint32_t c = 0; c < loads.size(); ++c) {
    const auto first = static_cast<std::ptrdiff_t>(nics_.size());
    loads.each(c, [&](topology::LinkId l, std::uint32_t weight) {
      const topology::Link& link = links[l];
      if (link.kind != topology::LinkKind::injection) return;
      const NicLoad nic{c, end_of(cluster, link), weights_[weight]};
      if (std::find(nics_.begin() + first, nics_.end(), nic) == nics_.end()) nics_.push_back(nic);
    });
  }
}

std::uint32_t LinkPicture::number_of(const Speed& speed) {
  // A cluster has a handful.
  const auto number =
      static_cast<std::uint32_t>(std::ranges::find(speeds_, speed) - speeds_.begin());
  if (number == speeds_.size()) speeds_.push_back(speed);
  return number;
}

/// Counts, then places: the uses of a link lie side by side. Those of the links that begin a class
/// then move to the front.
void LinkPicture::sort_links(const topology::Cluster& cluster, const LoadList& loads) {
  const std::span<const topology::Link> links = cluster.links();
  std::vector<std::uint32_t> end_of_link(links.size() + 1);
  for (std::uint32_t c = 0; c < loads.size(); ++c)
    loads.each(c, [&](topology::LinkId l, std::uint32_t) { ++end_of_link[l + 1]; });
  for (std::size_t l = 1; l < end_of_link.size(); ++l) end_of_link[l] += end_of_link[l - 1];
  uses_.resize(end_of_link.back());
  for (std::uint32_t c = 0; c < loads.size(); ++c)
    loads.each(c, [&](topology::LinkId l, std::uint32_t weight) {
      uses_[end_of_link[l]++] = {c, weight};
    });
  Alike alike;
  std::uint32_t kept = 0, first = 0;
  for (topology::LinkId l = 0; l < links.size(); first = end_of_link[l++]) {
    const std::span<const Use> uses(uses_.data() + first, end_of_link[l] - first);
    if (uses.empty()) continue;
    const topology::Link& link = links[l];
    const std::uint32_t speed =
        number_of({link.bandwidth, end_of(cluster, link), link.kind == topology::LinkKind::fabric});
    std::uint64_t hash = mix(seed, speed);
    for (const Use& use : uses) hash = mix(mix(hash, use.communicator), use.weight);
    const auto next = static_cast<std::uint32_t>(classes_.size());
    const std::uint32_t id = alike.find_or_add(hash, next, [&](std::uint32_t c) {
      const std::uint32_t end = c + 1 < next ? classes_[c + 1].first_use : kept;
      return classes_[c].speed == speed &&
             std::ranges::equal(
                 std::span(uses_).subspan(classes_[c].first_use, end - classes_[c].first_use),
                 uses);
    });
    if (id != next) continue;
    const auto owner = cluster.private_gpu(l);
    classes_.push_back(
        {kept, speed, owner ? static_cast<std::uint32_t>(*owner) : engine::no_owner, l});
    std::ranges::copy(uses, uses_.begin() + kept);
    kept += static_cast<std::uint32_t>(uses.size());
  }
  classes_.push_back({kept, 0, engine::no_owner, 0});
  uses_.resize(kept);
  uses_.shrink_to_fit();
  classes_.shrink_to_fit();
}

/// Alone, a transfer runs as fast as its time says: where the picture of its loads would exceed a
/// link of its ends (in-switch reduction carries less than a ring), the load is what the link
/// carries. Uplinks are held to nothing: a collective that sends more over one than it carries,
/// because leaves are oversubscribed or its own flows collide, is slower for it.
std::vector<topology::LinkId> LinkPicture::put_on(engine::System& system,
                                                  const std::vector<double>& fastest) const {
  std::vector<topology::LinkId> origins;
  std::vector<double> carried(fastest.size(), 1.0);  // of the picture, by the NICs
  for (const NicLoad& nic : nics_)
    carried[nic.communicator] = std::min(
        carried[nic.communicator], carried_by(nic.end, fastest[nic.communicator]) / nic.weight);
  struct Weighted {
    std::uint32_t communicator;
    double weight;
    bool operator==(const Weighted&) const = default;
  };
  const auto base = static_cast<std::uint32_t>(system.link_capacity.size());
  std::vector<Weighted> kept, uses;  // of the links put on; of one class
  std::vector<std::size_t> first_kept{0};
  std::vector<std::uint32_t> num_loads(fastest.size());
  Alike alike;
  for (std::size_t c = 0; c + 1 < classes_.size(); ++c) {
    const Speed& speed = speeds_[classes_[c].speed];
    double demand = 0.0;
    uses.clear();
    for (std::uint32_t u = classes_[c].first_use; u < classes_[c + 1].first_use; ++u) {
      const std::uint32_t communicator = uses_[u].communicator;
      const double of_picture = weights_[uses_[u].weight];
      const double weight =
          speed.uplink ? of_picture * carried[communicator]
                       : std::min(of_picture, carried_by(speed.end, fastest[communicator]));
      const double most = weight * fastest[communicator];
      if (most < negligible * speed.capacity.value) continue;
      demand += most;
      uses.push_back({communicator, weight});
    }
    if (demand <= speed.capacity.value) continue;
    std::uint64_t hash = seed;
    for (const Weighted& use : uses)
      hash = mix(mix(hash, use.communicator), std::bit_cast<std::uint64_t>(use.weight));
    const auto next = static_cast<std::uint32_t>(system.link_capacity.size());
    const std::uint32_t id = alike.find_or_add(hash, next, [&](std::uint32_t link) {
      const std::size_t first = first_kept[link - base], end = first_kept[link - base + 1];
      return std::ranges::equal(std::span(kept).subspan(first, end - first), uses);
    });
    if (id != next) {
      if (speed.capacity < system.link_capacity[id]) origins[id - base] = classes_[c].first;
      system.link_capacity[id] = std::min(system.link_capacity[id], speed.capacity);
      continue;
    }
    system.link_capacity.push_back(speed.capacity);
    system.link_owner.push_back(classes_[c].owner);
    origins.push_back(classes_[c].first);
    kept.insert(kept.end(), uses.begin(), uses.end());
    first_kept.push_back(kept.size());
    for (const Weighted& use : uses) ++num_loads[use.communicator];
  }
  for (std::size_t c = 0; c < num_loads.size(); ++c)
    if (num_loads[c] > 0)
      system.communicators[c].loads.reserve(system.communicators[c].loads.size() + num_loads[c]);
  for (std::uint32_t l = 0; l + 1 < first_kept.size(); ++l)
    for (std::size_t k = first_kept[l]; k < first_kept[l + 1]; ++k)
      system.communicators[kept[k].communicator].loads.push_back({base + l, kept[k].weight});
  return origins;
}

}  // namespace stepcast::sim
