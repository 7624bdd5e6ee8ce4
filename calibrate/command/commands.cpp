#include "calibrate/command/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "calibrate/fit/network.hpp"
#include "calibrate/import/import_files.hpp"
#include "calibrate/import/nccl_comparison.hpp"
#include "calibrate/import/node_topology.hpp"
#include "calibrate/report/diff.hpp"
#include "calibrate/report/gpu_report.hpp"
#include "calibrate/rows/cluster_facts.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "calibrate/session/run_command.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/import/calibration_csv.hpp"
#include "sim/program/today.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/tables/calibration_text.hpp"

namespace stepcast::calibrate {
namespace {

void need(bool condition, const char* what) {
  if (!condition) throw UsageError(what);
}

/// The options that say what logs do not.
ClusterFacts facts_of(const Arguments& arguments, const sim::Catalogue& catalogue) {
  ClusterFacts facts;
  facts.gpus = catalogue.gpus();
  if (!arguments.fabric.empty()) check_fabric(facts.fabric = arguments.fabric);
  if (!arguments.node_bandwidth.empty())
    facts.node_bandwidth =
        stepcast::parse<BytesPerSecond>(arguments.node_bandwidth, "--node-bandwidth");
  if (!arguments.gpu.empty()) {
    const auto gpu = gpu_named(arguments.gpu, facts.gpus);
    if (!gpu)
      throw InputError("--gpu", "unknown GPU '" + arguments.gpu + "'",
                       sim::suggestion(arguments.gpu, facts.gpus.known()));
    facts.gpu = *gpu;
  }
  if (!arguments.collective.empty()) {
    const auto collective = collective_named(arguments.collective);
    if (!collective)
      throw InputError("--collective", "unknown collective '" + arguments.collective + "'",
                       "e.g. all_reduce");
    facts.collective = *collective;
  }
  facts.nccl = arguments.nccl;
  if (arguments.ranks > 0) facts.ranks = arguments.ranks;
  if (arguments.nodes > 0) facts.nodes = arguments.nodes;
  return facts;
}

void import_command(const Arguments& arguments, const sim::Catalogue& catalogue) {
  // A log is told of also without a table to write; a CSV has nothing to tell.
  const bool tells = std::none_of(arguments.files.begin(), arguments.files.end(),
                                  [](const std::string& path) { return path.ends_with(".csv"); });
  need(!arguments.files.empty() && (tells || !arguments.out.empty()),
       "import needs FILE ... --out FILE.h5");
  Import import = import_files(arguments.files, facts_of(arguments, catalogue));
  const bool empty = import.table == sim::CalibrationTable{};
  std::fputs(import.report.c_str(), stdout);
  if (arguments.out.empty()) {
    std::fputs("nothing written: --out FILE.h5 names the table\n", stdout);
    return;
  }
  if (empty)
    throw InputError(arguments.files[0], "holds no figure that a table could take",
                     "nccl-tests and NCCL_DEBUG_SUBSYS=INIT,TUNING print some");
  import.table.title = arguments.title.empty() ? arguments.out : arguments.title;
  import.table.created = sim::today();
  sim::write_calibration(arguments.out, import.table);
}

bool is_table(const std::string& path) { return path.ends_with(".h5") || path == "published"; }

/// Everything that the files measured, CSV and tables alike.
std::vector<sim::CollectiveRow> collectives_of(const std::vector<std::string>& files,
                                               const sim::Catalogue& catalogue) {
  ClusterFacts facts;
  facts.gpus = catalogue.gpus();
  std::vector<sim::CollectiveRow> rows;
  for (const std::string& path : files) {
    const auto table = is_table(path) ? sim::read_calibrations(std::vector{path})
                                      : import_files(std::vector{path}, facts).table;
    rows.insert(rows.end(), table.collectives.begin(), table.collectives.end());
  }
  return rows;
}

void fit_command(const Arguments& arguments, const sim::Catalogue& catalogue) {
  need(!arguments.files.empty(), "fit-network needs FILE.csv or FILE.h5");
  const auto start = arguments.from.empty() ? catalogue.network_constants()
                                            : sim::read_network_constants(arguments.from);
  const std::vector<sim::CollectiveRow> rows = collectives_of(arguments.files, catalogue);
  const NetworkFit fit = fit_network(rows, catalogue, start);
  std::fputs(to_text(fit).c_str(), stdout);
  if (arguments.cross_validate)
    std::fputs(("\nmedian errors by source, in the fit and left out of it\n" +
                to_text(cross_validate(rows, catalogue, start)))
                   .c_str(),
               stdout);
  if (arguments.out.empty()) return;
  std::string source = "stepcast-calibrate fit-network, " + sim::today() + ", on";
  for (const std::string& path : arguments.files)
    source += " " + std::filesystem::path(path).filename().string();
  write_bytes(arguments.out, to_toml(fit, source));
}

void import_node_command(const Arguments& arguments, const sim::Catalogue& catalogue) {
  need(arguments.files.size() == 1 && !arguments.name.empty(),
       "import-node needs one FILE and --name NAME");
  const std::string& path = arguments.files[0];
  Ignored ignored;
  NodeImport wanted{
      .name = arguments.name, .gpu = arguments.gpu, .date = sim::today(), .node_bandwidth = {}};
  wanted.node_bandwidth = facts_of(arguments, catalogue).node_bandwidth;
  const auto topology = read_topology(path, ignored);
  const std::string toml = node_toml(topology, wanted, catalogue, ignored);
  if (arguments.out.empty())
    std::fputs(toml.c_str(), stdout);
  else
    write_bytes(arguments.out, toml);
  std::fputs(ignored.text(path).c_str(), arguments.out.empty() ? stderr : stdout);
}

void tuning_command(const Arguments& arguments, const sim::Catalogue& catalogue) {
  need(!arguments.files.empty(), "tuning needs a log of NCCL or FILE.h5");
  sim::CalibrationTable table;
  for (const std::string& path : arguments.files)
    table = sim::merge(std::move(table),
                       is_table(path)
                           ? sim::read_calibrations(std::vector{path})
                           : import_files(std::vector{path}, facts_of(arguments, catalogue)).table);
  if (table.nccl_tuning.empty() && table.nccl_choices.empty())
    throw InputError(arguments.files[0], "holds neither NCCL's table nor its choices",
                     "log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING");
  const std::string& gpu =
      table.nccl_tuning.empty() ? table.nccl_choices[0].gpu : table.nccl_tuning[0].gpu;
  const sim::TomlValue node = arguments.node.empty()
                                  ? catalogue.node_of_gpu(gpu, "--gpu").value("--gpu")
                                  : sim::toml_text(arguments.node, "--node");
  for (const auto& comparison :
       compare_tuning(table, catalogue.node(node), catalogue.directory() + "/nccl"))
    std::fputs(to_text(comparison).c_str(), stdout);
}

int measure_device(const Arguments& arguments, const sim::Catalogue& catalogue) {
  need(arguments.files.empty(), "run needs --for before the names of scenarios");
  RunRequest request;
  request.device = arguments.device;
  request.options.ranks = arguments.ranks;
  request.options.gpu = arguments.gpu_index;
  request.options.nodes = std::max<std::int64_t>(1, arguments.nodes);
  request.options.rendezvous = arguments.rendezvous;
  request.scenarios = arguments.scenarios;
  request.quick = arguments.quick;
  request.resume = arguments.resume;
  request.out = arguments.out.empty() ? "calibration.h5" : arguments.out;
  request.seed = static_cast<std::uint64_t>(arguments.seed);
  request.date = sim::today();
  request.command = "stepcast-calibrate" + arguments.command_line;
  request.facts = facts_of(arguments, catalogue);
  return run_calibration(request, catalogue);
}

}  // namespace

int run_command(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string& command = arguments.command;
  const auto& files = arguments.files;
  if (command == "run") return measure_device(arguments, catalogue);
  if (command == "import") {
    import_command(arguments, catalogue);
  } else if (command == "fit-network") {
    fit_command(arguments, catalogue);
  } else if (command == "import-node") {
    import_node_command(arguments, catalogue);
  } else if (command == "tuning") {
    tuning_command(arguments, catalogue);
  } else if (command == "show") {
    need(files.size() == 1, "show needs one FILE.h5");
    std::fputs(sim::describe(sim::read_calibration(files[0])).c_str(), stdout);
  } else if (command == "report") {
    need(files.size() == 1, "report needs one FILE.h5");
    sim::Session session(catalogue);
    std::fputs(gpu_report(sim::read_calibration(files[0]), *session.tables({"published"}), session)
                   .c_str(),
               stdout);
  } else if (command == "diff") {
    need(files.size() == 2, "diff needs A.h5 B.h5");
    std::fputs(to_text(diff(sim::read_calibrations(std::vector{files[0]}),
                            sim::read_calibrations(std::vector{files[1]})))
                   .c_str(),
               stdout);
  } else if (command == "export") {
    need(files.empty() && !arguments.csv.empty(), "export needs --csv FILE.h5");
    std::fputs(sim::export_csv(sim::read_calibration(arguments.csv)).c_str(), stdout);
  } else if (command == "merge") {
    need(files.size() >= 2 && !arguments.out.empty(), "merge needs A.h5 B.h5 ... --out C.h5");
    sim::CalibrationTable table = sim::read_calibrations(files);
    if (!arguments.title.empty()) table.title = arguments.title;
    sim::write_calibration(arguments.out, table);
  } else {
    throw UsageError("unknown command " + command + suggested_command(command));
  }
  return 0;
}

}  // namespace stepcast::calibrate
