#include "calibrate/import/collective_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/files/toml_value.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {
namespace {

using sim::CollectiveRow;
using topology::Network;
using topology::NodeSpec;
using workloads::CollectiveKind;

const std::map<std::string, Network> networks = {{"infiniband", Network::infiniband},
                                                 {"roce", Network::roce},
                                                 {"efa", Network::efa},
                                                 {"ethernet", Network::ethernet},
                                                 {"tcp", Network::ethernet},
                                                 {"slingshot", Network::slingshot},
                                                 {"omni-path", Network::omni_path}};

/// What the columns cannot say and the source's own words do.
std::optional<std::string> not_nccl(const CollectiveRow& row) {
  const auto says = [&](const char* words) {
    return row.source->source.find(words) != std::string::npos;
  };
  if (says("osu_bw") || says("osu_latency") || says("MPI/UCX")) return "times MPI, not NCCL";
  if (says("P2P dis")) return "NVLink was switched off";
  return std::nullopt;
}

BytesPerSecond node_bandwidth(const NodeSpec& node) {
  return node.nic * static_cast<double>(node.nics);
}

bool close(BytesPerSecond a, BytesPerSecond b) { return std::abs(a / b - 1.0) < 0.01; }

/// How well a node of the catalogue fits: its very network and bandwidth first, a DGX before a
/// cloud's node. Negative: another GPU.
int fitness(const NodeSpec& node, const CollectiveRow& row, std::optional<Network> network) {
  if (sim::kinship(row.gpu, node.gpu.name) != sim::Kinship::same) return -1;
  int fit = node.name.rfind("dgx", 0) == 0 ? 1 : 0;
  if (network && node.network == *network) fit += 4;
  if (network && row.node_bandwidth.value > 0 && close(node_bandwidth(node), row.node_bandwidth))
    fit += 2;
  return fit;
}

/// As many NICs of the node's own speed as the stated bandwidth holds, else one of just that.
void set_nics(NodeSpec& node, BytesPerSecond stated) {
  const double count = stated / node.nic;
  const bool whole = count >= 0.99 && std::abs(count - std::round(count)) < 0.01 * count;
  node.nics = whole ? static_cast<std::int64_t>(std::llround(count)) : 1;
  if (!whole) node.nic = stated;
}

}  // namespace

CollectiveCases::CollectiveCases(const sim::Catalogue& catalogue) {
  for (const std::string& name : catalogue.names("nodes"))
    nodes_.push_back(catalogue.node(sim::toml_text(name, "nodes")));
  for (const sim::GpuIdentity& one : catalogue.gpus().all())
    if (const auto found = catalogue.node_of_gpu(one.gpu.name, "gpus"); found.put_in)
      nodes_.push_back(catalogue.node(found.value("gpus")));
}

NodeSpec CollectiveCases::node_of(const CollectiveRow& row) const {
  std::optional<Network> network;
  if (row.nodes > 1 && row.fabric != "nvlink") {  // NVLink alone: trays of one rack
    const auto found = networks.find(row.fabric);
    if (found == networks.end()) throw Unpredictable{"nodes joined by " + row.fabric};
    network = found->second;
  }
  const NodeSpec* best = nullptr;
  for (const NodeSpec& node : nodes_)
    if (fitness(node, row, network) >= 0 &&
        (best == nullptr || fitness(node, row, network) > fitness(*best, row, network)))
      best = &node;
  if (best == nullptr) throw Unpredictable{"no node with " + row.gpu + " in the catalogue"};
  NodeSpec node = *best;
  if (network) node.network = *network;
  return node;
}

CollectiveKind kind_of(const CollectiveRow& row) {
  const auto kind = sim::collective_kind(row);
  if (!kind) throw Unpredictable{"collective " + row.collective};
  return *kind;
}

/// NVLink domains that the row's nodes make: of racks a source counts the trays.
std::int64_t domains_of(const CollectiveRow& row, const NodeSpec& node) {
  const bool trays = node.gpus_per_tray > 0 && row.ranks / row.nodes <= node.gpus_per_tray;
  if (!trays || row.nodes == 1) return row.nodes;
  if (row.ranks <= node.gpus) return 1;
  if (row.ranks % node.gpus != 0)
    throw Unpredictable{fmt::format("{} ranks in racks of {}", row.ranks, node.gpus)};
  return row.ranks / node.gpus;
}

CollectiveCase CollectiveCases::case_of(const CollectiveRow& row) const {
  if (row.bytes <= Bytes(0)) throw Unpredictable{"a peak without a size (max)"};
  if (row.nodes < 1 || row.ranks < 1) throw Unpredictable{"number of nodes not stated (multi)"};
  if (row.fabric.empty()) throw Unpredictable{"fabric not stated"};
  if (const auto other = not_nccl(row)) throw Unpredictable{*other};
  CollectiveCase out;
  out.kind = kind_of(row);
  out.bytes = row.bytes;
  out.nccl = row.nccl;
  out.node = node_of(row);
  for (const auto& word : sim::protocol_words)
    if (row.protocol.substr(0, row.protocol.find(' ')) == word.name) out.protocol = word.value;
  if (out.protocol == sim::Protocol::simple) out.node.low_latency_protocols = false;
  const std::int64_t nodes = domains_of(row, out.node);
  if (row.ranks < 2 || row.ranks % nodes != 0 || row.ranks / nodes > out.node.gpus)
    throw Unpredictable{fmt::format("{} ranks on {} nodes", row.ranks, row.nodes)};
  // The column holds the GPUs of a node, or only those that take part.
  const std::int64_t gpus = row.gpus_per_node;
  if (gpus > 0 && gpus != out.node.gpus && gpus != row.ranks / row.nodes)
    throw Unpredictable{
        fmt::format("a node of {} GPUs, the catalogue's has {}", gpus, out.node.gpus)};
  out.shape = {row.ranks, nodes, row.ranks / nodes, 1};
  if (nodes == 1) {
    const bool pcie = row.fabric == "pcie" && out.node.kind == topology::NodeKind::pcie;
    if (row.fabric != "nvlink" && !pcie) throw Unpredictable{"one node on " + row.fabric};
  } else if (row.fabric == "nvlink") {
    throw Unpredictable{"nodes joined by nvlink"};
  } else if (row.node_bandwidth.value > 0) {
    set_nics(out.node,
             row.node_bandwidth * static_cast<double>(row.nodes) / static_cast<double>(nodes));
  } else {
    out.assumed = true;
  }
  return out;
}

double error_of(Duration predicted, const CollectiveRow& row, CollectiveKind kind) {
  const double factor = sim::bus_factor(kind, row.ranks);
  const double measured = (row.bytes / row.duration).value * factor;
  const double said = (row.bytes / predicted).value * factor;
  if (std::abs(measured - said) <= sim::reading_error(row).value) return 0.0;
  return seconds(predicted) / seconds(row.duration) - 1.0;
}

}  // namespace stepcast::calibrate
