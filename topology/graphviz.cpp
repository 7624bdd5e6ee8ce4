// The cluster in Graphviz's language, its nodes and tiers of switches as clusters. A picture stays
// readable up to some forty boxes: beyond, other nodes and whole tiers are one box each with their
// count, and a large node's devices one box for each kind.
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "topology/cluster_parts.hpp"

namespace stepcast::topology {
namespace {

constexpr std::size_t most_boxes = 40;

/// Text between quotes: names come from files of others.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) out += c;
  }
  return out;
}

/// How much is one box: nothing, all nodes but the first and every tier, or also every kind of
/// device of the first node.
enum class Detail : std::uint8_t { every_device, one_node, kinds };

struct Box {
  std::string cluster;  // that it is drawn in; empty: none
  std::string name;     // of one device, or of the kind of several
  const char* shape = "box";
  std::int64_t devices = 0;
};

const char* shape_of(DeviceKind kind) {
  if (kind == DeviceKind::gpu) return "box";
  if (kind == DeviceKind::nic || kind == DeviceKind::cpu) return "component";
  return "ellipse";
}

class Picture {
 public:
  Picture(const Cluster& cluster, Detail detail) : cluster_(cluster), detail_(detail) {
    for (DeviceId id = 0; id < cluster.devices().size(); ++id) put(id);
    for (LinkId id = 0; id < cluster.links().size(); id += 2) join(cluster.links()[id]);
  }

  std::size_t size() const { return boxes_.size(); }

  std::string text() const {
    const ClusterParts& parts = cluster_.parts();
    std::string out = fmt::format("graph cluster {{\nlabel=\"{} x {}\";\nlayout=dot;\n",
                                  parts.nodes, escaped(parts.node.name));
    std::map<std::string, std::string> inside;  // by cluster
    for (std::size_t b = 0; b < boxes_.size(); ++b)
      inside[boxes_[b].cluster] += fmt::format("{} [label=\"{}\", shape={}];\n", b,
                                               escaped(label_of(boxes_[b])), boxes_[b].shape);
    std::size_t number = 0;
    for (const auto& [name, lines] : inside)
      out += name.empty() ? lines
                          : fmt::format("subgraph cluster_{} {{\nlabel=\"{}\";\n{}}}\n", number++,
                                        name, lines);
    for (const auto& [edge, bundles] : edges_) out += line_of(edge, bundles);
    return out + "}\n";
  }

 private:
  using Edge = std::tuple<std::size_t, std::size_t, double, std::int64_t>;  // bandwidth, cables

  void put(DeviceId id) {
    const Device& device = cluster_.devices()[id];
    const std::string kind(words_of(device.kind).name);
    const bool in_fabric = device.node < 0;
    const bool other_node = device.node > 0 && detail_ != Detail::every_device;
    const bool one =
        !in_fabric && !other_node ? detail_ != Detail::kinds : detail_ == Detail::every_device;
    Box box{
        .cluster = in_fabric ? "tier of " + kind + " switches" : fmt::format("node{}", device.node),
        .name = one ? cluster_.name_of(id) : kind,
        .shape = shape_of(device.kind)};
    if (other_node) box = {.cluster = "", .name = cluster_.node().name, .shape = "box3d"};
    const std::string key = box.cluster + "/" + box.name;
    const auto [at, is_new] = box_named_.try_emplace(key, boxes_.size());
    if (is_new) boxes_.push_back(std::move(box));
    // Of another node its first GPU stands for it.
    if (!other_node || (device.kind == DeviceKind::gpu && device.index == 0))
      ++boxes_[at->second].devices;
    box_of_.push_back(at->second);
  }

  void join(const Link& link) {
    const std::size_t from = box_of_[link.from], to = box_of_[link.to];
    if (from != to) ++edges_[{from, to, link.bandwidth.value, link.count}];
  }

  static std::string label_of(const Box& box) {
    return box.devices > 1 ? fmt::format("{} x {}", box.devices, box.name) : box.name;
  }

  /// A connection is drawn once, without arrows; the label says what one direction carries.
  static std::string line_of(const Edge& edge, std::int64_t bundles) {
    const auto& [from, to, bandwidth, count] = edge;
    const std::int64_t cables = bundles * count;
    const std::string each = to_text(BytesPerSecond(bandwidth / static_cast<double>(count)));
    return fmt::format("{} -- {} [label=\"{}\"];\n", from, to,
                       cables == 1 ? each : fmt::format("{} x {}", cables, each));
  }

  const Cluster& cluster_;
  Detail detail_;
  std::vector<Box> boxes_;
  std::vector<std::size_t> box_of_;  // by device
  std::map<std::string, std::size_t> box_named_;
  std::map<Edge, std::int64_t> edges_;  // how many bundles look the same
};

}  // namespace

std::string Cluster::graphviz(bool every_device) const {
  for (const Detail detail : {Detail::every_device, Detail::one_node}) {
    const bool small = detail == Detail::one_node || devices().size() <= most_boxes;
    if (!every_device && !small) continue;
    const Picture picture(*this, detail);
    if (every_device || picture.size() <= most_boxes) return picture.text();
  }
  return Picture(*this, Detail::kinds).text();
}

}  // namespace stepcast::topology
