// stepcast-calibrate card: a node's kernels, links and collectives beside the same machine as it is
// known, and the forecasts that they change.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>

#include "calibrate/command/commands.hpp"
#include "calibrate/command/facts.hpp"
#include "calibrate/import/import_files.hpp"
#include "calibrate/report/card.hpp"
#include "calibrate/session/run_command.hpp"
#include "calibrate/session/task_list.hpp"
#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/scratch_folder.hpp"
#include "sim/program/today.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::calibrate {
namespace {

constexpr sim::Option card_options[] = {
    {"device", "host|cuda", "", "measure this machine first; else FILEs hold what was measured"},
    {"quick", "", "", "few samples"},
    {"out", "FILE.h5", "", "keep what was measured or read"},
    {"against", "TABLE ...", "", "what is par: a table of such a machine (default: published)"},
    {"below", "PERCENT", "", "slower than par by more is below it (default 10)"},
    {"for", "SCENARIO.toml ...", "",
     "measure what these need, and show their forecasts with and without it"},
    gpu_option,
    nccl_option,
    collective_option,
    fabric_option,
    node_bandwidth_option,
    ranks_option,
    nodes_option,
    {"rendezvous", "PLACE", "", "as of stepcast calibrate run, for --device cuda on several nodes"},
    {"json", "", "", "print JSON: every row with its par, not the worst alone"},
};
constexpr sim::Verb card_verb{
    "stepcast calibrate card",
    "[FILE ...]",
    1 << 20,
    "Shows what of a node falls short: each kernel, link and collective, measured now or read from "
    "FILEs (tables, CSV, logs of nccl-tests), beside the same machine as it is known; and which "
    "forecasts that changes.",
    card_options,
    "stepcast calibrate card all_reduce.log --gpu h100"};

sim::CalibrationTable read_files(const std::vector<std::string>& files, const ClusterFacts& facts) {
  std::vector<std::string> tables, logs;
  for (const std::string& file : files)
    (file.ends_with(".h5") || file == "published" ? tables : logs).push_back(file);
  sim::CalibrationTable table;
  if (!tables.empty()) table = sim::read_calibrations(tables);
  if (!logs.empty()) {
    Import import = import_files(logs, facts);
    sim::tell(stderr, import.report);
    table = sim::merge(std::move(table), import.table);
  }
  if (sim::num_rows(table) == 0)
    throw InputError(files[0], "holds no figure that a card could show",
                     "nccl-tests and stepcast calibrate run make some");
  if (table.created.empty()) table.created = sim::today();
  return table;
}

RunRequest request_of(const sim::Arguments& arguments, const sim::Catalogue& catalogue,
                      const std::string& out) {
  RunRequest request;
  request.device = arguments.get("device");
  request.options.ranks = arguments.count("ranks", 0);
  request.options.nodes = arguments.count("nodes", 1);
  request.options.rendezvous = arguments.get("rendezvous");
  request.scenarios = arguments.all("for");
  request.quick = arguments.has("quick");
  request.out = out;
  request.scratch = true;
  request.report = arguments.has("json") ? stderr : stdout;
  request.date = sim::today();
  request.command = "stepcast-calibrate card";
  for (const std::string& word : arguments.words()) request.command += " " + word;
  request.facts = facts_of(arguments, catalogue);
  return request;
}

/// Par is what the user names, else what is published.
std::vector<std::string> par_tables(const sim::Arguments& arguments) {
  return arguments.has("against") ? arguments.all("against")
                                  : std::vector<std::string>{"published"};
}

/// Steps that such nodes are bought for, where the user names none: one that gathers weights, one
/// that reduces gradients, one that cuts layers. None for a host.
std::vector<sim::Scenario> usual_scenarios(const sim::CalibrationTable& measured,
                                           const std::string& gpu,
                                           const sim::Catalogue& catalogue) {
  const sim::GpuIdentity* identity = catalogue.gpus().find(gpu);
  if (identity == nullptr || identity->gpu.architecture.host) return {};
  std::int64_t nodes = 1;
  for (const sim::CollectiveRow& row : measured.collectives) nodes = std::max(nodes, row.nodes);
  const sim::NodeOfGpu home = catalogue.node_of_gpu(identity->gpu.name, "card");
  const std::string node =
      home.put_in ? fmt::format("{{ name = \"{}\", gpu = \"{}\" }}", home.node, home.gpu)
                  : fmt::format("\"{}\"", home.node);
  const std::int64_t in_node = catalogue.node(home.value("card")).gpus;
  std::vector<sim::Scenario> out;
  for (const std::string& plan : {std::string("data = \"zero3\""), std::string("data = \"ddp\""),
                                  fmt::format("tensor = {}, data = \"zero1\"", in_node)}) {
    const std::string text = fmt::format(
        "title = 'llama3-8b on {} x {}, {}'\nmodel.name = \"llama3-8b\"\n"
        "cluster = {{ node = {}, nodes = {} }}\nplan = {{ {} }}\nbatch.local = 1\n",
        nodes * in_node, identity->gpu.name, plan, node, nodes, plan);
    try {
      out.push_back(sim::read_scenario(sim::read_toml(text, "card"), catalogue));
      out.back().run.ignore_memory = true;
    } catch (const InputError&) {  // no such plan on so many GPUs
    }
  }
  return out;
}

struct Forecast {
  std::optional<Duration> time{};
  std::string missing{};  // why there is none
};

Forecast forecast(sim::Scenario scenario, std::vector<std::string> tables,
                  const sim::Simulator& simulator) {
  scenario.tables = std::move(tables);
  try {
    const sim::Answer answer = sim::answer(scenario, simulator);
    if (const auto* step = std::get_if<sim::StepReport>(&answer)) return {step->step_time};
    if (const auto* one = std::get_if<sim::CollectiveReport>(&answer)) return {one->time.duration};
    return {{}, std::get<sim::Refused>(answer).reason};
  } catch (const InputError& error) {
    return {{}, error.what()};
  }
}

std::string title_of(const sim::Scenario& scenario) {
  return scenario.title.empty() ? scenario.model.name : scenario.title;
}

/// What `file` changes of the forecasts of `scenarios`.
std::vector<ForecastChange> forecast_changes(const std::vector<sim::Scenario>& scenarios,
                                             const std::vector<std::string>& against,
                                             const std::string& file, sim::Session& session) {
  const sim::Simulator simulator = sim::simulator_of(session);
  std::vector<ForecastChange> out;
  for (const sim::Scenario& scenario : scenarios) {
    std::vector<std::string> tables = against.empty() ? scenario.tables : against;
    const Forecast before = forecast(scenario, tables, simulator);
    // A host has none before it is measured: published rows do not serve it.
    if (!before.time) tables = {"published"};
    tables.push_back(file);
    const Forecast after = forecast(scenario, tables, simulator);
    out.push_back({title_of(scenario), before.time, after.time, after.missing});
  }
  return out;
}

int card(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto& files = arguments.positional();
  if (files.empty() != arguments.has("device"))
    throw sim::UsageError(files.empty() ? "card needs FILEs, or --device to measure"
                                        : "card measures (--device) or reads FILEs, not both",
                          card_verb.example);
  const sim::ScratchFolder scratch("card");
  const std::string file = (scratch.path() / "card.h5").string();
  sim::CalibrationTable measured;
  if (files.empty()) {
    const int code = run_calibration(request_of(arguments, catalogue, file), catalogue);
    if (code != sim::exit_ok) return code;
    measured = sim::read_calibration(file);
  } else {
    measured = read_files(files, facts_of(arguments, catalogue));
    sim::write_calibration(file, measured);
  }
  if (arguments.has("out")) sim::write_calibration(arguments.get("out"), measured);
  sim::Session session(catalogue);
  Par par{.tables = par_tables(arguments), .nccl = arguments.get("nccl")};
  if (const auto slack = arguments.share("below")) par.slack = *slack;
  Card card = card_of(measured, par, session);
  std::vector<sim::Scenario> scenarios = scenarios_in(arguments.all("for"), catalogue);
  if (scenarios.empty())
    for (const std::string& gpu : card.gpus)
      for (sim::Scenario& usual : usual_scenarios(measured, gpu, catalogue))
        scenarios.push_back(std::move(usual));
  card.forecasts = forecast_changes(scenarios, arguments.all("against"), file, session);
  sim::tell(stdout, arguments.has("json") ? card_json(card) : to_text(card));
  return card.below().empty() ? sim::exit_ok : sim::exit_slower;
}

}  // namespace

sim::Command card_command() { return {.verb = card_verb, .run = card, .schema = card_schema}; }

}  // namespace stepcast::calibrate
