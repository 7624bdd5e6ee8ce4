// stepcast run, sweep, collective: a scenario from a file, from options, or from both.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "engine/check.hpp"
#include "sim/command_line.hpp"
#include "sim/commands.hpp"
#include "sim/interrupt.hpp"
#include "sim/metrics.hpp"
#include "sim/progress.hpp"
#include "sim/report_json.hpp"
#include "sim/report_text.hpp"
#include "sim/results_file.hpp"
#include "sim/scenario_file.hpp"
#include "sim/scenario_keys.hpp"
#include "sim/simulate.hpp"
#include "sim/toml_table.hpp"

namespace stepcast::sim {
namespace {

constexpr Option gpu_option{"gpu", "NAME", "", "GPU of stepcast show gpus, in its usual node: h100, a100"};
constexpr Option framework_option{"framework", "NAME[@VERSION]", "",
                                  "framework of the catalogue, its newest version without one"};
constexpr Option nccl_option{"nccl-env", "NAME=VALUE", "",
                             "NCCL's own variable, NCCL_ALGO=Ring; may be repeated"};
constexpr Option stepped_option{"stepped", "", "",
                                "also chunk by chunk over the links, and why that differs"};
constexpr Option explain_option{"explain", "", "",
                                "also channels, terms of the time, busiest link, NCCL's estimates"};
constexpr Option step_options[] = {
    {"timeline", "FILE", "", "also write the step as Chrome trace events (Perfetto shows them)"},
    {"no-fold", "", "", "simulate every rank"},
    {"check-fold", "", "", "simulate folded and unfolded, fail on a difference"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};
constexpr Option common_options[] = {
    {"set", "KEY=VALUE", "", "set any key (stepcast show keys); more may follow, or be repeated"},
    {"json", "", "", "print JSON"},
    {"out", "DIR", "", "also write resolved scenario, JSON and HDF5 into DIR"},
    {"threads", "N", "", "points of a sweep to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

/// Options that set keys of a scenario, and the others.
const std::vector<Option>& run_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"model", "cluster", "plan", "batch", "run"}))
      out.push_back(option);
    out.insert(out.end(), {framework_option, nccl_option});
    out.insert(out.end(), std::begin(common_options), std::end(common_options));
    out.insert(out.end(), std::begin(step_options), std::end(step_options));
    return out;
  }();
  return options;
}

const std::vector<Option>& collective_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"cluster", "collective"})) out.push_back(option);
    out.insert(out.end(), {nccl_option, stepped_option, explain_option});
    out.insert(out.end(), std::begin(common_options), std::end(common_options));
    return out;
  }();
  return options;
}

Verb run_verb() {
  return {"run",
          "[SCENARIO.toml]",
          1,
          "Forecasts one training step, or every point of a sweep.",
          run_options(),
          "stepcast run --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2"};
}
Verb sweep_verb() {
  return {"sweep",
          "SCENARIO.toml",
          1,
          "Runs every point of a scenario's [sweep].",
          run_options(),
          "stepcast sweep scenarios/weak_scaling.toml --json"};
}
Verb collective_verb() {
  return {"collective",
          "KIND",
          1,
          "Times one collective over all GPUs: all_reduce, all_gather, "
          "reduce_scatter, broadcast, reduce, all_to_all, send_receive.",
          collective_options(),
          "stepcast collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB"};
}

/// --framework NAME[@VERSION]. Without a version that of the file does not hold: it is another's.
void choose_framework(TomlValue& document, const std::string& choice) {
  constexpr const char* where = "--framework";
  const std::size_t at = choice.find('@');
  override_key(document, "software.framework", toml_text(choice.substr(0, at), where));
  if (at != std::string::npos)
    override_key(document, "software.version", toml_text(choice.substr(at + 1), where));
  else
    document.find("software")->erase("version");
}

void apply_options(TomlValue& document, const Verb& verb, const Arguments& arguments,
                   const Catalogue& catalogue) {
  if (arguments.has("gpu")) {
    if (arguments.has("node")) throw UsageError("both --gpu and --node", "give one of them");
    const NodeOfGpu found = catalogue.node_of_gpu(arguments.get("gpu"), "--gpu");
    if (found.put_in) std::fprintf(stderr, "stepcast: %s\n", found.note().c_str());
    override_key(document, "cluster.node", found.value("--gpu"));
  }
  if (arguments.has("framework")) choose_framework(document, arguments.get("framework"));
  for (const auto& [key, value] : settings_of(verb, arguments)) {
    check_known(key, value.where);
    override_key(document, key, value);
  }
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

unsigned thread_count(const Arguments& arguments) {
  const std::string text = arguments.get("threads");
  if (text.empty()) return std::max(1U, std::thread::hardware_concurrency());
  if (text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos || text == "0")
    throw UsageError("'--threads " + text + "' is no number of threads");
  return static_cast<unsigned>(std::stoul(text));
}

/// All points are read and checked before the first is simulated.
std::vector<Scenario> read_points(const Study& study, const Arguments& arguments,
                                  const Catalogue& catalogue) {
  std::vector<Scenario> scenarios;
  for (const SweepPoint& point : study.points) {
    Scenario scenario = read_scenario(study.document_of(point), catalogue);
    scenario.run.fold = !arguments.has("no-fold");
    scenario.run.check_fold = arguments.has("check-fold");
    scenario.run.ignore_memory = arguments.has("ignore-memory");
    scenario.run.explain = arguments.has("explain");
    scenario.run.stepped = arguments.has("stepped");
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

int exit_code_of(const Results& results) {
  if (results.interrupted) return exit_interrupted;
  const bool all_refused =
      std::all_of(results.answers.begin(), results.answers.end(),
                  [](const auto& answer) { return std::holds_alternative<Refused>(*answer); });
  return all_refused ? exit_no_feasible_plan : exit_ok;
}

/// Simulated once more, kernel by kernel.
void write_step(const std::string& path, const std::vector<Scenario>& scenarios) {
  if (scenarios.size() != 1 || scenarios[0].collective)
    throw UsageError("--timeline shows one step", "give a scenario without [sweep]");
  Timeline timeline;
  simulate_timeline(scenarios[0], timeline);
  write_timelines(path, {&timeline, 1});
}

int answer_document(TomlValue document, const Arguments& arguments, const Catalogue& catalogue) {
  Results results{read_study(std::move(document)), {}, false};
  check_references(results.study);
  const unsigned threads = thread_count(arguments);
  const std::vector<Scenario> scenarios = read_points(results.study, arguments, catalogue);
  if (arguments.has("out")) prepare_output(arguments.get("out"));
  {
    Progress progress(scenarios.size(), Progress::style_for(arguments.has("quiet")));
    Batched batch = answer_all(scenarios, {simulate, simulate_collective}, threads,
                               stop_requested(), [&](std::size_t done) { progress.show(done); });
    results.answers = std::move(batch.answers);
    results.interrupted = batch.interrupted;
  }
  if (arguments.has("out")) write_output(arguments.get("out"), results);
  if (arguments.has("timeline")) write_step(arguments.get("timeline"), scenarios);
  const std::string text = arguments.has("json") ? to_json(results) + "\n" : report_text(results);
  std::fputs(text.c_str(), stdout);
  return exit_code_of(results);
}

int run_with(const Verb& verb, const Words& words, bool needs_sweep) {
  const Arguments arguments = parse_arguments(verb, words);
  if (arguments.has("help")) {
    std::fputs(help_text(verb).c_str(), stdout);
    return exit_ok;
  }
  const bool has_file = !arguments.positional().empty();
  if (!has_file && (needs_sweep || words.empty()))
    throw UsageError("which scenario?", verb.example);
  const Catalogue catalogue = Catalogue::standard();
  TomlValue document =
      has_file ? read_toml_file(arguments.positional()[0]) : toml_table("command line");
  apply_options(document, verb, arguments, catalogue);
  if (needs_sweep && document.find("sweep") == nullptr)
    throw InputError(document.where, "has no [sweep]", "stepcast run answers a single scenario");
  return answer_document(std::move(document), arguments, catalogue);
}

}  // namespace

int command_run(const Words& words) { return run_with(run_verb(), words, false); }

int command_sweep(const Words& words) { return run_with(sweep_verb(), words, true); }

int command_collective(const Words& words) {
  const Verb verb = collective_verb();
  const Arguments arguments = parse_arguments(verb, words);
  if (arguments.has("help")) {
    std::fputs(help_text(verb).c_str(), stdout);
    return exit_ok;
  }
  if (arguments.positional().empty()) throw UsageError("which collective?", verb.example);
  const Catalogue catalogue = Catalogue::standard();
  TomlValue document = toml_table("command line");
  set_path(document, "collective.kind", toml_text(arguments.positional()[0], "command line"));
  apply_options(document, verb, arguments, catalogue);
  return answer_document(std::move(document), arguments, catalogue);
}

}  // namespace stepcast::sim
