// The text of `stepcast show cluster`. A large cluster is read off its layouts and its fabric
// links, so that the picture of 131,072 GPUs costs little more than their bisection.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "topology/cluster_parts.hpp"

namespace stepcast::topology {
namespace {

std::string_view noun(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::socket:
      return "socket";
    case LinkKind::injection:
      return "injection";
    case LinkKind::fabric:
      return "fabric";
  }
  throw BrokenPromise("unknown link kind");
}

/// Connections that look the same, each of two directed links.
struct Row {
  DeviceKind from{}, to{};
  Link link;
  Duration back{};
  std::int64_t connections = 0;
};

void count_link(std::vector<Row>& rows, const ClusterParts& parts, LinkId id, std::int64_t times) {
  const Link link = parts.link(id), back = parts.link(reverse(id));
  const DeviceKind from = parts.device(link.from).kind, to = parts.device(link.to).kind;
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.from == from && row.to == to && row.link.count == link.count &&
           row.link.bandwidth == link.bandwidth && row.link.latency == link.latency &&
           row.back == back.latency;
  });
  if (same != rows.end())
    same->connections += times;
  else
    rows.push_back({from, to, link, back.latency, times});
}

std::vector<Row> rows_of(const ClusterParts& parts) {
  std::vector<Row> rows;
  for (LinkId id = 0; id < parts.node_links(); id += 2) count_link(rows, parts, id, parts.nodes);
  const auto& tiers = parts.fabric_layout.tiers;
  for (std::size_t t = 0; t < tiers.size(); ++t)  // the links up to one tier are all alike
    count_link(rows, parts, tiers[t].first_link,
               t == 0 ? parts.nodes * parts.node.nics
                      : tiers[t - 1].blocks * tiers[t - 1].top * tiers[t].links_up());
  return rows;
}

std::string routing_text(const FabricSpec& fabric) {
  switch (fabric.routing) {
    case Routing::destination:
      return "by destination (static, destination-modulo)";
    case Routing::ecmp:
      return fmt::format("ECMP, flows hashed onto cables with seed {}", fabric.ecmp_seed);
    case Routing::spray:
      return "spray, packets evenly over all equal cables";
  }
  throw BrokenPromise("unknown routing");
}

/// Nothing for a job that has the fabric to itself, in its order.
std::string place_text(const ClusterParts& parts) {
  const JobPlace& job = parts.fabric.job;
  std::string text;
  if (job.placement == Placement::random)
    text += fmt::format("placement: random, seed {}\n", job.seed);
  if (job.fabric_nodes > parts.nodes)
    text += fmt::format("the fabric joins {} nodes, {} of them this job's\n", job.fabric_nodes,
                        parts.nodes);
  if (job.other_jobs > 0)
    text += fmt::format("other jobs take {:.3g} % of every link between switches\n",
                        100 * job.other_jobs);
  return text;
}

std::string head(const ClusterParts& parts) {
  const NodeSpec& node = parts.node;
  std::string text =
      fmt::format("{} x {}, each {} x {}: {} GPUs\n", parts.nodes, node.name, node.gpus,
                  node.gpu.name.empty() ? "GPU" : node.gpu.name, parts.nodes * node.gpus);
  if (node.trays() > 1)
    text += fmt::format("each an NVLink domain over {} trays of {} GPUs and {} NICs\n",
                        node.trays(), node.gpus_per_tray, node.nics / node.trays());
  const FabricLayout& fabric = parts.fabric_layout;
  if (fabric.tiers.empty()) return text + "one node, no fabric\n";
  text += fmt::format("fabric {}: {} tier{} of {}-port switches, oversubscription {:.3g}, {}\n",
                      parts.fabric.name, fabric.num_tiers(), fabric.num_tiers() == 1 ? "" : "s",
                      parts.fabric.ports, parts.fabric.oversubscription,
                      fabric.rails ? fmt::format("{} rails", fabric.nics) : "no rails");
  if (fabric.planes > 1) text += "rail-only: no switch joins two rails, NVLink does\n";
  text += place_text(parts);
  text += fmt::format("routing: {}\n", routing_text(parts.fabric));
  return text + fmt::format("scalable units: {} of up to {} {} (one leaf{})\n", fabric.units,
                            fabric.unit_nodes, fabric.trays > 1 ? "trays" : "nodes",
                            fabric.rails ? " for each rail" : "");
}

std::string tier_table(const ClusterParts& parts) {
  const auto& tiers = parts.fabric_layout.tiers;
  if (tiers.empty()) return {};
  std::string text =
      fmt::format("\n{:<12}{:>10}{:>14}{:>12}\n", "tier", "switches", "cables down", "cables up");
  std::int64_t down = parts.nodes * parts.node.nics;
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const std::int64_t switches = tiers[t].blocks * tiers[t].top;
    const std::int64_t up =
        t + 1 == tiers.size() ? 0 : switches * tiers[t + 1].choices * tiers[t + 1].cables;
    text += fmt::format("{:<12}{:>10}{:>14}{:>12}\n",
                        words_of(switch_kind(static_cast<std::int64_t>(t) + 1)).noun, switches,
                        down, up);
    down = up;
  }
  return text;
}

std::string link_table(const ClusterParts& parts) {
  std::string text = fmt::format("\n{:<11}{:<24}{:>11}{:>9}{:>16}{:>20}\n", "link", "between",
                                 "number", "cables", "per direction", "latency");
  for (const Row& row : rows_of(parts)) {
    const std::string latency =
        row.link.latency == row.back
            ? to_text(row.back)
            : fmt::format("{} / {}", to_text(row.link.latency), to_text(row.back));
    text += fmt::format("{:<11}{:<24}{:>11}{:>9}{:>16}{:>20}\n", noun(row.link.kind),
                        fmt::format("{} - {}", words_of(row.from).noun, words_of(row.to).noun),
                        row.connections, row.link.count, to_text(row.link.bandwidth), latency);
  }
  return text;
}

}  // namespace

std::string describe(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  std::string text = head(parts) + tier_table(parts) + link_table(parts) + "\n";
  const BytesPerSecond bisection = cluster.bisection();
  if (parts.nodes == 1)
    return text + fmt::format("bisection of the GPUs   {} per direction\n", to_text(bisection));
  const BytesPerSecond injection =
      parts.link(cluster.nic_up(0, 0)).bandwidth * static_cast<double>(parts.node.nics);
  text += fmt::format("injection of a node     {} per direction, {} per GPU\n", to_text(injection),
                      to_text(injection / static_cast<double>(parts.node.gpus)));
  const BytesPerSecond full = injection * static_cast<double>(parts.nodes / 2);
  return text + fmt::format("bisection of the nodes  {} per direction, {:.3g} % of non-blocking\n",
                            to_text(bisection), 100.0 * (bisection / full));
}

}  // namespace stepcast::topology
