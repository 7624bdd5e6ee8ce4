#include "calibrate/command/commands.hpp"
#include "calibrate/command/facts.hpp"
#include "calibrate/session/run_command.hpp"
#include "sim/program/today.hpp"

namespace stepcast::calibrate {
namespace {

constexpr sim::Option options[] = {
    {"device", "host|cuda", "", "what to measure (default: a GPU where one is)"},
    {"for", "SCENARIO.toml ...", "", "what these need (default: a grid for Llama-like models)"},
    {"quick", "", "", "few samples"},
    {"out", "FILE.h5", "",
     "the table, of which what is measured anew is replaced (calibration.h5)"},
    {"resume", "", "", "leave out what the table holds already"},
    {"seed", "N", "", "of the order and the operands (default 1)"},
    {"gpu-index", "I", "", "which GPU of this node measures kernels (default 0)"},
    {"ranks", "N", "", "ranks of collectives on this node (default: what is there)"},
    {"nodes", "N", "", "nodes that measure together, each by its own command"},
    {"rendezvous", "PLACE", "",
     "host:port of the first of them (with STEPCAST_TRAINER_TOKEN), or a file that all see"},
    fabric_option,
    node_bandwidth_option,
};
constexpr sim::Verb verb{
    "stepcast calibrate run",
    "",
    0,
    "Measures what scenarios need on this machine. An interrupt keeps what was measured, --resume "
    "goes on.",
    options,
    "stepcast calibrate run --device host --for scenarios/host_circle.toml --out host.h5"};

int measure(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  RunRequest request;
  request.device = arguments.get("device");
  request.options.ranks = arguments.count("ranks", 0);
  request.options.gpu = arguments.count("gpu-index", 0, 0);
  request.options.nodes = arguments.count("nodes", 1);
  request.options.rendezvous = arguments.get("rendezvous");
  request.scenarios = arguments.all("for");
  request.quick = arguments.has("quick");
  request.resume = arguments.has("resume");
  request.out = arguments.get("out", "calibration.h5");
  request.seed = arguments.seed();
  request.date = sim::today();
  request.command = "stepcast-calibrate run";
  for (const std::string& word : arguments.words()) request.command += " " + word;
  request.facts = facts_of(arguments, catalogue);
  return run_calibration(request, catalogue);
}

}  // namespace

sim::Command run_command() { return {verb, measure}; }

}  // namespace stepcast::calibrate
