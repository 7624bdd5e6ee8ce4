// stepcast-calibrate: measures a device; makes, shows, compares, exports and merges tables.
// Exit codes: 0 ok, 1 internal, 2 usage, 3 bad input, 5 a kernel computed something wrong (all
// others are in the table), 130 interrupted.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cluster_facts.hpp"
#include "calibrate/diff.hpp"
#include "calibrate/export.hpp"
#include "calibrate/fit_network.hpp"
#include "calibrate/gpu_report.hpp"
#include "calibrate/import_files.hpp"
#include "calibrate/nccl_comparison.hpp"
#include "calibrate/node_topology.hpp"
#include "calibrate/run_command.hpp"
#include "calibrate/show.hpp"
#include "calibrate/text_lines.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/calibration_table.hpp"
#include "sim/catalogue.hpp"
#include "sim/suggest.hpp"

namespace {

namespace po = boost::program_options;
namespace calibrate = stepcast::calibrate;
namespace sim = stepcast::sim;

constexpr const char* usage =
    "stepcast-calibrate: calibration tables (HDF5) from measurements\n\n"
    "  stepcast-calibrate run [--device host|cuda] [--for SCENARIO.toml ...] [--quick]\n"
    "      [--out FILE.h5] [--resume] [--seed N] [--ranks N] [--fabric NAME]\n"
    "      [--node-bandwidth RATE] [--rendezvous HOST:PORT|FILE --nodes N]\n"
    "      measures what the scenarios need, or a grid for Llama-like models; an interrupt keeps\n"
    "      what was measured, --resume goes on, a further run replaces what it measures anew\n"
    "  stepcast-calibrate import FILE ... --out FILE.h5 [--title TITLE]\n"
    "      FILE: CSV, nccl-tests (text, or -J), NCCL's log (NCCL_DEBUG_SUBSYS=INIT,TUNING)\n"
    "      what a log does not say: --gpu NAME, --nccl 2.20.5, --collective all_reduce,\n"
    "      --fabric infiniband|roce|efa|ethernet|nvlink|pcie, --node-bandwidth \"3200 Gbit/s\",\n"
    "      --ranks N, --nodes N\n"
    "  stepcast-calibrate import-node FILE --name NAME [--out NODE.toml] [--gpu NAME]\n"
    "      [--node-bandwidth \"3200 Gbit/s\"]   a node from NCCL_TOPO_DUMP_FILE's XML or from\n"
    "      nvidia-smi topo -m, for stepcast run --node NODE.toml\n"
    "  stepcast-calibrate tuning FILE ... [--node NODE] [--gpu NAME] [--ranks N --nodes N]\n"
    "      NCCL's own latencies, bandwidths and choices (its log, or a table) beside ours\n"
    "  stepcast-calibrate show FILE.h5\n"
    "  stepcast-calibrate report FILE.h5    a measured GPU beside what is published of it\n"
    "  stepcast-calibrate diff A.h5 B.h5              rows of one alone; times of B over A\n"
    "  stepcast-calibrate export --csv FILE.h5        writes CSV to standard output\n"
    "  stepcast-calibrate merge A.h5 B.h5 ... --out C.h5 [--title TITLE]\n"
    "                                                 later files win over equal keys\n"
    "  stepcast-calibrate fit-network FILE.csv|FILE.h5 ... [--from FILE.toml] [--out FILE.toml]\n"
    "      [--cross-validate]\n"
    "      fits the constants of the network model on measured collectives; prints what it found\n";

/// The command line itself is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::string command;
  std::vector<std::string> files;
  std::string out, title, csv, from;
  std::string name, node, gpu, fabric, node_bandwidth, nccl, collective;
  std::int64_t ranks = 0, nodes = 0;
  std::string device, rendezvous, command_line;
  std::vector<std::string> scenarios;
  std::int64_t seed = 1, gpu_index = 0;
  bool help = false, cross_validate = false, quick = false, resume = false;
};

const std::vector<std::string> commands = {"run",    "diff",       "import", "import-node",
                                           "tuning", "show",       "report", "export",
                                           "merge",  "fit-network"};
const std::vector<std::string> options = {"--device",
                                          "--for",
                                          "--quick",
                                          "--resume",
                                          "--seed",
                                          "--rendezvous",
                                          "--gpu-index",
                                          "--cross-validate",
                                          "--name",
                                          "--from",
                                          "--out",
                                          "--title",
                                          "--csv",
                                          "--help",
                                          "--gpu",
                                          "--fabric",
                                          "--node-bandwidth",
                                          "--nccl",
                                          "--collective",
                                          "--ranks",
                                          "--nodes"};

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
  const auto near = sim::closest(word, words);
  return near ? ", did you mean " + *near + "?" : "";
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  po::options_description named;
  named.add_options()("node", po::value(&arguments.node))(
      "cross-validate", po::bool_switch(&arguments.cross_validate))(
      "name", po::value(&arguments.name))("from", po::value(&arguments.from))(
      "out", po::value(&arguments.out))("title", po::value(&arguments.title))(
      "csv", po::value(&arguments.csv))("gpu", po::value(&arguments.gpu))(
      "fabric", po::value(&arguments.fabric))(
      "node-bandwidth", po::value(&arguments.node_bandwidth))("nccl", po::value(&arguments.nccl))(
      "collective", po::value(&arguments.collective))("ranks", po::value(&arguments.ranks))(
      "nodes", po::value(&arguments.nodes))("help,h", po::bool_switch(&arguments.help))(
      "device", po::value(&arguments.device))(
      "for", po::value(&arguments.scenarios)->multitoken()->composing())(
      "quick", po::bool_switch(&arguments.quick))("resume", po::bool_switch(&arguments.resume))(
      "seed", po::value(&arguments.seed))("rendezvous", po::value(&arguments.rendezvous))(
      "gpu-index", po::value(&arguments.gpu_index))("command", po::value(&arguments.command))(
      "file", po::value(&arguments.files));
  po::positional_options_description positional;
  positional.add("command", 1).add("file", -1);
  try {
    po::variables_map values;
    po::store(
        po::command_line_parser(argc, argv)
            .options(named)
            .positional(positional)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        values);
    po::notify(values);
    for (const auto& [option, count] :
         {std::pair("ranks", arguments.ranks), std::pair("nodes", arguments.nodes)})
      if (values.count(option) > 0 && count < 1)
        throw UsageError(std::string("--") + option + " is a positive number");
    for (int i = 1; i < argc; ++i) arguments.command_line.append(" ").append(argv[i]);
  } catch (const po::unknown_option& error) {
    const std::string option = error.get_option_name();
    throw UsageError("unknown option " + option + did_you_mean(option, options));
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  return arguments;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[sizeof "2026-11-21"];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

void need(bool condition, const char* what) {
  if (!condition) throw UsageError(what);
}

/// The options that say what logs do not.
calibrate::ClusterFacts facts_of(const Arguments& arguments) {
  using stepcast::InputError;
  calibrate::ClusterFacts facts;
  if (!arguments.fabric.empty()) calibrate::check_fabric(facts.fabric = arguments.fabric);
  if (!arguments.node_bandwidth.empty())
    facts.node_bandwidth =
        stepcast::parse<stepcast::BytesPerSecond>(arguments.node_bandwidth, "--node-bandwidth");
  if (!arguments.gpu.empty()) {
    const auto gpu = calibrate::gpu_named(arguments.gpu);
    if (!gpu)
      throw InputError("--gpu", "unknown GPU '" + arguments.gpu + "'", "e.g. h100-sxm5-80gb");
    facts.gpu = *gpu;
  }
  if (!arguments.collective.empty()) {
    const auto collective = calibrate::collective_named(arguments.collective);
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

void import(const Arguments& arguments) {
  need(!arguments.files.empty() && !arguments.out.empty(), "import needs FILE ... --out FILE.h5");
  calibrate::Import import = calibrate::import_files(arguments.files, facts_of(arguments));
  import.table.title = arguments.title.empty() ? arguments.out : arguments.title;
  import.table.created = today();
  sim::write_calibration(arguments.out, import.table);
  std::fputs(import.report.c_str(), stdout);
}

bool is_table(const std::string& path) { return path.ends_with(".h5") || path == "published"; }

/// Everything that the files measured, CSV and tables alike.
std::vector<sim::CollectiveRow> collectives_of(const std::vector<std::string>& files) {
  std::vector<sim::CollectiveRow> rows;
  for (const std::string& path : files) {
    const auto table = is_table(path) ? sim::read_calibrations(std::vector{path})
                                      : calibrate::import_files(std::vector{path}).table;
    rows.insert(rows.end(), table.collectives.begin(), table.collectives.end());
  }
  return rows;
}

void fit_network(const Arguments& arguments) {
  need(!arguments.files.empty(), "fit-network needs FILE.csv or FILE.h5");
  const sim::Catalogue catalogue = sim::Catalogue::standard();
  const auto start = arguments.from.empty() ? sim::network_constants()
                                            : sim::read_network_constants(arguments.from);
  const std::vector<sim::CollectiveRow> rows = collectives_of(arguments.files);
  const calibrate::NetworkFit fit = calibrate::fit_network(rows, catalogue, start);
  std::fputs(calibrate::to_text(fit).c_str(), stdout);
  if (arguments.cross_validate)
    std::fputs(("\nmedian errors by source, in the fit and left out of it\n" +
                calibrate::to_text(calibrate::cross_validate(rows, catalogue, start)))
                   .c_str(),
               stdout);
  if (arguments.out.empty()) return;
  std::string source = "stepcast-calibrate fit-network, " + today() + ", on";
  for (const std::string& path : arguments.files)
    source += " " + std::filesystem::path(path).filename().string();
  calibrate::write_bytes(arguments.out, calibrate::to_toml(fit, source));
}

void import_node(const Arguments& arguments) {
  need(arguments.files.size() == 1 && !arguments.name.empty(),
       "import-node needs one FILE and --name NAME");
  const std::string& path = arguments.files[0];
  calibrate::Ignored ignored;
  calibrate::NodeImport wanted{
      .name = arguments.name, .gpu = arguments.gpu, .date = today(), .node_bandwidth = {}};
  wanted.node_bandwidth = facts_of(arguments).node_bandwidth;
  const auto topology = calibrate::read_topology(path, ignored);
  const std::string toml =
      calibrate::node_toml(topology, wanted, sim::Catalogue::standard(), ignored);
  if (arguments.out.empty())
    std::fputs(toml.c_str(), stdout);
  else
    calibrate::write_bytes(arguments.out, toml);
  std::fputs(ignored.text(path).c_str(), arguments.out.empty() ? stderr : stdout);
}

void compare_tuning(const Arguments& arguments) {
  need(!arguments.files.empty(), "tuning needs a log of NCCL or FILE.h5");
  sim::CalibrationTable table;
  for (const std::string& path : arguments.files)
    table = sim::merge(std::move(table),
                       is_table(path)
                           ? sim::read_calibrations(std::vector{path})
                           : calibrate::import_files(std::vector{path}, facts_of(arguments)).table);
  if (table.nccl_tuning.empty() && table.nccl_choices.empty())
    throw stepcast::InputError(arguments.files[0], "holds neither NCCL's table nor its choices",
                               "log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING");
  const sim::Catalogue catalogue = sim::Catalogue::standard();
  std::string node = arguments.node;
  if (node.empty()) {
    std::string gpu =
        table.nccl_tuning.empty() ? table.nccl_choices[0].gpu : table.nccl_tuning[0].gpu;
    std::transform(gpu.begin(), gpu.end(), gpu.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    node = catalogue.node_of_gpu(gpu, "--gpu");
  }
  for (const auto& comparison : calibrate::compare_tuning(
           table, catalogue.node(sim::toml_text(node, "--node")), catalogue.directory() + "/nccl"))
    std::fputs(calibrate::to_text(comparison).c_str(), stdout);
}

int measure_device(const Arguments& arguments) {
  need(arguments.files.empty(), "run needs --for before the names of scenarios");
  calibrate::RunRequest request;
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
  request.date = today();
  request.command = "stepcast-calibrate" + arguments.command_line;
  request.facts = facts_of(arguments);
  return calibrate::run_calibration(request);
}

int run(const Arguments& arguments) {
  const std::string& command = arguments.command;
  const auto& files = arguments.files;
  if (command == "run") return measure_device(arguments);
  if (command == "import") {
    import(arguments);
  } else if (command == "fit-network") {
    fit_network(arguments);
  } else if (command == "import-node") {
    import_node(arguments);
  } else if (command == "tuning") {
    compare_tuning(arguments);
  } else if (command == "show") {
    need(files.size() == 1, "show needs one FILE.h5");
    std::fputs(calibrate::describe(sim::read_calibration(files[0])).c_str(), stdout);
  } else if (command == "report") {
    need(files.size() == 1, "report needs one FILE.h5");
    std::fputs(calibrate::gpu_report(sim::read_calibration(files[0]),
                                     sim::read_calibration(sim::published_calibration()))
                   .c_str(),
               stdout);
  } else if (command == "diff") {
    need(files.size() == 2, "diff needs A.h5 B.h5");
    std::fputs(calibrate::to_text(calibrate::diff(sim::read_calibrations(std::vector{files[0]}),
                                                  sim::read_calibrations(std::vector{files[1]})))
                   .c_str(),
               stdout);
  } else if (command == "export") {
    need(files.empty() && !arguments.csv.empty(), "export needs --csv FILE.h5");
    std::fputs(calibrate::export_csv(sim::read_calibration(arguments.csv)).c_str(), stdout);
  } else if (command == "merge") {
    need(files.size() >= 2 && !arguments.out.empty(), "merge needs A.h5 B.h5 ... --out C.h5");
    sim::CalibrationTable table = sim::read_calibrations(files);
    if (!arguments.title.empty()) table.title = arguments.title;
    sim::write_calibration(arguments.out, table);
  } else {
    throw UsageError("unknown command " + command + did_you_mean(command, commands));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    if (arguments.help) return std::fputs(usage, stdout) < 0 ? 1 : 0;
    if (arguments.command.empty()) throw UsageError("which command?");
    return run(arguments);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n\n%s", error.what(), usage);
    return 2;
  } catch (const stepcast::InputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast-calibrate: internal error: %s\n", error.what());
    return 1;
  }
}
