#include "topology/mesh_routes.hpp"

#include <algorithm>

namespace stepcast::topology {
namespace {

/// One GPU's view of the mesh after a breadth-first search.
struct Reach {
  std::vector<std::int64_t> distance;  // hops; -1 where no NVLinks lead
  std::vector<double> width;           // bandwidth of the widest shortest route
};

std::vector<std::vector<LinkId>> links_out_of(const NodeLayout& layout, std::size_t gpus) {
  std::vector<std::vector<LinkId>> out(gpus);
  for (LinkId id = 0; id < layout.links.size(); ++id)
    if (layout.links[id].kind == LinkKind::nvlink) out[layout.links[id].from].push_back(id);
  return out;
}

Reach reach_from(DeviceId source, const NodeLayout& layout,
                 const std::vector<std::vector<LinkId>>& out) {
  Reach reach{std::vector<std::int64_t>(out.size(), -1), std::vector<double>(out.size(), 0.0)};
  reach.distance[source] = 0;
  reach.width[source] = 1e300;
  std::vector<DeviceId> queue{source};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const DeviceId here = queue[head];
    for (const LinkId id : out[here]) {
      const Link& link = layout.links[id];
      if (reach.distance[link.to] < 0) {
        reach.distance[link.to] = reach.distance[here] + 1;
        queue.push_back(link.to);
      }
      if (reach.distance[link.to] == reach.distance[here] + 1)
        reach.width[link.to] =
            std::max(reach.width[link.to], std::min(reach.width[here], link.bandwidth.value));
    }
  }
  return reach;
}

/// All routes to `to` of full width and shortest length, written back to front from `to`.
void collect(DeviceId to, const Reach& reach, const NodeLayout& layout, double width,
             const std::vector<std::vector<LinkId>>& out, std::vector<LinkId>& tail,
             std::vector<LinkId>& routes) {
  if (reach.distance[to] == 0) {
    routes.insert(routes.end(), tail.rbegin(), tail.rend());
    return;
  }
  for (const LinkId back : out[to]) {
    const Link& link = layout.links[reverse(back)];
    if (reach.distance[link.from] + 1 != reach.distance[to]) continue;
    if (std::min(reach.width[link.from], link.bandwidth.value) < width) continue;
    tail.push_back(reverse(back));
    collect(link.from, reach, layout, width, out, tail, routes);
    tail.pop_back();
  }
}

}  // namespace

MeshRoutes::MeshRoutes(const NodeLayout& layout, std::int64_t gpus)
    : gpus_(static_cast<std::size_t>(gpus)) {
  const auto out = links_out_of(layout, gpus_);
  std::vector<LinkId> tail;
  for (DeviceId from = 0; from < gpus_; ++from) {
    const Reach reach = reach_from(from, layout, out);
    for (DeviceId to = 0; to < gpus_; ++to) {
      first_.push_back(static_cast<std::uint32_t>(links_.size()));
      length_.push_back(static_cast<std::uint32_t>(std::max<std::int64_t>(0, reach.distance[to])));
      if (reach.distance[to] > 0) collect(to, reach, layout, reach.width[to], out, tail, links_);
    }
  }
  first_.push_back(static_cast<std::uint32_t>(links_.size()));
}

std::span<const LinkId> MeshRoutes::route(DeviceId from, DeviceId to, std::uint64_t key) const {
  const std::size_t pair = from * gpus_ + to;
  if (length_[pair] == 0) return {};
  const std::size_t routes = (first_[pair + 1] - first_[pair]) / length_[pair];
  return std::span(links_).subspan(first_[pair] + key % routes * length_[pair], length_[pair]);
}

}  // namespace stepcast::topology
