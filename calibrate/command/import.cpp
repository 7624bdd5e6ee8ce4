// stepcast-calibrate import, import-node, tuning, fit-network: from what other programs wrote.
#include "calibrate/import/import_files.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "calibrate/command/commands.hpp"
#include "calibrate/command/facts.hpp"
#include "calibrate/fit/network.hpp"
#include "calibrate/import/nccl_comparison.hpp"
#include "calibrate/import/node_topology.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/today.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::size_t any_number = 1 << 20;

constexpr sim::Option import_options[] = {
    {"out", "FILE.h5", "", "the table to write"},
    {"title", "TITLE", "", "the table's title (default: its file name)"},
    gpu_option,
    nccl_option,
    collective_option,
    fabric_option,
    node_bandwidth_option,
    ranks_option,
    nodes_option,
};
constexpr sim::Verb import_verb{
    "stepcast calibrate import",
    "FILE ...",
    any_number,
    "Makes a table of measurements: CSV, nccl-tests (text, or -J), NCCL's log "
    "(NCCL_DEBUG_SUBSYS=INIT,TUNING). Options say what a log does not.",
    import_options,
    "stepcast calibrate import all_reduce.log --out mine.h5"};

constexpr sim::Option import_node_options[] = {
    {"name", "NAME", "", "what the node is to be called"},
    {"out", "NODE.toml", "", "the file to write (default: standard output)"},
    gpu_option,
    node_bandwidth_option,
};
constexpr sim::Verb import_node_verb{
    "stepcast calibrate import-node",
    "FILE",
    1,
    "Makes a node, for stepcast run --node NODE.toml, from NCCL_TOPO_DUMP_FILE's XML or from "
    "nvidia-smi topo -m.",
    import_node_options,
    "stepcast calibrate import-node topo.xml --name mine --out mine.toml"};

constexpr sim::Option tuning_options[] = {
    {"node", "NODE", "", "the node to compare with (default: that of the GPU)"},
    gpu_option,
    nccl_option,
    collective_option,
    fabric_option,
    node_bandwidth_option,
    ranks_option,
    nodes_option,
};
constexpr sim::Verb tuning_verb{
    "stepcast calibrate tuning",
    "FILE ...",
    any_number,
    "Shows NCCL's own latencies, bandwidths and choices (its log, or a table) beside ours.",
    tuning_options,
    "stepcast calibrate tuning nccl.log --gpu h100"};

constexpr sim::Option fit_options[] = {
    {"from", "FILE.toml", "", "the constants to start from (default: the catalogue's)"},
    {"out", "FILE.toml", "", "write the fitted ones there"},
    {"cross-validate", "", "", "also fit without each source, and score it on that one"},
};
constexpr sim::Verb fit_verb{
    "stepcast calibrate fit-network",
    "FILE.csv|FILE.h5 ...",
    any_number,
    "Fits the constants of the network model on measured collectives and prints what it found.",
    fit_options,
    "stepcast calibrate fit-network published --out fitted.toml"};

int import(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string first = arguments.first("which file?"), out = arguments.get("out");
  const auto& files = arguments.positional();
  // A log is told of also without a table to write; a CSV has nothing to tell.
  if (out.empty() && std::ranges::any_of(files, [](const auto& f) { return f.ends_with(".csv"); }))
    throw sim::UsageError("import of a CSV needs --out FILE.h5", import_verb.example);
  Import import = import_files(files, facts_of(arguments, catalogue));
  const bool empty = import.table == sim::CalibrationTable{};
  sim::tell(stdout, import.report);
  if (out.empty()) {
    std::fputs("nothing written: --out FILE.h5 names the table\n", stdout);
    return sim::exit_ok;
  }
  if (empty)
    throw InputError(first, "holds no figure that a table could take",
                     "nccl-tests and NCCL_DEBUG_SUBSYS=INIT,TUNING print some");
  import.table.title = arguments.get("title", out);
  import.table.created = sim::today();
  sim::write_calibration(out, import.table);
  return sim::exit_ok;
}

int import_node(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  if (arguments.positional().empty() || !arguments.has("name"))
    throw sim::UsageError("import-node needs one FILE and --name NAME", import_node_verb.example);
  const std::string &path = arguments.positional()[0], out = arguments.get("out");
  Ignored ignored;
  NodeImport wanted{.name = arguments.get("name"),
                    .gpu = arguments.get("gpu"),
                    .date = sim::today(),
                    .node_bandwidth = facts_of(arguments, catalogue).node_bandwidth};
  const auto topology = read_topology(path, ignored);
  const std::string toml = node_toml(topology, wanted, catalogue, ignored);
  if (out.empty())
    sim::tell(stdout, toml);
  else
    write_bytes(out, toml);
  sim::tell(out.empty() ? stderr : stdout, ignored.text(path));
  return sim::exit_ok;
}

bool is_table(const std::string& path) { return path.ends_with(".h5") || path == "published"; }

sim::CalibrationTable table_in(const std::string& path, const ClusterFacts& facts) {
  return is_table(path) ? sim::read_calibrations(std::vector{path})
                        : import_files(std::vector{path}, facts).table;
}

int tuning(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string& first = arguments.first("tuning needs a log of NCCL or FILE.h5");
  sim::CalibrationTable table;
  for (const std::string& path : arguments.positional())
    table = sim::merge(std::move(table), table_in(path, facts_of(arguments, catalogue)));
  if (table.nccl_tuning.empty() && table.nccl_choices.empty())
    throw InputError(first, "holds neither NCCL's table nor its choices",
                     "log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING");
  const std::string& gpu =
      table.nccl_tuning.empty() ? table.nccl_choices[0].gpu : table.nccl_tuning[0].gpu;
  const sim::TomlValue node = arguments.has("node")
                                  ? sim::toml_text(arguments.get("node"), "--node")
                                  : catalogue.node_of_gpu(gpu, "--gpu").value("--gpu");
  for (const auto& comparison :
       compare_tuning(table, catalogue.node(node), catalogue.directory() + "/nccl"))
    sim::tell(stdout, to_text(comparison));
  return sim::exit_ok;
}

int fit(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  arguments.first("fit-network needs FILE.csv or FILE.h5");
  const auto start = arguments.has("from") ? sim::read_network_constants(arguments.get("from"))
                                           : catalogue.network_constants();
  std::string source = "stepcast-calibrate fit-network, " + sim::today() + ", on";
  NetworkEvidence evidence;
  for (const std::string& path : arguments.positional()) {
    if (path.ends_with(".csv"))
      if (const sim::CsvFile file = sim::read_csv(path); holds_crossovers(file)) {
        for (Crossover& one : read_crossovers(file, catalogue))
          evidence.crossovers.push_back(std::move(one));
        source += " " + std::filesystem::path(path).filename().string();
        continue;
      }
    const auto table = table_in(path, facts_of(arguments, catalogue));
    evidence.rows.insert(evidence.rows.end(), table.collectives.begin(), table.collectives.end());
    source += " " + std::filesystem::path(path).filename().string();
  }
  const NetworkFit fit = fit_network(evidence, catalogue, start);
  sim::tell(stdout, to_text(fit));
  if (arguments.has("cross-validate"))
    sim::tell(stdout, "\nmedian errors by source, in the fit and left out of it\n" +
                          to_text(cross_validate(evidence, catalogue, start)));
  if (arguments.has("out")) write_bytes(arguments.get("out"), to_toml(fit, source));
  return sim::exit_ok;
}

}  // namespace

sim::Command import_command() { return {import_verb, import}; }
sim::Command import_node_command() { return {import_node_verb, import_node}; }
sim::Command tuning_command() { return {tuning_verb, tuning}; }
sim::Command fit_network_command() { return {fit_verb, fit}; }

}  // namespace stepcast::calibrate
