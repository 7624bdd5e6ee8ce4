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

constexpr double no_weight = -1.0;  // of a use that does not count

// Steps of one plan over one picture differ little in which of its links matter.
constexpr std::size_t most_links = 4;

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
  for (const LinkLoad& load : loads)
    if (topology::link_of(cluster, load.link).kind == topology::LinkKind::injection)
      nic = std::max(nic, load.bytes_per_byte);
  if (nic > 0.0) return nic;
  std::unordered_map<topology::DeviceId, double> ports;  // bytes out of a GPU; looked up only
  for (const LinkLoad& load : loads) {
    const topology::DeviceId from = topology::link_of(cluster, load.link).from;
    if (topology::device_of(cluster, from).kind == topology::DeviceKind::gpu)
      port = std::max(port, ports[from] += load.bytes_per_byte);
  }
  return port > 0.0 ? port : 1.0;
}

LinkPicture::LinkPicture(const topology::Cluster& cluster, const LoadList& loads,
                         std::vector<std::uint32_t> groups)
    : weights_(loads.weights()),
      groups_(std::move(groups)),
      known_(std::make_unique<Cache<Counting, Links>>(most_links)) {
  note_nics(cluster, loads);
  sort_links(cluster, loads);
  sort_groups(loads.size());
  find_alike_classes();
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

/// Splits the groups until the communicators of one have the same NICs, and keeps those of the
/// first.
void LinkPicture::sort_groups(std::size_t communicators) {
  const bool each_alone = groups_.empty();
  std::vector<NicLoad> kept;
  Alike alike;
  std::vector<std::span<const NicLoad>> nics_of_group;
  std::vector<std::uint32_t> given;
  std::size_t end = 0;
  for (std::uint32_t c = 0; c < communicators; ++c) {
    const std::size_t first = end;
    while (end < nics_.size() && nics_[end].communicator == c) ++end;
    if (each_alone) {
      groups_.push_back(c);
      first_of_group_.push_back(c);
      continue;
    }
    const std::span<const NicLoad> nics = std::span(nics_).subspan(first, end - first);
    std::uint64_t hash = mix(seed, groups_[c]);
    for (const NicLoad& nic : nics)
      hash = mix(mix(hash, std::bit_cast<std::uint64_t>(nic.end.value)),
                 std::bit_cast<std::uint64_t>(nic.weight));
    const auto next = static_cast<std::uint32_t>(first_of_group_.size());
    const std::uint32_t id = alike.find_or_add(hash, next, [&](std::uint32_t group) {
      return given[group] == groups_[c] &&
             std::ranges::equal(nics_of_group[group], nics, [](const auto& a, const auto& b) {
               return a.end == b.end && a.weight == b.weight;
             });
    });
    if (id == next) {
      first_of_group_.push_back(c);
      nics_of_group.push_back(nics);
      given.push_back(groups_[c]);
      kept.insert(kept.end(), nics.begin(), nics.end());
    }
    groups_[c] = id;
  }
  if (!each_alone) nics_ = std::move(kept);
}

void LinkPicture::find_alike_classes() {
  const bool each_alone = first_of_group_.size() == groups_.size();
  Alike alike;
  for (std::uint32_t c = 0; c + 1 < classes_.size(); ++c) {
    classes_[c].likeness = c;
    if (each_alone) continue;
    std::uint64_t hash = mix(seed, classes_[c].speed);
    for (const Use& use : uses_of(c)) hash = mix(mix(hash, groups_[use.communicator]), use.weight);
    classes_[c].likeness = alike.find_or_add(hash, c, [&](std::uint32_t other) {
      return classes_[other].speed == classes_[c].speed &&
             std::ranges::equal(uses_of(other), uses_of(c), [&](const Use& a, const Use& b) {
               return a.weight == b.weight && groups_[a.communicator] == groups_[b.communicator];
             });
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
    std::ranges::copy(uses, uses_.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += static_cast<std::uint32_t>(uses.size());
  }
  classes_.push_back({kept, 0, engine::no_owner, 0});
  uses_.resize(kept);
  uses_.shrink_to_fit();
  classes_.shrink_to_fit();
}

/// By group: what of the picture is carried, by the NICs.
std::vector<double> LinkPicture::carried_of_groups(const std::vector<double>& fastest) const {
  std::vector<double> carried(first_of_group_.size(), 1.0);
  for (const NicLoad& nic : nics_) {
    double& of_group = carried[groups_[nic.communicator]];
    of_group = std::min(of_group, carried_by(nic.end, fastest[nic.communicator]) / nic.weight);
  }
  return carried;
}

/// Finds out which uses count: none where the users of a link never have to share it.
///
/// Alone, a transfer runs as fast as its time says: where the picture of its loads would exceed a
/// link of its ends (in-switch reduction carries less than a ring), the load is what the link
/// carries. Uplinks are held to nothing: a collective that sends more over one than it carries,
/// because leaves are oversubscribed or its own flows collide, is slower for it.
LinkPicture::Counting LinkPicture::counting_uses(const std::vector<double>& fastest,
                                                 std::vector<double>& weights) const {
  const std::vector<double> carried = carried_of_groups(fastest);
  const auto number_of_weight = [&](double weight) {
    // Of a handful.
    const auto number =
        static_cast<std::uint32_t>(std::ranges::find(weights, weight) - weights.begin());
    if (number == weights.size()) weights.push_back(weight);
    return number;
  };
  Counting out;
  std::vector<double> of_uses;
  for (std::uint32_t c = 0; c + 1 < classes_.size(); ++c) {
    if (classes_[c].likeness != c) continue;
    const Speed& speed = speeds_[classes_[c].speed];
    const std::span<const Use> uses = uses_of(c);
    double demand = 0.0;
    of_uses.clear();
    for (const Use& use : uses) {
      const double of_picture = weights_[use.weight], most_of_it = fastest[use.communicator];
      const double weight = speed.uplink ? of_picture * carried[groups_[use.communicator]]
                                         : std::min(of_picture, carried_by(speed.end, most_of_it));
      const double most = weight * most_of_it;
      const bool counts = !(most < negligible * speed.capacity.value);
      if (counts) demand += most;
      of_uses.push_back(counts ? weight : no_weight);
    }
    if (!(demand <= speed.capacity.value))
      for (std::uint32_t u = 0; u < of_uses.size(); ++u)
        if (of_uses[u] != no_weight) out.places.push_back({u, number_of_weight(of_uses[u])});
    out.ends.push_back(static_cast<std::uint32_t>(out.places.size()));
  }
  return out;
}

LinkPicture::Links LinkPicture::links_of(const Counting& counting) const {
  Links out;
  std::vector<Use> kept;  // of the links put on
  std::vector<std::size_t> first_kept{0};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // by class: first and end
  Alike alike;
  std::uint32_t next_alike = 0;
  for (std::uint32_t c = 0; c + 1 < classes_.size(); ++c) {
    const Class& now = classes_[c];
    if (now.likeness == c) {
      places.emplace_back(next_alike == 0 ? 0 : counting.ends[next_alike - 1],
                          counting.ends[next_alike]);
      ++next_alike;
    } else {
      places.push_back(places[now.likeness]);
    }
    const auto [first, end] = places[c];
    if (first == end) continue;
    const std::span<const Use> uses = uses_of(c);
    const std::size_t first_use = kept.size();
    std::uint64_t hash = seed;
    for (std::uint32_t p = first; p < end; ++p) {
      kept.push_back({uses[counting.places[p].use].communicator, counting.places[p].weight});
      hash = mix(mix(hash, kept.back().communicator), kept.back().weight);
    }
    const auto next = static_cast<std::uint32_t>(out.capacity.size());
    const std::uint32_t id = alike.find_or_add(hash, next, [&](std::uint32_t link) {
      const std::size_t begin = first_kept[link], count = first_kept[link + 1] - begin;
      return std::ranges::equal(std::span(kept).subspan(begin, count),
                                std::span(kept).subspan(first_use));
    });
    const BytesPerSecond capacity = speeds_[now.speed].capacity;
    if (id != next) {
      kept.resize(first_use);
      if (capacity < out.capacity[id]) out.origins[id] = now.first;
      out.capacity[id] = std::min(out.capacity[id], capacity);
      continue;
    }
    out.capacity.push_back(capacity);
    out.owner.push_back(now.owner);
    out.origins.push_back(now.first);
    first_kept.push_back(kept.size());
  }
  std::vector<std::uint32_t>& ends = out.end_of_communicator;
  ends.resize(groups_.size() + 1);
  for (const Use& use : kept) ++ends[use.communicator + 1];
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  out.loads.resize(kept.size());
  for (std::uint32_t l = 0; l + 1 < first_kept.size(); ++l)
    for (std::size_t k = first_kept[l]; k < first_kept[l + 1]; ++k)
      out.loads[ends[kept[k].communicator]++] = {l, kept[k].weight};
  ends.pop_back();
  return out;
}

std::vector<topology::LinkId> LinkPicture::put_on(engine::System& system,
                                                  const std::vector<double>& fastest) const {
  std::vector<double> weights;  // by number
  const Counting counting = counting_uses(fastest, weights);
  const std::shared_ptr<const Links> links =
      known_->get(counting, [&] { return links_of(counting); });
  const auto base = static_cast<std::uint32_t>(system.link_capacity.size());
  system.link_capacity.insert(system.link_capacity.end(), links->capacity.begin(),
                              links->capacity.end());
  system.link_owner.insert(system.link_owner.end(), links->owner.begin(), links->owner.end());
  std::uint32_t first = 0;
  for (std::size_t c = 0; c < links->end_of_communicator.size(); ++c) {
    const std::uint32_t end = links->end_of_communicator[c];
    if (first == end) continue;
    std::vector<engine::LinkLoad>& loads = system.communicators[c].loads;
    loads.reserve(loads.size() + end - first);
    for (; first < end; ++first)
      loads.push_back({base + links->loads[first].link, weights[links->loads[first].weight]});
  }
  return links->origins;
}

}  // namespace stepcast::sim
