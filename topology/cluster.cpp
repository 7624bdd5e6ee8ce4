#include "topology/cluster.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/check.hpp"
#include "topology/cluster_parts.hpp"

namespace stepcast::topology {
namespace {

constexpr std::int64_t max_nodes = std::int64_t{1} << 20;
constexpr std::size_t max_links = std::size_t{1} << 31;

/// By kind.
constexpr std::array<KindWords, 9> kind_words{{{"gpu", "GPU"},
                                               {"nvswitch", "NVSwitch"},
                                               {"pcie", "PCIe switch"},
                                               {"cpu", "CPU"},
                                               {"nic", "NIC"},
                                               {"leaf", "leaf"},
                                               {"spine", "spine"},
                                               {"core", "core"},
                                               {"supercore", "supercore"}}};

}  // namespace

const KindWords& words_of(DeviceKind kind) { return kind_words.at(static_cast<std::size_t>(kind)); }

Cluster Cluster::build(const NodeSpec& node, std::int64_t nodes, const FabricSpec& fabric,
                       const std::string& origin) {
  if (nodes < 1 || nodes > max_nodes)
    throw InputError(origin, fmt::format("{} nodes", nodes),
                     fmt::format("give 1 to {} nodes", max_nodes));
  auto parts = std::make_unique<ClusterParts>();
  parts->node = node;
  parts->fabric = fabric;
  parts->nodes = nodes;
  parts->node_layout = lay_out_node(node, origin);
  parts->fabric_layout = lay_out_fabric(fabric, node, nodes, origin);
  if (parts->node_layout.links.size() > max_links / static_cast<std::size_t>(nodes))
    throw InputError(origin,
                     fmt::format("{} nodes of {} links each are too many", nodes,
                                 parts->node_layout.links.size()),
                     "use fewer nodes");
  number_fabric(*parts);
  return Cluster(std::move(parts));
}

Cluster Cluster::with_slow_cables(std::int64_t node, double slowdown) const {
  expects(node >= 0 && node < num_nodes() && slowdown >= 1.0, "a node and how much slower it is");
  auto parts = std::make_unique<ClusterParts>(*parts_);
  parts->slow_cables.emplace_back(node, slowdown);
  return Cluster(std::move(parts));
}

Cluster::Cluster(std::unique_ptr<const ClusterParts> parts) : parts_(std::move(parts)) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

const NodeSpec& Cluster::node() const { return parts_->node; }
const FabricSpec& Cluster::fabric() const { return parts_->fabric; }
std::int64_t Cluster::num_nodes() const { return parts_->nodes; }
std::int64_t Cluster::num_gpus() const { return parts_->nodes * parts_->node.gpus; }
std::span<const Device> Cluster::devices() const { return parts_->devices(); }
std::span<const Link> Cluster::links() const { return parts_->links(); }

std::string Cluster::name_of(DeviceId id) const {
  expects(id < parts_->num_devices(), "device of this cluster");
  const Device device = parts_->device(id);
  const std::string name = std::string(words_of(device.kind).name) + std::to_string(device.index);
  return device.node < 0 ? name : fmt::format("node{}/{}", device.node, name);
}

DeviceId Cluster::gpu(std::int64_t gpu_index) const {
  expects(gpu_index >= 0 && gpu_index < num_gpus(), "GPU of this cluster");
  return static_cast<DeviceId>(gpu_index / parts_->node.gpus) * parts_->node_devices() +
         static_cast<DeviceId>(gpu_index % parts_->node.gpus);
}

DeviceId Cluster::nic(std::int64_t node, std::int64_t nic_index) const {
  expects(node >= 0 && node < parts_->nodes && nic_index >= 0 && nic_index < parts_->node.nics,
          "NIC of this cluster");
  return static_cast<DeviceId>(node) * parts_->node_devices() + parts_->node_layout.first_nic +
         static_cast<DeviceId>(nic_index);
}

std::int64_t Cluster::nic_of_gpu(std::int64_t gpu_in_node) const {
  expects(gpu_in_node >= 0 && gpu_in_node < parts_->node.gpus, "GPU of a node");
  expects(parts_->node.nics > 0, "a node with NICs");
  return place_of(gpu_in_node, parts_->node.gpus, parts_->node.nics);
}

std::vector<LinkId> Cluster::nvlink_out(std::int64_t gpu_index) const {
  const auto local = static_cast<DeviceId>(gpu_index % parts_->node.gpus);
  const LinkId offset = gpu(gpu_index) / parts_->node_devices() * parts_->node_links();
  std::vector<LinkId> out;
  for (LinkId id = 0; id < parts_->node_links(); ++id) {
    const Link& link = parts_->node_layout.links[id];
    if (link.kind == LinkKind::nvlink && link.from == local) out.push_back(offset + id);
  }
  return out;
}

std::vector<LinkId> Cluster::nvlink_in(std::int64_t gpu_index) const {
  std::vector<LinkId> in = nvlink_out(gpu_index);
  for (LinkId& link : in) link = reverse(link);
  return in;
}

LinkId Cluster::nic_up(std::int64_t node, std::int64_t nic_index) const {
  expects(num_tiers() > 0, "a cluster with a fabric");
  expects(node >= 0 && node < parts_->nodes && nic_index >= 0 && nic_index < parts_->node.nics,
          "NIC of this cluster");
  return parts_->fabric_layout.injection_link(node, nic_index);
}

LinkId Cluster::nic_down(std::int64_t node, std::int64_t nic_index) const {
  return reverse(nic_up(node, nic_index));
}

std::optional<std::int64_t> Cluster::private_gpu(LinkId id) const {
  expects(id < parts_->num_links(), "link of this cluster");
  const Link link = parts_->link(id);
  const Device ends[] = {parts_->device(link.from), parts_->device(link.to)};
  const std::int64_t gpus = parts_->node.gpus, nics = parts_->node.nics;
  if (ends[0].kind == DeviceKind::gpu && ends[1].kind == DeviceKind::gpu) return std::nullopt;
  for (const Device& end : ends) {
    if (end.kind == DeviceKind::gpu) return end.node * gpus + end.index;
    if (end.kind != DeviceKind::nic) continue;
    // With fewer NICs than GPUs a NIC is private when the even spread gives it just one GPU.
    const auto gpu =
        nics >= gpus ? place_of(end.index, nics, gpus) : (end.index * gpus + nics - 1) / nics;
    const bool shared = gpu + 1 < gpus && place_of(gpu + 1, gpus, nics) == end.index;
    if (!shared) return end.node * gpus + gpu;
  }
  return std::nullopt;
}

std::int64_t Cluster::num_tiers() const { return parts_->fabric_layout.num_tiers(); }

std::int64_t Cluster::nodes_per_unit() const {
  const FabricLayout& fabric = parts_->fabric_layout;
  return num_tiers() == 0 ? 1 : std::max<std::int64_t>(1, fabric.unit_nodes / fabric.trays);
}

bool Cluster::joined(std::int64_t nic_a, std::int64_t nic_b) const {
  return parts_->fabric_layout.joined(nic_a, nic_b);
}

std::int64_t Cluster::switches_between(std::int64_t node_a, std::int64_t nic_a, std::int64_t node_b,
                                       std::int64_t nic_b) const {
  if (nic(node_a, nic_a) == nic(node_b, nic_b)) return 0;
  expects(num_tiers() > 0, "a cluster with a fabric");
  const FabricLayout& fabric = parts_->fabric_layout;
  if (!fabric.joined(nic_a, nic_b))
    return node_a == node_b
               ? 0
               : switches_between(node_a, fabric.on_rail_of(nic_a, nic_b), node_b, nic_b);
  std::int64_t a = fabric.leaf_of(node_a, nic_a), b = fabric.leaf_of(node_b, nic_b), tier = 1;
  for (; a != b; ++tier) {
    a = fabric.parent_block(tier, a);
    b = fabric.parent_block(tier, b);
  }
  return 2 * tier - 1;
}

std::int64_t Cluster::count(DeviceKind kind) const {
  const std::vector<Device>& of_node = parts_->node_layout.devices;
  std::int64_t count =
      parts_->nodes * std::count_if(of_node.begin(), of_node.end(),
                                    [kind](const Device& device) { return device.kind == kind; });
  for (std::int64_t t = 1; t <= num_tiers(); ++t) {
    const FabricTier& tier = parts_->fabric_layout.tiers[static_cast<std::size_t>(t - 1)];
    if (switch_kind(t) == kind) count += tier.blocks * tier.top;
  }
  return count;
}

}  // namespace stepcast::topology
