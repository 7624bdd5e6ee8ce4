// stepcast show: the catalogue with its sources, a cluster, what a calibration table holds.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/command/commands.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/table_view.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/member_writer.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/architecture_members.hpp"
#include "sim/tables/calibration_text.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/model_size_text.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

constexpr Option own_options[] = {
    {"gpu", "NAME", "", "cluster: GPU, in its DGX node"},
    {"node", "NAME", "cluster.node", "cluster: node of the catalogue, or a file"},
    {"nodes", "N", "cluster.nodes", "cluster: number of nodes"},
    {"gpus", "N", "cluster.gpus", "cluster: instead of nodes, all GPUs"},
    {"fabric", "NAME", "cluster.fabric", "cluster: fabric of the catalogue, or a file"},
    {"set", "KEY=VALUE", "", "cluster: set any key of [cluster]"},
    {"graphviz", "FILE", "", "cluster: also write it in Graphviz's language, as a sketch"},
    {"all", "", "", "every GPU in that picture"},
    {"sources", "", "", "of the catalogue: where the numbers come from"},
};
const std::vector<Option> show_options = with_table_options(own_options);
const Verb verb{
    "stepcast show",
    "gpus|architectures|models|nodes|fabrics|software|nccl|prices|grids|clusters|cluster|"
    "calibration|keys|metrics|schema [NAME | FILE ...]",
    16,
    "Prints the catalogue or one entry of it with every value and its source, a cluster "
    "(of a scenario or by options), what a calibration table holds, every key of a "
    "scenario, every metric with its unit, or the JSON schema of what a verb prints.",
    show_options,
    "stepcast show cluster --gpu h100 --nodes 16"};

using Align = TextTable::Align;

std::string sources_text(const Catalogue& catalogue, const std::string& folder) {
  std::string out;
  for (const std::string& name : catalogue.names(folder)) {
    out += "\n" + name + "\n";
    for (const SourceNote& note : catalogue.sources(folder, name))
      out += "  " + (note.key.empty() ? "" : note.key + ": ") + note.text + "\n";
  }
  return out;
}

/// A quantity in the unit of its column's key.
template <class Q>
TableCell in_units(Q value, double unit) {
  if (value == Q{}) return "-";
  return {to_text(value), static_cast<double>(value.value) / unit};
}

constexpr double giga = 1e9, tera = 1e12, gib = 1 << 30;

TextTable gpus_table(const Catalogue& catalogue) {
  struct Column {
    const char *heading, *unit, *key;
  };
  TextTable table;
  table.column("GPU", "", Align::left);
  for (const Column& column : {Column{"SMs", "", "sms"},
                               {"16-bit peak", "dense", "tensor_peak_tflops"},
                               {"fp8 peak", "dense", "fp8_peak_tflops"},
                               {"fp4 peak", "dense", "fp4_peak_tflops"},
                               {"memory", "", "memory_gib"},
                               {"HBM", "", "memory_bandwidth_gb_per_s"},
                               {"NVLink", "one way", "nvlink_gb_per_s"},
                               {"TDP", "", "tdp_w"}})
    table.column(column.heading, column.unit, Align::right, column.key);
  for (const std::string& name : catalogue.names("gpus")) {
    const topology::GpuSpec gpu = catalogue.gpu(toml_text(name, "catalogue"));
    table.row({name, std::to_string(gpu.sms), in_units(gpu.tensor_peak, tera),
               in_units(gpu.fp8_peak, tera), in_units(gpu.fp4_peak, tera),
               in_units(gpu.memory, gib), in_units(gpu.memory_bandwidth, giga),
               in_units(gpu.nvlink, giga), in_units(gpu.tdp, 1)});
  }
  return table;
}

workloads::TransformerShape model_named(const Catalogue& catalogue, const std::string& name) {
  TomlValue document = toml_table("catalogue");
  document.set("name", toml_text(name, "catalogue"));
  TableReader table(document, "model");
  return catalogue.model(table);
}

TextTable models_table(const Catalogue& catalogue) {
  TextTable table;
  table.column("model", "", Align::left);
  for (const char* heading :
       {"parameters", "of a token", "layers", "hidden", "heads", "kv heads", "ffn", "vocab"})
    table.column(heading);
  for (const std::string& name : catalogue.names("models")) {
    const workloads::TransformerShape shape = model_named(catalogue, name);
    const auto active = parameters_by_part(shape, workloads::Counted::active).total();
    table.row({name, counted(workloads::parameters(shape)), counted(active), counted(shape.layers),
               counted(shape.hidden), counted(shape.heads), counted(shape.kv_heads),
               counted(shape.experts.count > 0 ? shape.experts.ffn : shape.ffn_hidden),
               counted(shape.vocab)});
  }
  return table;
}

TextTable nodes_table(const Catalogue& catalogue) {
  TextTable nodes;
  nodes.column("node", "", Align::left);
  nodes.column("GPUs", "", Align::left);
  nodes.column("inside", "", Align::left);
  nodes.column("NICs", "one way", Align::left);
  for (const std::string& name : catalogue.names("nodes")) {
    const topology::NodeSpec node = catalogue.node(toml_text(name, "catalogue"));
    nodes.row({name, fmt::format("{} x {}", node.gpus, node.gpu.name),
               word_for(node_kind_names, node.kind),
               fmt::format("{} x {}", node.nics, to_text(node.nic))});
  }
  return nodes;
}

TableCell nanoseconds(Duration value) { return {to_text(value), seconds(value) * 1e9}; }

TextTable fabrics_table(const Catalogue& catalogue) {
  TextTable fabrics;
  fabrics.column("fabric", "", Align::left);
  fabrics.column("kind", "", Align::left);
  for (const char* heading : {"switch ports", "oversubscription"}) fabrics.column(heading);
  fabrics.column("per switch", "", Align::right, "switch_latency_ns");
  fabrics.column("per cable", "", Align::right, "cable_latency_ns");
  fabrics.column("routing", "", Align::left);
  for (const std::string& name : catalogue.names("fabrics")) {
    const topology::FabricSpec fabric = catalogue.fabric(toml_text(name, "catalogue"));
    fabrics.row({name, word_for(fabric_kind_names, fabric.kind), std::to_string(fabric.ports),
                 rounded(fabric.oversubscription), nanoseconds(fabric.switch_latency),
                 nanoseconds(fabric.cable_latency), word_for(routing_names, fabric.routing)});
  }
  return fabrics;
}

/// What some keys of every entry of a folder say, as they are written; "-" where one is silent.
TextTable listing(const Catalogue& catalogue, const std::string& folder,
                  const std::vector<std::string>& keys) {
  TextTable table;
  table.column("name", "", Align::left);
  for (const std::string& key : keys) table.column(key, "", Align::left);
  for (const std::string& name : catalogue.names(folder)) {
    std::vector<std::string> cells{name};
    for (const std::string& key : keys) {
      const TomlValue* value = catalogue.entry(folder, name, "catalogue").find(key);
      cells.push_back(value == nullptr ? "-" : write_toml_value(*value));
    }
    table.row(std::move(cells));
  }
  return table;
}

/// Every value of an entry, "latency.tree.base", as it is written.
void add_values(TextTable& table, const TomlValue& value, const std::string& path,
                const std::vector<SourceNote>& notes) {
  if (value.table() == nullptr) {
    const auto note = std::find_if(notes.begin(), notes.end(),
                                   [&](const SourceNote& n) { return n.key == path; });
    table.row({path, write_toml_value(value), note == notes.end() ? "" : note->text});
    return;
  }
  for (const TomlEntry& entry : *value.table())
    if (path.empty() ? entry.key != "source" && entry.key != "sources" : true)
      add_values(table, entry.value, path.empty() ? entry.key : path + "." + entry.key, notes);
}

/// The names of a value's keys.
struct KeyNames : MemberVisitor<KeyNames> {
  explicit KeyNames(std::vector<std::string>& out) : names(out) {}
  template <class... T>
  void member(const Key& key, const T&...) {
    names.emplace_back(key.name);
  }

  std::vector<std::string>& names;
};

/// The keys that `document` does not write, with what they are then; "-": nothing, or as many as it
/// takes.
template <class Visit>
void add_defaults(TextTable& table, const TomlValue& document, Visit visit) {
  std::vector<std::string> keys;
  visit(KeyNames(keys));
  const TomlValue values = written(toml_table("default"), visit);
  for (const std::string& key : keys) {
    if (document.find(key) != nullptr) continue;
    const TomlValue* value = values.find(key);
    table.row({key, value == nullptr ? "-" : write_toml_value(*value), "default"});
  }
}

void add_defaults(TextTable& table, const TomlValue& document, const Catalogue& catalogue,
                  const std::string& folder, const std::string& name) {
  const auto add = [&](auto visit_one, const auto& value) {
    add_defaults(table, document, [&](auto&& visitor) { visit_one(value, visitor); });
  };
  const TomlValue named = toml_text(name, "stepcast show");
  TableReader reader(document, "");
  if (folder == "gpus")
    add([](auto& v, auto& visit) { visit_gpu(v, visit); }, catalogue.gpu(named));
  else if (folder == "architectures")
    add([](auto& v, auto& visit) { visit_architecture(v, visit); },
        catalogue.architecture(name, "stepcast show"));
  else if (folder == "nodes")
    add([](auto& v, auto& visit) { visit_node(v, visit); }, catalogue.node(named));
  else if (folder == "fabrics")
    add([](auto& v, auto& visit) { visit_fabric(v, visit); }, catalogue.fabric(named));
  else if (folder == "models")
    add([](auto& v, auto& visit) { visit_model(v, visit); }, catalogue.model(reader));
  else if (folder == "software")
    add([](auto& v, auto& visit) { visit_software(v, visit); }, catalogue.software(reader));
}

/// The framework's entry before this one, by name; empty: it is the first.
std::string software_before(const Catalogue& catalogue, const std::string& name) {
  const auto framework_of = [&](const std::string& entry) {
    return *catalogue.entry("software", entry, "stepcast show").find("framework")->text();
  };
  std::string before;
  for (const std::string& other : catalogue.names("software")) {
    if (other == name) break;
    if (framework_of(other) == framework_of(name)) before = other;
  }
  return before;
}

/// What an entry of software does otherwise than the one before.
std::string changes_text(const Catalogue& catalogue, const std::string& name) {
  const std::string before = software_before(catalogue, name);
  if (before.empty()) return "";
  const auto values_of = [&](const std::string& entry) {
    TableReader reader(catalogue.entry("software", entry, "stepcast show"), "");
    const workloads::Software software = catalogue.software(reader);
    return written(toml_table("software"),
                   [&](auto&& visitor) { visit_software(software, visitor); });
  };
  const TomlValue then = values_of(before), now = values_of(name);
  TextTable table;
  for (const std::string& heading : {"since " + before, std::string("was"), std::string("is")})
    table.column(heading, "", Align::left);
  for (const TomlEntry& entry : *now.table()) {
    const TomlValue* old = then.find(entry.key);
    const std::string was = old == nullptr ? "-" : write_toml_value(*old);
    const std::string is = write_toml_value(entry.value);
    if (was != is) table.row({entry.key, was, is});
  }
  return table.num_rows() > 0 ? "\n" + table.text() : "\nas " + before + "\n";
}

/// One entry with every value and its source; what is not written has its default.
std::string entry_text(const Catalogue& catalogue, const std::string& folder,
                       const std::string& name, const TableView& view) {
  const TomlValue& document = catalogue.entry(folder, name, "stepcast show " + folder);
  std::vector<SourceNote> notes = catalogue.sources(folder, name);
  TextTable table;
  for (const char* heading : {"key", "value", "source"}) table.column(heading, "", Align::left);
  add_values(table, document, "", notes);
  add_defaults(table, document, catalogue, folder, name);
  table = view.arranged(std::move(table));
  view.write(table);
  std::string out = view.text(table);
  if (view.prints_csv()) return out;
  for (const SourceNote& note : notes)
    if (note.key.empty()) out += "source: " + note.text + "\n";
  if (folder == "software") out += changes_text(catalogue, name);
  if (folder == "models") out += "\n" + model_size_text(model_named(catalogue, name));
  return out;
}

/// [cluster] alone, from a scenario file, from options, or from both.
topology::Cluster cluster_of(const Catalogue& catalogue, const Arguments& arguments) {
  TomlValue source = toml_table("command line");
  if (arguments.positional().size() > 1) source = read_toml_file(arguments.positional()[1]);
  TomlValue document = toml_table(source.where);
  if (const TomlValue* cluster = source.find("cluster")) document.set("cluster", *cluster);
  if (arguments.has("gpu")) {
    const NodeOfGpu found = catalogue.node_of_gpu(arguments.get("gpu"), "--gpu");
    if (found.put_in) tell(stderr, fmt::format("stepcast: {}\n", found.note()));
    set_path(document, "cluster.node", found.value("--gpu"));
  }
  if (TomlValue* cluster = document.find("cluster"); cluster != nullptr && arguments.has("gpus"))
    cluster->erase("nodes");  // those of a file follow from the GPUs
  for (const auto& [key, value] : settings_of(verb, arguments)) set_path(document, key, value);
  // Any collective makes the cluster a whole scenario.
  set_path(document, "collective.kind", toml_text("all_reduce", "show"));
  set_path(document, "collective.bytes", toml_text("1 MiB", "show"));
  const Scenario scenario = read_scenario(document, catalogue);
  return topology::Cluster::build(scenario.node, scenario.nodes, scenario.fabric, scenario.origin);
}

std::string show_cluster(const Catalogue& catalogue, const Arguments& arguments) {
  if (arguments.has("all") && !arguments.has("graphviz"))
    throw UsageError("--all without --graphviz", "it is about the picture: --graphviz FILE --all");
  const topology::Cluster cluster = cluster_of(catalogue, arguments);
  if (arguments.has("graphviz"))
    write_whole(arguments.get("graphviz"), cluster.graphviz(arguments.has("all")));
  return topology::describe(cluster);
}

/// The tables as a scenario would merge them.
std::string show_calibration(const Arguments& arguments) {
  std::vector<std::string> tables(arguments.positional().begin() + 1, arguments.positional().end());
  if (tables.empty()) tables.emplace_back("published");
  return describe(read_calibrations(tables));
}

/// Of the verb that is named; without one the names.
std::string show_schema(const Arguments& arguments) {
  if (arguments.positional().size() > 1)
    return json_text(schema_named(arguments.positional()[1]), 2) + "\n";
  std::string out;
  for (const std::string& name : schema_names()) out += name + "\n";
  return out;
}

/// What --json, --out and `explain` call by these names.
TextTable metrics_table() {
  TextTable table;
  for (const char* heading : {"metric", "unit", "heading"}) table.column(heading, "", Align::left);
  for (const Metric& metric : metrics())
    table.row({std::string(metric.key), std::string(metric.unit), std::string(metric.heading)});
  return table;
}

/// What is one table; none: what is not.
std::optional<TextTable> table_of(const std::string& what, const Arguments& arguments,
                                  const Catalogue& catalogue) {
  if (what == "gpus") return gpus_table(catalogue);
  if (what == "models") return models_table(catalogue);
  if (what == "nodes") return nodes_table(catalogue);
  if (what == "fabrics") return fabrics_table(catalogue);
  if (what == "architectures")
    return listing(catalogue, what,
                   {"collectives", "nccl", "fp8", "product_reach", "attention_reach"});
  if (what == "software")
    return listing(catalogue, what, {"framework", "version", "nccl", "data_kinds"});
  if (what == "nccl") return listing(catalogue, what, {"version", "fp8_sums", "source"});
  if (what == "prices") return listing(catalogue, what, {"kind", "date", "source"});
  if (what == "grids") return listing(catalogue, what, {"date", "source"});
  if (what != "keys" && what != "metrics") return std::nullopt;
  if (arguments.positional().size() == 2)
    throw UsageError("'" + arguments.positional()[1] + "' is one argument too many");
  return what == "keys" ? keys_table() : metrics_table();
}

int show(const Arguments& arguments, const Catalogue& catalogue) {
  const std::vector<std::string> known = choices_in(verb.positional);
  if (arguments.positional().empty()) throw UsageError("show what?", suggestion("", known));
  const std::string& what = arguments.positional()[0];
  if (what != "calibration" && arguments.positional().size() > 2)
    throw UsageError("'" + arguments.positional()[2] + "' is one argument too many");
  // The folders of the catalogue that it is about; a name asks for one entry.
  const std::vector<std::string> folders =
      what == "clusters" ? std::vector<std::string>{"nodes", "fabrics"}
      : what == "cluster" || what == "calibration" || what == "keys" || what == "metrics" ||
              what == "schema"
          ? std::vector<std::string>{}
          : std::vector{what};
  const TableView view(arguments);
  if (view.prints_csv() && arguments.has("sources"))
    throw UsageError("both --sources and --csv -", "--csv FILE writes beside it");
  std::string text;
  if (!folders.empty() && arguments.positional().size() == 2) {
    const std::string& name = arguments.positional()[1];
    const bool fabric = what == "clusters" && !catalogue.has("nodes", name);
    text = entry_text(catalogue, folders[fabric ? 1 : 0], name, view);
  } else if (auto table = table_of(what, arguments, catalogue)) {
    const TextTable asked = view.arranged(*std::move(table));
    view.write(asked);
    text = view.text(asked);
  } else if (what == "clusters") {
    view.refuse_for("clusters are two", "stepcast show nodes, stepcast show fabrics");
    text = nodes_table(catalogue).text() + "\n" + fabrics_table(catalogue).text();
  } else if (what == "cluster") {
    view.refuse_for("a cluster is none");
    text = show_cluster(catalogue, arguments);
  } else if (what == "schema") {
    view.refuse_for("a schema is none");
    text = show_schema(arguments);
  } else if (what == "calibration") {
    view.refuse_for("a calibration is several", "stepcast-calibrate export writes its rows");
    text = show_calibration(arguments);
  } else {
    throw UsageError("cannot show '" + what + "'", suggestion(what, known));
  }
  if (arguments.has("sources") && arguments.positional().size() == 1)
    for (const std::string& folder : folders) text += sources_text(catalogue, folder);
  tell(stdout, text);
  return exit_ok;
}

}  // namespace

Command show_command() { return {verb, show}; }

}  // namespace stepcast::sim
