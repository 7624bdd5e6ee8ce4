// stepcast run and collective: a scenario from a file, from options, or from both.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "engine/check.hpp"
#include "sim/command/answer_study.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/next_question.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/timeline_options.hpp"
#include "sim/command/tune.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/handout/points_page.hpp"
#include "sim/output/folder.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/program/table_view.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "sim/told/json.hpp"
#include "sim/told/memory_timeline.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/shared_sentences.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

constexpr Option stepped_option{"stepped", "", "",
                                "also chunk by chunk over the links, and why that differs"};
constexpr Option explain_option{"explain", "", "",
                                "also channels, terms of the time, busiest link, NCCL's estimates"};
constexpr Option step_options[] = {
    {"resume", "", "", "of a sweep: go on with the finished points in --out DIR"},
    {"shard", "I/N", "", "of a sweep: every N-th point only; --resume makes one of all shards"},
    {"timeline", "FILE", "",
     "also write the step for Perfetto: .json or .json.gz (Chrome trace events), or .pftrace"},
    timeline_ranks_option,
    timeline_limit_option,
    {"memory-timeline", "FILE", "",
     "also write the memory of each stage over the step: .svg, .json, or a table"},
    {"no-fold", "", "", "simulate every rank"},
    {"check-fold", "", "", "simulate folded and unfolded, fail on a difference"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
    report_option,
    svg_option,
    no_alternatives_option,
};
constexpr Option common_options[] = {
    {"json", "", "", "print JSON"},
    {"out", "DIR", "", "also write resolved scenario, JSON and HDF5 into DIR"},
    {"threads", "N", "", "points of a sweep to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

}  // namespace

const std::vector<Option>& run_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = with_scenario_options(step_tables, common_options);
    out.insert(out.end(), table_options.begin(), table_options.end());
    out.push_back(refused_option);
    out.insert(out.end(), std::begin(step_options), std::end(step_options));
    return out;
  }();
  return options;
}

namespace {

const std::vector<Option>& collective_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"cluster", "collective"})) out.push_back(option);
    out.insert(out.end(), {nccl_env_option, stepped_option, explain_option, set_option});
    out.insert(out.end(), std::begin(tune_options), std::end(tune_options));
    out.insert(out.end(), std::begin(common_options), std::end(common_options));
    out.insert(out.end(), table_options.begin(), table_options.end());
    out.push_back(refused_option);
    return out;
  }();
  return options;
}

Verb run_verb() {
  return {"stepcast run",
          "[SCENARIO.toml | FILE ...]",
          4,
          "Forecasts one training step, or every point of a sweep; of a scenario, or of the launch "
          "files of a framework.",
          run_options(),
          "stepcast run --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2"};
}
Verb collective_verb() {
  return {
      "stepcast collective",
      "KIND",
      1,
      "Times one collective over all GPUs: all_reduce, all_gather, "
      "reduce_scatter, broadcast, reduce, all_to_all, send_receive. Or looks for faster choices "
      "than NCCL's (--tune).",
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

Scenario read_point(const TomlValue& document, const std::vector<std::string>& options,
                    const Catalogue& catalogue) {
  const auto asked = [&](const char* option) { return std::ranges::count(options, option) > 0; };
  Scenario scenario = read_scenario(document, catalogue);
  scenario.run.fold = !asked("no-fold");
  scenario.run.check_fold = asked("check-fold");
  scenario.run.ignore_memory = asked("ignore-memory");
  scenario.run.explain = asked("explain");
  scenario.run.stepped = asked("stepped");
  return scenario;
}

/// Those that read_point() knows.
std::vector<std::string> study_options(const Arguments& arguments) {
  std::vector<std::string> out;
  for (const char* option : {"no-fold", "check-fold", "ignore-memory", "explain", "stepped"})
    if (arguments.has(option)) out.emplace_back(option);
  return out;
}

/// In a part of a sweep points without an answer are results like others.
int exit_code_of(const Results& results, const StudyRequest& request) {
  using State = PointRows::State;
  const PointRows& rows = results.rows;
  if (results.interrupted && !request.merges) return stop_code();
  if (const std::size_t failed = rows.count(State::failed); failed > 0) {
    std::fprintf(stderr,
                 "stepcast: %zu points failed: --json says which were out of memory; what is an "
                 "internal error, please report\n",
                 failed);
    return exit_internal;
  }
  const bool answered = rows.count(State::answered) > 0 || request.is_part();
  return rows.count(State::refused) > 0 && !answered ? exit_no_feasible_plan : exit_ok;
}

/// Simulated once more, kernel by kernel; nothing where the plan does not fit.
void write_told_step(const TimelineOrder& order, const Results& results, Session& session) {
  if (!results.single || std::holds_alternative<Refused>(*results.single)) return;
  Timeline timeline;
  timeline.asked = order.ranks;
  const Scenario& scenario = scenario_of(*results.single);
  session.timeline(scenario, timeline, no_larger_than(order.limit, order.path));
  write_step(order, std::move(timeline), scenario);
}

/// What can be asked for of one point, or of many, alone.
void check_options(const Study& study, const Arguments& arguments) {
  timeline_order(arguments);
  for (const char* option : {"timeline", "memory-timeline"})
    if (arguments.has(option) && (study.is_sweep || study.base.find("collective") != nullptr))
      throw UsageError("--" + std::string(option) + " shows one step",
                       "give a scenario without [sweep]");
  check_handout(arguments, !study.is_sweep);
  for (const char* option : {"report", "svg"})
    if (arguments.has(option) && study.base.find("collective") != nullptr)
      throw UsageError("--" + std::string(option) + " is of training steps",
                       "--explain says more of a collective");
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

/// False where an interrupt came before any answer: the files of before stay then.
bool answered(const Results& results) {
  if (!results.study.is_sweep) return results.single.has_value();
  return results.rows.count(PointRows::State::missing) < results.rows.size();
}

/// The page of --report and --svg.
bool write_page_of(const Results& results, const Verb& verb, const Arguments& arguments,
                   const TableView& view, Session& session) {
  const HandoutFiles files = handout_files(arguments);
  if (!files.any() || !answered(results)) return true;
  if (results.study.is_sweep)
    return handed_out(files, [&] {
      return sweep_page(results, results_table(results, view), session.catalogue(),
                        origin_of(verb, arguments));
    });
  const Told page = answer_page(*results.single, verb, arguments, session);
  if (!stop_requested()) return handed_out(files, [&] { return page; });
  tell(stderr, "stepcast: interrupted: the page of before stays\n");  // not all that it compares
  return true;
}

/// Writes what is asked for. The answer is printed whatever becomes of it: false after a message.
bool write_files(const Results& results, const Arguments& arguments, const TableView& view,
                 OutputFolder* folder, Session& session) {
  try {
    if (folder != nullptr) folder->finish(results);
    if (folder != nullptr && results.interrupted && stop_requested() && results.study.is_sweep)
      tell(stderr, fmt::format("stepcast: what is finished is in '{}': --resume goes on\n",
                               folder->place()));
    if (answered(results))
      view.write([&](const TableView::WriteText& write) { write_csv(results, view, write); });
    if (arguments.has("timeline")) write_told_step(timeline_order(arguments), results, session);
    if (arguments.has("memory-timeline") && results.single)
      write_memory_timeline(arguments.get("memory-timeline"), scenario_of(*results.single));
    return true;
  } catch (const OutputError& error) {
    tell(stderr, std::string(error.what()) + "\n");
    return false;
  }
}

void print_results(const Results& results, const TableView& view, bool json) {
  const auto print = [](std::string_view text) { tell(stdout, text); };
  if (json) {
    write_json(results, print);
    std::fputs("\n", stdout);
  } else if (view.prints_csv()) {
    write_csv(results, view, print);
  } else {
    print(report_text(results, view));
    tell(stderr, warnings_text(results));
  }
}

/// What became of the points, where their table is not printed: of a part it is that of all parts.
void print_counts(const Results& results, const StudyRequest& request) {
  using State = PointRows::State;
  const PointRows& rows = results.rows;
  const auto count = [&](State state) { return rows.count(state); };
  const std::string hint = request.is_part()
                               ? fmt::format("stepcast sweep merge {} puts the parts together",
                                             shell_word(request.output->folder))
                               : "--top N and --csv FILE show them";
  tell(stdout, fmt::format("{} of {} points: {} answered, {} refused, {} failed; {}\n",
                           rows.size() - count(State::missing), rows.size(), count(State::answered),
                           count(State::refused), count(State::failed), hint));
}

bool wants_table(const Arguments& arguments, const TableView& view) {
  return arguments.has("json") || view.prints_csv() || !view.arrangement().empty();
}

void refuse_missing(Results& results, const StudyRequest& request, const Arguments& arguments) {
  const std::size_t missing = results.rows.count(PointRows::State::missing);
  if (missing == 0) return;
  if (!arguments.has("partial"))
    throw InputError(request.output->folder,
                     fmt::format("{} of {} points are missing", missing, results.rows.size()),
                     "stepcast sweep --resume runs them, --partial merges what is there");
  results.interrupted = true;
}

Results run_request(const StudyRequest& request, Study study, OutputFolder* folder,
                    const Arguments& arguments, Session& session, const Catalogue& catalogue) {
  const unsigned threads = request.threads > 0 ? request.threads : arguments.threads();
  const bool quiet = request.quiet || arguments.has("quiet");
  const auto read = [&](const TomlValue& p) { return read_point(p, request.options, catalogue); };
  std::optional<Progress> progress(std::in_place, num_points(study, request.shard),
                                   Progress::style_for(quiet));
  const auto confidence = std::make_shared<Confidence>(session);
  Results results =
      run_study(std::move(study), {.read = read,
                                   .simulator = simulator_of(session, confidence),
                                   .threads = threads,
                                   .stop = stop_requested(),
                                   .shard = request.shard,
                                   .next = request.next,
                                   .only_known = request.merges,
                                   .folder = folder,
                                   .finished = [&](std::size_t done) { progress->show(done); }});
  progress.reset();
  if (const Order* order = confidence->order()) results.order = *order;
  return results;
}

}  // namespace

StudyRequest request_of(TomlValue document, const Arguments& arguments) {
  StudyRequest out{std::move(document), study_options(arguments)};
  const std::string shard = arguments.get("shard");
  if (!shard.empty()) out.shard = read_shard(shard);
  if (!arguments.has("out")) return out;
  out.output = {arguments.get("out"), arguments.has("resume"), out.shard.name(), out.options};
  return out;
}

int answer_study(StudyRequest request, const Verb& verb, const Arguments& arguments,
                 const Catalogue& catalogue) {
  stop_requested();  // from here on
  Study study = read_study(std::move(request.document));
  check_references(study);
  check_options(study, arguments);
  const TableView view(arguments);
  check_view(view, study);
  std::unique_ptr<OutputFolder> folder;
  if (request.output)
    folder = std::make_unique<OutputFolder>(*request.output, study, catalogue.directory());
  Session session(catalogue);
  Results results =
      run_request(request, std::move(study), folder.get(), arguments, session, catalogue);
  if (request.merges && stop_requested()) return stop_code();  // not all rows have been read
  if (request.merges) refuse_missing(results, request, arguments);
  const bool files = write_files(results, arguments, view, folder.get(), session);
  const bool written = write_page_of(results, verb, arguments, view, session) && files;
  const bool many = request.is_part() || results.rows.size() > most_to_read;
  if (!many || wants_table(arguments, view))
    print_results(results, view, arguments.has("json"));
  else if (!request.quiet)
    print_counts(results, request);
  if (results.single && !arguments.has("json") && !view.prints_csv()) {
    tell(stdout, next_question(*results.single, scenario_words(verb, arguments),
                               scenario_words(verb, arguments, Keys::without_plan)));
  }
  if (!written) return exit_unwritten;
  const bool cut = results.single && handout_files(arguments).any() && stop_requested();
  return cut ? stop_code() : exit_code_of(results, request);
}

namespace {

int run(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  const Verb verb = run_verb();
  return answer_study(request_of(asked_document(verb, arguments, catalogue), arguments), verb,
                      arguments, catalogue);
}

int collective(const Arguments& arguments, const Catalogue& catalogue) {
  TomlValue document = toml_table("command line");
  const Verb verb = collective_verb();
  if (arguments.has("tune")) {
    apply_options(document, verb, arguments, catalogue);
    return tune_collectives(std::move(document), arguments, catalogue);
  }
  if (arguments.has("least-gain")) throw UsageError("--least-gain is for --tune FILE");
  const std::string& kind = arguments.first("which collective?");
  set_path(document, "collective.kind", toml_text(kind, "command line"));
  apply_options(document, verb, arguments, catalogue);
  return answer_study(request_of(std::move(document), arguments), verb, arguments, catalogue);
}

}  // namespace

Command run_command() { return {.verb = run_verb(), .run = run, .schema = study_schema}; }
Command collective_command() {
  return {.verb = collective_verb(), .run = collective, .schema = study_schema};
}

}  // namespace stepcast::sim
