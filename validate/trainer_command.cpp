#include "validate/trainer_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/catalogue.hpp"
#include "sim/command_line.hpp"
#include "sim/scenario_file.hpp"
#include "sim/sweep.hpp"
#include "sim/toml_table.hpp"
#include "validate/trainer_process.hpp"
#include "validate/trainer_results.hpp"
#include "validate/trainer_text.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using sim::Arguments;
using sim::UsageError;
using Clock = std::chrono::steady_clock;

constexpr sim::Option options[] = {
    {"steps", "N", "", "steps to train (default 60)"},
    {"warm-up", "N", "", "the first of them, trained but not counted (default 10)"},
    {"text", "FILE", "", "what to learn from, as bytes (default: generated sentences)"},
    {"checkpoint", "DIR", "", "save weights and optimizer there at the end"},
    {"save-every", "N", "", "... and every N steps"},
    {"resume", "", "", "go on from the checkpoint"},
    {"ranks", "KIND", "", "mpi (default) or threads: what the ranks are"},
    {"patience", "TIME", "", "a rank that lets its peers wait longer has hung (default 60 s)"},
    {"set", "KEY=VALUE", "", "set any key of the scenario; more may follow, or be repeated"},
    {"out", "FILE", "", "write the results as JSON"},
    {"timeline", "FILE", "", "write the median step as Chrome trace events"},
    {"quiet", "", "", "no progress"},
};

const sim::Verb trainer_verb{
    "trainer", "SCENARIO.toml",
    1,         "Trains the scenario's model on this machine's cores and times it.",
    options,   "stepcast-trainer scenarios/host_circle.toml --set plan.data=zero3"};

std::int64_t count_of(const Arguments& arguments, const std::string& option, std::int64_t otherwise,
                      std::int64_t least) {
  const std::string text = arguments.get(option);
  if (text.empty()) return otherwise;
  if (text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stol(text) < least)
    throw UsageError("'--" + option + " " + text + "' is no such number");
  return std::stol(text);
}

sim::Scenario scenario_of(const Arguments& arguments) {
  if (arguments.positional().empty()) throw UsageError("which scenario?", trainer_verb.example);
  sim::TomlValue document = sim::read_toml_file(arguments.positional()[0]);
  for (const auto& [key, value] : sim::settings_of(trainer_verb, arguments))
    sim::override_key(document, key, value);
  const sim::Study study = sim::read_study(std::move(document));
  if (study.points.size() != 1)
    throw InputError(arguments.positional()[0], "has a [sweep]: one run trains one plan",
                     "choose by --set " + study.keys.front() + "=...");
  return sim::read_scenario(study.document_of(study.points[0]), sim::Catalogue::standard());
}

RankKind rank_kind_of(const Arguments& arguments) {
  const std::string word = arguments.get("ranks", "mpi");
  if (word != "mpi" && word != "threads")
    throw UsageError("'--ranks " + word + "' is neither mpi nor threads");
  return word == "mpi" ? RankKind::mpi : RankKind::threads;
}

TrainerCommand command_of(const Arguments& arguments) {
  TrainerCommand command;
  command.scenario = scenario_of(arguments);
  command.run.steps = count_of(arguments, "steps", command.run.steps, 1);
  command.run.warm_up =
      count_of(arguments, "warm-up", std::min(command.run.warm_up, command.run.steps - 1), 0);
  if (command.run.warm_up >= command.run.steps)
    throw UsageError("--warm-up leaves no step to count");
  command.run.text = arguments.get("text");
  command.run.checkpoint = arguments.get("checkpoint");
  command.run.save_every = count_of(arguments, "save-every", 0, 1);
  command.run.resume = arguments.has("resume");
  if (command.run.checkpoint.empty() && (command.run.resume || command.run.save_every > 0))
    throw UsageError("--resume and --save-every need --checkpoint DIR");
  command.ranks = rank_kind_of(arguments);
  command.patience = parse<Duration>(arguments.get("patience", "60 s"), "--patience");
  command.results = arguments.get("out");
  command.timeline = arguments.get("timeline");
  command.quiet = arguments.has("quiet");
  return command;
}

/// What can be said before any rank starts.
void check_command(const TrainerCommand& command) {
  check_trainable(command.scenario);
  if (!command.run.text.empty()) read_text(command.run.text, command.scenario.model.vocab);
}

/// At most one line a second, to whoever watches.
class Watcher {
 public:
  Watcher(const TrainerCommand& command)
      : steps_(command.run.steps), say_(started_by_launcher() || (!command.quiet && isatty(2))) {}

  void operator()(std::int64_t step, Duration time, std::optional<double> loss) {
    if (!say_ || Clock::now() - last_ < std::chrono::seconds(1)) return;
    last_ = Clock::now();
    std::string line = fmt::format("step {} of {}, {}", step + 1, steps_, to_text(time));
    if (loss) line += fmt::format(", loss {:.3f}", *loss);
    if (started_by_launcher())
      say_progress(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  std::int64_t steps_;
  bool say_;
  Clock::time_point last_{};
};

void hand_in(const TrainerCommand& command, const TrainerResults& results) {
  if (!command.results.empty()) write_results(command.results, results);
  if (!command.timeline.empty()) sim::write_timelines(command.timeline, {&results.timeline, 1});
  std::fputs(text_of_results(results).c_str(), stdout);
  if (std::fflush(stdout) != 0) throw InputError("standard output", "is closed or full");
}

void run_rank(const TrainerCommand& command, std::unique_ptr<Communicator> world) {
  const auto results =
      run_trainer(command.scenario, command.run, std::move(world), Watcher(command));
  if (results) hand_in(command, *results);
}

int launch(const TrainerCommand& command, const std::vector<std::string>& words,
           const std::string& program) {
  return run_under_mpi({.ranks = command.scenario.plan.ranks(),
                        .program = program,
                        .arguments = words,
                        // A rank that hangs is noticed by its peers first; starting takes seconds.
                        .silence = command.patience * 2 + to_duration(10.0),
                        .quiet = command.quiet || isatty(2) == 0});
}

}  // namespace

int command_trainer(const std::vector<std::string>& words, const std::string& program,
                    const MpiRank& mpi_rank) {
  const Arguments arguments = sim::parse_arguments(trainer_verb, words);
  if (arguments.has("help")) return std::fputs(help_text(trainer_verb).c_str(), stdout), 0;
  const TrainerCommand command = command_of(arguments);
  const auto body = [&](std::unique_ptr<Communicator> world) {
    run_rank(command, std::move(world));
  };
  if (mpi_rank && started_by_mpirun()) {
    if (started_by_launcher()) end_with_parent();
    mpi_rank(command.patience, body);
    return sim::exit_ok;
  }
  check_command(command);
  const std::int64_t ranks = command.scenario.plan.ranks();
  if (ranks == 1 || command.ranks == RankKind::threads) {
    run_ranks(ranks, body, command.patience);
    return sim::exit_ok;
  }
  if (!mpi_rank)
    throw InputError("--ranks mpi", fmt::format("built without MPI, the plan has {} ranks", ranks),
                     "install libopenmpi-dev and build again, or take --ranks threads");
  return launch(command, words, program);
}

}  // namespace stepcast::validate
