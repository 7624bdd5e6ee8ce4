// stepcast run, sweep, collective: a scenario from a file, from options, or from both.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/next_question.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/output/folder.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/program/table_view.hpp"
#include "sim/report/json.hpp"
#include "sim/report/memory_timeline.hpp"
#include "sim/report/metrics.hpp"
#include "sim/report/text.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"

namespace stepcast::sim {
namespace {

constexpr Option stepped_option{"stepped", "", "",
                                "also chunk by chunk over the links, and why that differs"};
constexpr Option explain_option{"explain", "", "",
                                "also channels, terms of the time, busiest link, NCCL's estimates"};
constexpr Option step_options[] = {
    {"resume", "", "", "of a sweep: go on with the finished points in --out DIR"},
    {"shard", "I/N", "", "of a sweep: every N-th point only; --resume makes one of all shards"},
    {"timeline", "FILE", "", "also write the step as Chrome trace events (Perfetto shows them)"},
    {"memory-timeline", "FILE", "",
     "also write the memory of each stage over the step: .svg, .json, or a table"},
    {"no-fold", "", "", "simulate every rank"},
    {"check-fold", "", "", "simulate folded and unfolded, fail on a difference"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};
constexpr Option common_options[] = {
    {"json", "", "", "print JSON"},
    {"out", "DIR", "", "also write resolved scenario, JSON and HDF5 into DIR"},
    {"threads", "N", "", "points of a sweep to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

/// Options that set keys of a scenario, and the others.
const std::vector<Option>& run_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = with_scenario_options(
        {"model", "cluster", "plan", "batch", "precision", "run"}, common_options);
    out.insert(out.end(), table_options.begin(), table_options.end());
    out.push_back(refused_option);
    out.insert(out.end(), std::begin(step_options), std::end(step_options));
    return out;
  }();
  return options;
}

const std::vector<Option>& collective_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"cluster", "collective"})) out.push_back(option);
    out.insert(out.end(), {nccl_env_option, stepped_option, explain_option, set_option});
    out.insert(out.end(), std::begin(common_options), std::end(common_options));
    out.insert(out.end(), table_options.begin(), table_options.end());
    out.push_back(refused_option);
    return out;
  }();
  return options;
}

Verb run_verb() {
  return {"stepcast run",
          "[SCENARIO.toml]",
          1,
          "Forecasts one training step, or every point of a sweep.",
          run_options(),
          "stepcast run --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2"};
}
Verb sweep_verb() {
  return {"stepcast sweep",
          "SCENARIO.toml",
          1,
          "Runs every point of a scenario's [sweep].",
          run_options(),
          "stepcast sweep scenarios/weak_scaling.toml --json"};
}
Verb collective_verb() {
  return {"stepcast collective",
          "KIND",
          1,
          "Times one collective over all GPUs: all_reduce, all_gather, "
          "reduce_scatter, broadcast, reduce, all_to_all, send_receive.",
          collective_options(),
          "stepcast collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB"};
}

void check_references(const Study& study) {
  for (const Reference& reference : study.references)
    if (find_metric(reference.metric) == nullptr) {
      std::vector<std::string> known;
      for (const Metric& metric : metrics()) known.emplace_back(metric.key);
      throw InputError("[[reference]]", "unknown metric '" + reference.metric + "'",
                       suggestion(reference.metric, known));
    }
}

Scenario read_point(const TomlValue& document, const Arguments& arguments,
                    const Catalogue& catalogue) {
  Scenario scenario = read_scenario(document, catalogue);
  scenario.run.fold = !arguments.has("no-fold");
  scenario.run.check_fold = arguments.has("check-fold");
  scenario.run.ignore_memory = arguments.has("ignore-memory");
  scenario.run.explain = arguments.has("explain");
  scenario.run.stepped = arguments.has("stepped");
  return scenario;
}

int exit_code_of(const Results& results) {
  using State = PointRows::State;
  const PointRows& rows = results.rows;
  if (results.interrupted) return stop_code();
  if (const std::size_t failed = rows.count(State::failed); failed > 0) {
    std::fprintf(stderr, "stepcast: %zu points failed with an internal error, please report it\n",
                 failed);
    return exit_internal;
  }
  const bool answered = rows.count(State::answered) > 0;
  return rows.count(State::refused) > 0 && !answered ? exit_no_feasible_plan : exit_ok;
}

/// Simulated once more, kernel by kernel; nothing where the plan does not fit.
void write_step(const std::string& path, const Results& results, Session& session) {
  if (!results.single || std::holds_alternative<Refused>(*results.single)) return;
  Timeline timeline;
  session.timeline(scenario_of(*results.single), timeline);
  write_timelines(path, {&timeline, 1});
}

/// What can be asked for of one point, or of many, alone.
void check_options(const Study& study, const Arguments& arguments) {
  for (const char* option : {"timeline", "memory-timeline"})
    if (arguments.has(option) && (study.is_sweep || study.base.find("collective") != nullptr))
      throw UsageError("--" + std::string(option) + " shows one step",
                       "give a scenario without [sweep]");
  for (const char* option : {"resume", "shard"})
    if (arguments.has(option) && !(study.is_sweep && arguments.has("out")))
      throw UsageError("--" + std::string(option) + " is for the points of a [sweep] in --out DIR");
}

/// A single answer is a table of one row, in files alone.
void check_view(const TableView& view, const Study& study) {
  const std::string option = view.arrangement();
  if (!study.is_sweep && !option.empty() && !(option == "--columns" && view.writes_csv()))
    throw UsageError(option + " is for the table of a [sweep]",
                     "one answer has no table; --csv FILE writes it as a row");
  view.check(results_table(Results(study), view));
}

std::unique_ptr<OutputFolder> folder_of(const Study& study, const Arguments& arguments,
                                        const Catalogue& catalogue) {
  if (!arguments.has("out")) return nullptr;
  OutputRequest request{arguments.get("out"), arguments.has("resume")};
  if (arguments.has("shard")) request.shard = read_shard(arguments.get("shard"));
  return std::make_unique<OutputFolder>(std::move(request), study, catalogue.directory());
}

/// Writes what is asked for. The answer is printed whatever becomes of it: false after a message.
bool write_files(const Results& results, const Arguments& arguments, const TableView& view,
                 OutputFolder* folder, Session& session) {
  try {
    if (folder != nullptr) folder->finish(results);
    if (folder != nullptr && results.interrupted && results.study.is_sweep)
      std::fprintf(stderr, "stepcast: what is finished is in '%s': --resume goes on\n",
                   folder->place().c_str());
    if (view.writes_csv()) view.write(view.arranged(results_table(results, view)));
    if (arguments.has("timeline")) write_step(arguments.get("timeline"), results, session);
    if (arguments.has("memory-timeline") && results.single)
      write_memory_timeline(arguments.get("memory-timeline"), scenario_of(*results.single));
    return true;
  } catch (const OutputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return false;
  }
}

void print_results(const Results& results, const TableView& view, bool json) {
  if (!json) {
    const std::string text =
        view.prints_csv() ? view.printed(results_table(results, view)) : report_text(results, view);
    std::fputs(text.c_str(), stdout);
    return;
  }
  write_json(results,
             [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  std::fputs("\n", stdout);
}

int answer_document(TomlValue document, const Verb& verb, const Arguments& arguments,
                    const Catalogue& catalogue) {
  const std::atomic<bool>& stop = stop_requested();
  Study study = read_study(std::move(document));
  check_references(study);
  check_options(study, arguments);
  const TableView view(arguments);
  check_view(view, study);
  const unsigned threads = arguments.threads();
  const auto folder = folder_of(study, arguments, catalogue);
  const Shard shard = arguments.has("shard") ? read_shard(arguments.get("shard")) : Shard{};
  const auto read = [&](const TomlValue& point) { return read_point(point, arguments, catalogue); };
  Session session(catalogue);
  std::optional<Progress> progress(std::in_place, num_points(study, shard),
                                   Progress::style_for(arguments.has("quiet")));
  const auto confidence = std::make_shared<Confidence>(session);
  Results results =
      run_study(std::move(study), {.read = read,
                                   .simulator = simulator_of(session, confidence),
                                   .threads = threads,
                                   .stop = stop,
                                   .shard = shard,
                                   .folder = folder.get(),
                                   .finished = [&](std::size_t done) { progress->show(done); }});
  progress.reset();
  if (const Order* order = confidence->order()) results.order = *order;
  const bool written = write_files(results, arguments, view, folder.get(), session);
  print_results(results, view, arguments.has("json"));
  if (results.single && !arguments.has("json") && !view.prints_csv())
    std::fputs(next_question(*results.single, scenario_words(verb, arguments)).c_str(), stdout);
  return written ? exit_code_of(results) : exit_unwritten;
}

int answer_file(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue,
                bool needs_sweep) {
  if (needs_sweep) arguments.first("which scenario?");
  TomlValue document = asked_document(verb, arguments, catalogue);
  if (needs_sweep && document.find("sweep") == nullptr)
    throw InputError(document.where, "has no [sweep]", "stepcast run answers a single scenario");
  return answer_document(std::move(document), verb, arguments, catalogue);
}

int run(const Arguments& arguments, const Catalogue& catalogue) {
  return answer_file(run_verb(), arguments, catalogue, false);
}

int sweep(const Arguments& arguments, const Catalogue& catalogue) {
  return answer_file(sweep_verb(), arguments, catalogue, true);
}

int collective(const Arguments& arguments, const Catalogue& catalogue) {
  const std::string& kind = arguments.first("which collective?");
  TomlValue document = toml_table("command line");
  set_path(document, "collective.kind", toml_text(kind, "command line"));
  const Verb verb = collective_verb();
  apply_options(document, verb, arguments, catalogue);
  return answer_document(std::move(document), verb, arguments, catalogue);
}

}  // namespace

Command run_command() { return {run_verb(), run}; }
Command sweep_command() { return {sweep_verb(), sweep}; }
Command collective_command() { return {collective_verb(), collective}; }

}  // namespace stepcast::sim
