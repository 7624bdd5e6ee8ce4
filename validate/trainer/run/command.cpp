#include "validate/trainer/run/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/processes/child.hpp"
#include "sim/processes/meeting.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/calibration_file.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "validate/trainer/ranks/child.hpp"
#include "validate/trainer/ranks/place.hpp"
#include "validate/trainer/ranks/process.hpp"
#include "validate/trainer/ranks/rendezvous.hpp"
#include "validate/trainer/ranks/sockets.hpp"
#include "validate/trainer/ranks/text.hpp"
#include "validate/trainer/run/results.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using sim::Arguments;
using sim::UsageError;

constexpr sim::Option options[] = {
    {"steps", "N", "", "steps to train (default 60)"},
    {"warm-up", "N", "", "the first of them, trained but not counted (default 10)"},
    {"text", "FILE", "", "what to learn from, as bytes (default: generated sentences)"},
    {"checkpoint", "DIR", "", "save weights and optimizer there at the end"},
    {"save-every", "N", "", "... and every N steps"},
    {"resume", "", "", "go on from the checkpoint"},
    {"ranks", "mpi|processes|threads", "",
     "what the ranks are (default: mpi if built with it; processes on GPUs and lanes)"},
    {"compute", "kernels|waits", "",
     "waits: a kernel is a pause of its calibrated length, for more ranks than cores"},
    {"gpus", "N", "", "use N GPUs of a node; more ranks share them, as a functional check"},
    {"rendezvous", "PLACE", "", "host:port of rank 0, or a file that all nodes see"},
    {"nodes", "N", "", "processes are started on so many nodes, on each by its own command ..."},
    {"node", "I", "", "... of which this is number I, from 0"},
    {"patience", "TIME", "", "a rank that lets its peers wait longer has hung (default 60 s)"},
    {"set", "KEY=VALUE", "", "set any key of the scenario; more may follow, or be repeated"},
    {"out", "FILE", "", "write the results as JSON"},
    {"timeline", "FILE", "", "write the median step as Chrome trace events"},
    {"quiet", "", "", "no progress"},
};

sim::Scenario scenario_of(const Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::string& file = arguments.first("which scenario?");
  sim::TomlValue document = sim::read_toml_file(file);
  for (const auto& [key, value] : sim::settings_of(trainer_verb, arguments))
    sim::override_key(document, key, value);
  const sim::Study study = sim::read_study(std::move(document));
  if (study.num_points() != 1)
    throw InputError(file, "has a [sweep]: one run trains one plan",
                     "choose by --set " + study.keys.front() + "=...");
  return sim::read_scenario(study.document_of(study.point(0)), catalogue);
}

std::optional<RankKind> rank_kind_of(const Arguments& arguments) {
  if (!arguments.has("ranks")) return std::nullopt;
  const std::string word = arguments.choice("ranks");
  return word == "mpi"         ? RankKind::mpi
         : word == "processes" ? RankKind::processes
                               : RankKind::threads;
}

/// Of kernels, as the scenario's tables have them: what the simulator takes as well.
KernelTimer calibrated_lengths(const sim::Scenario& scenario, const sim::Catalogue& catalogue) {
  if (!scenario.software.host.collectives_hold_core)
    throw UsageError("--compute waits pauses the thread that calls: it has no lanes",
                     "framework = \"stepcast-trainer\" does one thing after the other");
  check_waits(scenario);
  auto kernels = sim::Session(catalogue).kernels(scenario);
  return [kernels = std::move(kernels)](const workloads::Kernel& kernel) {
    return kernels->time_of(kernel).duration;
  };
}

void read_nodes(const Arguments& arguments, TrainerCommand& command) {
  command.rendezvous = arguments.get("rendezvous");
  command.nodes = arguments.count("nodes", 1);
  command.node = arguments.count("node", 0, 0);
  if (arguments.has("nodes") != arguments.has("node") || command.node >= command.nodes)
    throw UsageError("--nodes N and --node I, below N, go together");
  if (command.nodes > 1 && command.rendezvous.empty())
    throw UsageError("--nodes needs --rendezvous, where they meet");
  if (command.nodes > 1) sim::check_token(command.rendezvous, sim::token_in_environment());
  if (arguments.has("gpus")) command.gpus = arguments.count("gpus", 1);
}

TrainerCommand command_of(const Arguments& arguments, const sim::Catalogue& catalogue) {
  TrainerCommand command;
  command.scenario = scenario_of(arguments, catalogue);
  command.run.steps = arguments.count("steps", command.run.steps);
  command.run.warm_up =
      arguments.count("warm-up", std::min(command.run.warm_up, command.run.steps - 1), 0);
  if (command.run.warm_up >= command.run.steps)
    throw UsageError("--warm-up leaves no step to count");
  command.run.text = arguments.get("text");
  command.run.checkpoint = arguments.get("checkpoint");
  command.run.save_every = arguments.count("save-every", 0);
  command.run.resume = arguments.has("resume");
  if (command.run.checkpoint.empty() && (command.run.resume || command.run.save_every > 0))
    throw UsageError("--resume and --save-every need --checkpoint DIR");
  if (arguments.choice("compute") == "waits")
    command.run.kernel_time = calibrated_lengths(command.scenario, catalogue);
  command.ranks = rank_kind_of(arguments);
  command.run.patience = parse<Duration>(arguments.get("patience", "60 s"), "--patience");
  read_nodes(arguments, command);
  command.results = arguments.get("out");
  command.timeline = arguments.get("timeline");
  command.quiet = arguments.has("quiet");
  return command;
}

/// At most one line a second, to whoever watches: the launcher, which passes it on, or a terminal.
class Watcher {
 public:
  Watcher(const TrainerCommand& command)
      : steps_(command.run.steps),
        line_(std::make_shared<sim::ProgressLine>(progress_mark, style_for(command.quiet), stderr,
                                                  std::chrono::seconds(1))) {}

  void operator()(std::int64_t step, Duration time, std::optional<double> loss) {
    const auto now = sim::ProgressLine::Clock::now();
    if (!line_->due(now)) return;
    std::string text = fmt::format("step {} of {}, {}", step + 1, steps_, to_text(time));
    if (loss) text += fmt::format(", loss {:.3f}", *loss);
    line_->show(text, now);
  }

 private:
  using Style = sim::ProgressLine::Style;
  static Style style_for(bool quiet) {
    if (started_by_launcher()) return Style::lines;
    return quiet || isatty(STDERR_FILENO) == 0 ? Style::none : Style::bar;
  }

  std::int64_t steps_;
  std::shared_ptr<sim::ProgressLine> line_;  // copies are one watcher
};

void hand_in(const TrainerCommand& command, const TrainerResults& results) {
  sim::tell(stdout, text_of_results(results));
  std::fflush(stdout);  // before the other ranks are waited for
  if (!command.results.empty()) write_results(command.results, results);
  if (!command.timeline.empty()) sim::write_timelines(command.timeline, {&results.timeline, 1});
}

/// One rank's way through the program.
class RankBody {
 public:
  RankBody(const TrainerCommand& command, const Machinery& machinery) : command_(command) {
    if (machinery.gpu_makers) gpus_ = machinery.gpu_makers(command.gpus);
  }
  void operator()(std::unique_ptr<Communicator> world) const {
    const auto results =
        run_trainer(command_.scenario, command_.run, std::move(world), gpus_, Watcher(command_));
    if (results) hand_in(command_, *results);
  }

 private:
  const TrainerCommand& command_;
  GpuMakers gpus_;
};

std::string id_of_tables(const sim::Scenario& scenario) {
  std::string text;
  for (const std::string& table : scenario.tables)
    text += sim::id_of_file(sim::calibration_file(table));
  return sim::id_of_text(text);
}

/// Of nodes whose commands differ one would train another model than the next, unnoticed.
std::vector<Term> terms_of(const TrainerCommand& command) {
  const RunSettings& run = command.run;
  std::string text = "generated";
  if (!run.text.empty()) text = sim::id_of_file(run.text);
  return {{"scenario", job_id(command.scenario)},
          {"--steps", std::to_string(run.steps)},
          {"--warm-up", std::to_string(run.warm_up)},
          {"--save-every", std::to_string(run.save_every)},
          {"--checkpoint", run.checkpoint.empty() ? "none" : "given"},
          {"--resume", run.resume ? "given" : "none"},
          {"--text", text},
          {"--compute", run.kernel_time ? "waits-" + id_of_tables(command.scenario) : "kernels"}};
}

/// Finds the other processes. Those that one launcher started are all there at once, but on a busy
/// machine starting takes long; for those started by hand somebody waits.
int run_process(const RankPlace& place, const TrainerCommand& command, const RankBody& body) {
  const Duration patience = command.run.patience;
  const Duration starting = place.listening >= 0 || place.rendezvous.starts_with("127.0.0.1:")
                                ? to_duration(30.0)
                                : Duration{};
  Rendezvous rendezvous({.rank = place.rank,
                         .ranks = place.ranks,
                         .place = place.rendezvous,
                         .token = place.token,
                         .listening = place.listening,
                         .patience = std::max(patience, starting),
                         .terms = terms_of(command)});
  SocketRanks ranks(place.rank, std::move(rendezvous.connections), patience);
  body(ranks.world());
  return sim::exit_ok;
}

/// Kernels that run take what they take; a pause can be as long as a slow rank's kernel.
void check_noise(const TrainerCommand& command) {
  const sim::Scenario& scenario = command.scenario;
  sim::Noise drawn = scenario.noise;
  drawn.stragglers.clear();
  if (drawn.on())
    throw InputError(scenario.origin, "draws kernel times in [noise], the trainer draws none",
                     "leave kernel_sigma, gpu_sigma and pace_sigma out");
  if (scenario.noise.on() && !command.run.kernel_time)
    throw InputError(scenario.origin, "has stragglers in [noise], the trainer's kernels have none",
                     "--compute waits makes a rank's kernels longer");
}

/// What can be said before any rank starts.
void check_command(const TrainerCommand& command, RankKind kind, const Machinery& machinery) {
  const sim::Scenario& scenario = command.scenario;
  check_trainable(scenario);
  check_noise(command);
  if (!command.run.text.empty()) read_text(command.run.text, scenario.model.vocab);
  const std::int64_t ranks = scenario.plan.ranks();
  if (ranks % command.nodes != 0)
    throw InputError(fmt::format("--nodes {}", command.nodes),
                     fmt::format("the plan's {} ranks do not go evenly onto them", ranks));
  if (!trains_on_gpus(scenario)) {
    if (command.gpus) throw UsageError("--gpus is for a scenario of GPUs, this one is of the host");
    if (kind == RankKind::mpi && !scenario.software.host.collectives_hold_core)
      throw UsageError(
          "--ranks mpi has one lane, and collectives are to run beside compute: take "
          "--ranks processes");
    return;
  }
  if (kind == RankKind::threads && ranks > 1)
    throw UsageError("--ranks threads is for the host: a rank on a GPU is a process");
  if (!machinery.num_gpus) return;  // run_trainer() says what is missing
  const std::int64_t here = machinery.num_gpus();
  if (here == 0)
    throw InputError(scenario.origin, "is for " + scenario.node.gpu.name + ": no GPU here",
                     "see nvidia-smi, or take node = \"host\"");
  if (command.gpus && *command.gpus > here)
    throw InputError(fmt::format("--gpus {}", *command.gpus), fmt::format("here are {}", here));
  if (!command.gpus && ranks / command.nodes > here && kind == RankKind::processes)
    throw InputError(scenario.origin,
                     fmt::format("has {} ranks for {} GPUs here", ranks / command.nodes, here),
                     fmt::format("--gpus {} lets ranks share a GPU, as a functional check", here));
}

int launch(const TrainerCommand& command, RankKind kind, const std::vector<std::string>& words,
           const std::string& program) {
  const RankLaunch launch{
      .ranks = command.scenario.plan.ranks(),
      .program = program,
      .arguments = words,
      // A rank that hangs is noticed by its peers first; starting takes seconds.
      .silence = command.run.patience * 2 + to_duration(10.0),
      .quiet = command.quiet || isatty(2) == 0};
  if (kind == RankKind::mpi) return run_under_mpi(launch);
  const std::int64_t share = launch.ranks / command.nodes;
  return run_as_processes(launch, {.first_rank = command.node * share,
                                   .count = share,
                                   .rendezvous = command.rendezvous,
                                   .token = sim::token_in_environment()});
}

RankKind kind_of(const TrainerCommand& command, const Machinery& machinery) {
  if (command.ranks) return *command.ranks;
  if (!command.rendezvous.empty() || !machinery.mpi_rank) return RankKind::processes;
  const bool one_lane = command.scenario.software.host.collectives_hold_core;
  return one_lane && !trains_on_gpus(command.scenario) ? RankKind::mpi : RankKind::processes;
}

/// This process as mpirun or srun started it: a rank that finds the others by --rendezvous.
std::optional<RankPlace> place_by_launcher(const TrainerCommand& command, RankKind kind) {
  if (kind != RankKind::processes || command.nodes > 1) return std::nullopt;
  std::optional<RankPlace> place = launchers_place();
  if (!place || place->ranks == 1) return std::nullopt;  // a shell under srun is no rank
  const std::int64_t ranks = command.scenario.plan.ranks();
  if (place->ranks != ranks)
    throw InputError("--ranks processes", fmt::format("{} processes were started, the plan has {}",
                                                      place->ranks, ranks));
  if (command.rendezvous.empty())
    throw InputError("--ranks processes", "started as one of several, but where do they meet?",
                     "--rendezvous FILE or host:port");
  place->rendezvous = command.rendezvous;
  return place;
}

}  // namespace

const sim::Verb trainer_verb{
    "stepcast-trainer",
    "SCENARIO.toml",
    1,
    "Trains the scenario's model on this machine's cores or GPUs and times it.",
    options,
    "stepcast-trainer scenarios/host_circle.toml --set plan.data=zero3"};

int command_trainer(const Arguments& arguments, const std::string& program,
                    const Machinery& machinery, const sim::Catalogue& catalogue) {
  const std::vector<std::string>& words = arguments.words();
  const TrainerCommand command = command_of(arguments, catalogue);
  if (trains_on_gpus(command.scenario) && !machinery.gpu_program.empty())
    become_program(machinery.gpu_program, words);
  const RankBody body(command, machinery);
  const Duration patience = command.run.patience;
  const RankKind kind = kind_of(command, machinery);

  if (const auto place = own_place()) return run_process(*place, command, body);
  const bool is_mpi_rank = machinery.mpi_rank && started_by_mpirun();
  if (is_mpi_rank && command.ranks != RankKind::processes && command.rendezvous.empty()) {
    if (started_by_launcher()) sim::end_with_parent();
    machinery.mpi_rank(patience, body);
    return sim::exit_ok;
  }
  check_command(command, kind, machinery);
  if (const auto place = place_by_launcher(command, kind))
    return run_process(*place, command, body);
  const std::int64_t ranks = command.scenario.plan.ranks();
  if (ranks == 1 || kind == RankKind::threads) {
    run_ranks(ranks, body, patience);
    return sim::exit_ok;
  }
  if (kind == RankKind::mpi && !machinery.mpi_rank)
    throw InputError("--ranks mpi", "this program was built without MPI",
                     "install libopenmpi-dev and build again, or take --ranks processes");
  return launch(command, kind, words, program);
}

}  // namespace stepcast::validate
