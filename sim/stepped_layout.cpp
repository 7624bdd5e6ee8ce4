#include "sim/stepped_layout.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {

using topology::DeviceId;
using topology::LinkId;
using topology::NodeKind;

SteppedLayout::SteppedLayout(const topology::Cluster& cluster, const topology::Router& router,
                             std::vector<std::int64_t> ranks)
    : cluster_(cluster),
      router_(router),
      gpus_per_node_(cluster.node().gpus),
      ranks_(std::move(ranks)) {
  std::sort(ranks_.begin(), ranks_.end());
  for (const std::int64_t rank : ranks_) {
    expects(rank >= 0 && rank < cluster_.num_gpus(), "GPUs of this cluster");
    const std::int64_t node = rank / gpus_per_node_;
    if (nodes_.empty() || nodes_.back().node != node) nodes_.push_back({node, {}, {}});
    nodes_.back().members.push_back(rank);
  }
  if (nodes_.size() < 2) return;
  num_rails_ = ranks_.size();
  for (OnNode& on : nodes_) {
    find_speakers(on);
    num_rails_ = std::min(num_rails_, on.speakers.size());
  }
}

/// Members that reach another NIC than those before them.
void SteppedLayout::find_speakers(OnNode& on) const {
  std::vector<std::int64_t> nics;
  for (const std::int64_t member : on.members) {
    const std::int64_t nic = cluster_.nic_of_gpu(in_node(member));
    if (std::find(nics.begin(), nics.end(), nic) != nics.end()) continue;
    nics.push_back(nic);
    on.speakers.push_back(member);
  }
}

std::size_t SteppedLayout::node_of(std::int64_t gpu) const {
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), gpu / gpus_per_node_,
                                   [](const OnNode& on, std::int64_t n) { return on.node < n; });
  return static_cast<std::size_t>(at - nodes_.begin());
}

bool SteppedLayout::same_node(std::int64_t a, std::int64_t b) const {
  return a / gpus_per_node_ == b / gpus_per_node_;
}

std::size_t SteppedLayout::rail_of(std::int64_t gpu) const {
  const OnNode& on = nodes_[node_of(gpu)];
  const std::int64_t nic = cluster_.nic_of_gpu(in_node(gpu));
  for (std::size_t rail = 0; rail < on.speakers.size(); ++rail)
    if (cluster_.nic_of_gpu(in_node(on.speakers[rail])) == nic) return rail % num_rails_;
  return 0;
}

std::vector<std::int64_t> SteppedLayout::members(std::size_t node, std::size_t rail) const {
  std::vector<std::int64_t> out = nodes_[node].members;
  const auto& speakers = nodes_[node].speakers;
  const std::int64_t first = rail < speakers.size() ? speakers[rail] : out[rail % out.size()];
  std::rotate(out.begin(), std::find(out.begin(), out.end(), first), out.end());
  return out;
}

std::vector<std::int64_t> SteppedLayout::ring(std::size_t rail) const {
  std::vector<std::int64_t> out;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const auto here = members(node, rail);
    out.insert(out.end(), here.begin(), here.end());
  }
  return out;
}

void SteppedLayout::add_path(DeviceId from, DeviceId to, std::uint64_t key, Loads& loads) const {
  std::vector<topology::LinkShare> shares;
  router_.append_shares(from, to, key, shares);
  for (const topology::LinkShare& share : shares) loads.push_back({share.link, share.share});
}

BytesPerSecond SteppedLayout::port() const {
  BytesPerSecond out{};
  for (const LinkId link : cluster_.nvlink_out(0)) out += cluster_.links()[link].bandwidth;
  return out;
}

/// NCCL spreads a message over all NVLinks of a GPU to its switches.
void SteppedLayout::add_port(const std::vector<LinkId>& links, Loads& loads) const {
  double total = 0.0;
  for (const LinkId link : links) total += cluster_.links()[link].bandwidth.value;
  for (const LinkId link : links)
    loads.push_back({link, cluster_.links()[link].bandwidth.value / total});
}

void SteppedLayout::add_inside(std::int64_t a, std::int64_t b, std::size_t rail,
                               Loads& loads) const {
  if (cluster_.node().kind != NodeKind::nvswitch)
    return add_path(cluster_.gpu(a), cluster_.gpu(b), rail, loads);
  add_port(cluster_.nvlink_out(a), loads);
  add_port(cluster_.nvlink_in(b), loads);
}

SteppedLayout::Loads SteppedLayout::between(std::int64_t a, std::int64_t b,
                                            std::size_t rail) const {
  Loads loads;
  if (same_node(a, b)) {
    add_inside(a, b, rail, loads);
    return loads;
  }
  const std::int64_t from = nodes_[node_of(a)].speakers[rail];
  const std::int64_t to = nodes_[node_of(b)].speakers[rail];
  if (cluster_.node().kind == NodeKind::nvswitch) {
    if (a != from) add_inside(a, from, rail, loads);
    add_path(cluster_.gpu(from), cluster_.gpu(to), rail, loads);
    if (to != b) add_inside(to, b, rail, loads);
    return loads;
  }
  const auto nic = [&](std::int64_t gpu) {
    return cluster_.nic(gpu / gpus_per_node_, cluster_.nic_of_gpu(in_node(gpu)));
  };
  add_path(cluster_.gpu(a), nic(from), rail, loads);
  add_path(nic(from), nic(to), rail, loads);
  add_path(nic(to), cluster_.gpu(b), rail, loads);
  return loads;
}

SteppedLayout::Loads SteppedLayout::direct(std::int64_t a, std::int64_t b) const {
  Loads loads;
  if (same_node(a, b))
    add_inside(a, b, 0, loads);
  else
    add_path(cluster_.gpu(a), cluster_.gpu(b), 0, loads);
  return loads;
}

SteppedLayout::Loads SteppedLayout::into_switch(std::size_t node, std::int64_t head) const {
  Loads loads;
  for (const std::int64_t member : nodes_[node].members)
    add_port(cluster_.nvlink_out(member), loads);
  add_port(cluster_.nvlink_in(head), loads);
  return loads;
}

SteppedLayout::Loads SteppedLayout::out_of_switch(std::size_t node, std::int64_t head) const {
  Loads loads;
  add_port(cluster_.nvlink_out(head), loads);
  for (const std::int64_t member : nodes_[node].members)
    add_port(cluster_.nvlink_in(member), loads);
  return loads;
}

}  // namespace stepcast::sim
