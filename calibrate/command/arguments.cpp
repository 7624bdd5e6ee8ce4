#include "calibrate/command/arguments.hpp"

#include <boost/program_options.hpp>
#include <utility>

#include "sim/files/suggest.hpp"

namespace stepcast::calibrate {
namespace {

namespace po = boost::program_options;

constexpr const char* usage_text =
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

}  // namespace

const char* usage() { return usage_text; }

std::string suggested_command(const std::string& word) { return did_you_mean(word, commands); }

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

}  // namespace stepcast::calibrate
