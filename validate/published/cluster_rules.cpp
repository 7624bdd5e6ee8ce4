#include "validate/published/cluster_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "validate/published/framework_rules.hpp"

namespace stepcast::validate {
namespace {

using sim::TableReader;
using sim::TomlValue;

Condition read_when(TableReader& reader) {
  const TomlValue* when = reader.table("when");
  return when == nullptr ? Condition() : Condition(*when);
}

GpuRule read_gpu_rule(const TomlValue& table, const sim::Catalogue& catalogue) {
  TableReader reader(table, "gpu");
  GpuRule rule;
  rule.name = reader.required("name", reader.text("name"));
  rule.when = read_when(reader);
  rule.gpu = reader.text("gpu").value_or("");
  rule.refused = reader.text("refused").value_or("");
  rule.assumption = reader.text("assumption").value_or("");
  rule.aside = reader.flag("aside").value_or(false);
  if (rule.gpu.empty() == rule.refused.empty())
    reader.fail("gpu", "a rule gives either 'gpu' or 'refused'");
  if (!rule.gpu.empty() && !catalogue.has("gpus", rule.gpu))
    reader.fail("gpu", "unknown gpu '" + rule.gpu + "'",
                sim::suggestion(rule.gpu, catalogue.names("gpus")));
  rule.date = date_of(reader.required("date", reader.text("date")), reader.where("date"));
  reader.finish();
  return rule;
}

NodeRule read_node_rule(const TomlValue& table, const sim::Catalogue& catalogue) {
  TableReader reader(table, "node");
  NodeRule rule;
  rule.name = reader.required("name", reader.text("name"));
  rule.when = read_when(reader);
  rule.catalogue_node = reader.required("node", reader.text("node"));
  rule.node = catalogue.node(sim::toml_text(rule.catalogue_node, reader.where("node")));
  if (const TomlValue* change = reader.table("change")) rule.change = *change;
  rule.fabric = *reader.required("fabric", reader.value("fabric"));
  rule.assumption = reader.text("assumption").value_or("");
  reader.text("source");
  reader.finish();
  return rule;
}

NicRule read_nic_rule(const TomlValue& table) {
  TableReader reader(table, "nics");
  NicRule rule{read_when(reader), reader.required("nics", reader.integer("nics"))};
  reader.text("reason");
  reader.finish();
  return rule;
}

NetworkRule read_network_rule(const TomlValue& table) {
  TableReader reader(table, "network");
  NetworkRule rule;
  rule.when = read_when(reader);
  rule.network = reader.required("network", reader.text("network"));
  if (const TomlValue* fabric = reader.value("fabric")) rule.fabric = *fabric;
  reader.text("reason");
  reader.finish();
  return rule;
}

template <class Rule>
void demand_rest(const std::vector<Rule>& rules, TableReader& document, const char* list) {
  if (!rules.back().when.always())
    document.fail(list, "no rule is left for other rows",
                  "end the list with a rule without 'when'");
}

TomlValue integer(std::int64_t value) { return {.data = value, .where = "defaults"}; }

/// The first `gpus` rows and columns of a link table.
TomlValue corner(const std::vector<std::vector<std::int64_t>>& links, std::int64_t gpus) {
  const auto n = static_cast<std::size_t>(gpus);
  TomlValue::Array rows;
  for (std::size_t i = 0; i < n; ++i) {
    TomlValue::Array row;
    for (std::size_t j = 0; j < n; ++j) row.push_back(integer(links[i][j]));
    rows.push_back({.data = std::move(row), .where = "defaults"});
  }
  return {.data = std::move(rows), .where = "defaults"};
}

void add_sentence(std::string& text, const std::string& sentence) {
  if (!sentence.empty()) text += (text.empty() ? "" : "; ") + sentence;
}

/// A node with another number of GPUs than the catalogue's: a part of it, its NICs in proportion.
void resize(ClusterDefaults& out, const topology::NodeSpec& node, std::int64_t gpus) {
  const bool mesh = node.kind == topology::NodeKind::hybrid_cube_mesh;
  if (gpus < 1 || (mesh && gpus > node.gpus)) {
    out.refused = fmt::format("no node of {} such GPUs is known", gpus);
    return;
  }
  out.node.set("gpus", integer(gpus));
  const auto share = [&](std::int64_t all) {
    return std::max<std::int64_t>(1, all * gpus / node.gpus);
  };
  out.node.set("nics", integer(share(node.nics)));
  out.node.set("pcie_switches", integer(share(node.pcie_switches)));
  if (mesh) out.node.set("nvlinks", corner(node.nvlinks, gpus));
  add_sentence(out.assumption,
               fmt::format("{} GPUs per node: taken as a part of {}", gpus, node.name));
}

double gbps_of(const topology::NodeSpec& node) {
  return static_cast<double>(node.nics) * node.nic.value * 8e-9;
}

/// A node of `per_node` GPUs with `stated` Gbit/s, unless the catalogue's has just that.
void cut_into_ports(ClusterDefaults& out, const topology::NodeSpec& node, double stated,
                    std::int64_t per_node, std::int64_t ports) {
  if (per_node == node.gpus && std::abs(stated / gbps_of(node) - 1.0) <= 0.01) return;
  const std::string rate = fmt::format("{:g} Gbit/s", stated / static_cast<double>(ports));
  out.node.set("nics", integer(ports));
  out.node.set("nic", sim::toml_text(rate, "defaults"));
  add_sentence(out.assumption, fmt::format("{:g} Gbit/s taken as {} NICs", stated, ports));
}

}  // namespace

const GpuRule& ClusterFile::gpu_of(const PublishedRow& row) const {
  const RowFacts facts{row, {}, {}};
  return *std::find_if(gpus.begin(), gpus.end(),
                       [&](const GpuRule& rule) { return rule.when.holds(facts); });
}

ClusterDefaults ClusterFile::of(const PublishedRow& row, YearMonth date) const {
  ClusterDefaults out;
  const GpuRule& gpu = gpu_of(row);
  out.gpu = gpu.gpu;
  out.refused = gpu.refused;
  out.rule = "gpu " + gpu.name;
  if (!out.refused.empty()) return out;
  const RowFacts facts{row, date, gpu.gpu};
  const auto first = [&](const auto& rules) {
    return std::find_if(rules.begin(), rules.end(),
                        [&](const auto& rule) { return rule.when.holds(facts); });
  };
  const auto rule = first(nodes);
  out.rule += ", node " + rule->name;
  const topology::NodeSpec& node = rule->node;
  out.node = rule->change;
  out.node.set("name", sim::toml_text(rule->catalogue_node, "defaults"));
  if (node.gpu.name != gpu.gpu) out.node.set("gpu", sim::toml_text(gpu.gpu, "defaults"));
  out.fabric = rule->fabric;
  add_sentence(out.assumption, gpu.assumption);

  // Of a rack a row's node is a tray.
  const bool rack = node.gpus_per_tray > 0 && row.gpus_per_node == node.gpus_per_tray;
  const std::int64_t per_node = rack ? node.gpus : row.gpus_per_node.value_or(node.gpus);
  const bool alone = row.gpus.value_or(1) <= per_node;
  if (per_node != node.gpus && out.node.find("gpus") == nullptr) resize(out, node, per_node);
  if (alone) return out;
  if (const auto network = first(networks); network != networks.end()) {
    out.node.set("network", sim::toml_text(network->network, "defaults"));
    if (network->fabric.text() != nullptr ? !network->fabric.text()->empty()
                                          : network->fabric.table() != nullptr)
      out.fabric = network->fabric;
  }
  if (row.inter_node_gbps_per_node.value_or(0) > 0)
    cut_into_ports(out, node, *row.inter_node_gbps_per_node, per_node, first(nics)->nics);
  else
    add_sentence(out.assumption, rule->assumption);
  return out;
}

ClusterFile read_cluster_file(const std::string& path, const sim::Catalogue& catalogue) {
  const TomlValue root = sim::read_toml_file(path);
  TableReader document(root, "");
  ClusterFile file;
  for (const TomlValue* table : tables_of(document, "gpu"))
    file.gpus.push_back(read_gpu_rule(*table, catalogue));
  for (const TomlValue* table : tables_of(document, "node"))
    file.nodes.push_back(read_node_rule(*table, catalogue));
  for (const TomlValue* table : tables_of(document, "nics"))
    file.nics.push_back(read_nic_rule(*table));
  for (const TomlValue* table : tables_of(document, "network"))
    file.networks.push_back(read_network_rule(*table));
  document.finish();
  demand_rest(file.gpus, document, "gpu");
  demand_rest(file.nodes, document, "node");
  demand_rest(file.nics, document, "nics");
  return file;
}

}  // namespace stepcast::validate
