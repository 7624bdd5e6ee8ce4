#include "sim/scenario/catalogue_reference.hpp"

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/check.hpp"
#include "sim/files/suggest.hpp"

namespace stepcast::sim {
namespace {

using topology::FabricReference;
using topology::FabricSpec;
using topology::NodeReference;
using topology::NodeSpec;

NodeReference itself(const NodeSpec& node) {
  return {.name = node.name,
          .nvlink_latency = node.nvlink_latency,
          .nic_latency = node.nic_latency,
          .pcie_latency = node.pcie_latency,
          .socket_latency = node.socket_latency,
          .nvswitches = node.nvswitches,
          .nic = node.nic,
          .pcie = node.pcie,
          .socket = node.socket,
          .max_power = node.max_power};
}

FabricReference itself(const FabricSpec& fabric) {
  return {.name = fabric.name,
          .switch_latency = fabric.switch_latency,
          .cable_latency = fabric.cable_latency,
          .ports = fabric.ports};
}

/// The weightiest difference first; a whole number, 0 for the same.
int unlikeness(const NodeSpec& a, const NodeSpec& b) {
  return 16 * (a.kind != b.kind) + 8 * (a.gpu.architecture.name != b.gpu.architecture.name) +
         4 * (a.network != b.network) + 2 * (a.gpu.name != b.gpu.name) +
         1 * !b.name.starts_with("dgx-");
}
int unlikeness(const FabricSpec& a, const FabricSpec& b) { return a.kind != b.kind; }

NodeSpec read(const Catalogue& catalogue, const NodeSpec&, const std::string& name) {
  return catalogue.node(toml_text(name, "catalogue"));
}
FabricSpec read(const Catalogue& catalogue, const FabricSpec&, const std::string& name) {
  return catalogue.fabric(toml_text(name, "catalogue"));
}

template <class Spec>
auto reference_of(const Catalogue& catalogue, const char* folder, const Spec& spec,
                  const std::string& where) {
  namespace fs = std::filesystem;
  const fs::path own = fs::path(catalogue.directory()) / folder / (spec.name + ".toml");
  if (where.starts_with(own.string() + ":")) return itself(spec);
  if (catalogue.has(folder, spec.name)) return itself(read(catalogue, spec, spec.name));
  std::optional<Spec> best;
  for (const std::string& name : catalogue.names(folder))
    if (Spec other = read(catalogue, spec, name);
        !best || unlikeness(spec, other) < unlikeness(spec, *best))
      best = std::move(other);
  if (!best) return decltype(itself(spec)){};
  auto nearest = itself(*best);
  nearest.nearest = true;
  return nearest;
}

void take_over(TableReader& table, const char* key, Duration& latency, Duration reference) {
  if (table.value(key) == nullptr) latency = reference;
}

}  // namespace

void refer(const Catalogue& catalogue, NodeSpec& node, TableReader& table) {
  node.reference = reference_of(catalogue, "nodes", node, table.where());
  const NodeReference& r = node.reference;
  take_over(table, "nvlink_latency", node.nvlink_latency, r.nvlink_latency);
  take_over(table, "nic_latency", node.nic_latency, r.nic_latency);
  take_over(table, "pcie_latency", node.pcie_latency, r.pcie_latency);
  take_over(table, "socket_latency", node.socket_latency, r.socket_latency);
}

void refer(const Catalogue& catalogue, FabricSpec& fabric, TableReader& table) {
  fabric.reference = reference_of(catalogue, "fabrics", fabric, table.where());
  take_over(table, "switch_latency", fabric.switch_latency, fabric.reference.switch_latency);
  take_over(table, "cable_latency", fabric.cable_latency, fabric.reference.cable_latency);
}

void agree_on_nvlink(NodeSpec& node, TableReader& table, const TomlValue* gpu) {
  const auto links = static_cast<double>(node.gpu.nvlink_links);
  if (node.kind == topology::NodeKind::pcie || links == 0) return;
  const auto gpu_states = [&](const char* key) {
    return gpu != nullptr && gpu->table() != nullptr && gpu->find(key) != nullptr;
  };
  const bool link = table.value("nvlink_per_link") != nullptr;
  const bool port = gpu_states("nvlink");
  const BytesPerSecond together = node.nvlink_per_link * links;
  if (link && port && std::abs(node.gpu.nvlink / together - 1.0) > 0.005)
    table.fail("nvlink_per_link",
               fmt::format("'nvlink_per_link' is {}, {} of them {}, the GPU's nvlink {}",
                           to_text(node.nvlink_per_link), node.gpu.nvlink_links, to_text(together),
                           to_text(node.gpu.nvlink)),
               "state one of them: the other follows");
  if (port || (gpu != nullptr && !link && !gpu_states("nvlink_links")))
    node.nvlink_per_link = node.gpu.nvlink / links;
  else
    node.gpu.nvlink = together;
}

TomlValue NodeOfGpu::value(const std::string& where) const {
  if (!put_in) return toml_text(node, where);
  TomlValue table = toml_table(where);
  table.set("name", toml_text(node, where));
  table.set("gpu", toml_text(gpu, where));
  return table;
}

std::string NodeOfGpu::note() const {
  return put_in ? "no node of the catalogue holds " + gpu + ": it is put into " + node : "";
}

std::optional<std::string> Catalogue::own_node(const GpuIdentity& gpu) const {
  if (!gpu.node.empty()) return gpu.node;
  std::optional<std::string> found;
  for (const std::string& name : names("nodes")) {
    if (node(toml_text(name, "catalogue")).gpu.name != gpu.gpu.name) continue;
    if (!found || (name.starts_with("dgx-") && !found->starts_with("dgx-"))) found = name;
  }
  return found;
}

std::optional<std::string> Catalogue::node_like(const GpuIdentity& wanted) const {
  std::optional<std::string> found;
  int best = -1;
  for (const GpuIdentity& other : gpus().all()) {
    const auto node = own_node(other);
    if (!node || (other.gpu.nvlink.value > 0) != (wanted.gpu.nvlink.value > 0)) continue;
    const int fit = (other.gpu.architecture.name == wanted.gpu.architecture.name ? 2 : 0) +
                    (node->starts_with("dgx-") ? 1 : 0);
    if (fit > best) best = fit, found = node;
  }
  return found;
}

NodeOfGpu Catalogue::node_of_gpu(const std::string& gpu, const std::string& where) const {
  std::optional<GpuIdentity> of_file;
  if (is_file_name(gpu)) of_file = gpu_of_file(gpu, where);
  const GpuIdentity* wanted = of_file ? &*of_file : find_gpu(gpu);
  if (wanted == nullptr)
    throw InputError(where, "unknown GPU '" + gpu + "'", suggestion(gpu, gpus().known()));
  auto name = own_node(*wanted);
  if (!name) name = node_like(*wanted);
  if (!name)
    throw InputError(where, "no node of the catalogue could hold " + wanted->gpu.name,
                     "name one in its file: node = \"dgx-h100\"");
  if (of_file) return {*name, gpu, true};  // whatever the node holds of that name
  const auto held = node(toml_text(*name, wanted->gpu.name + ".toml")).gpu.name;
  return {*name, wanted->gpu.name, held != wanted->gpu.name};
}

}  // namespace stepcast::sim
