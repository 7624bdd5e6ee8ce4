// stepcast search: the fastest plans of a space, proven.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "sim/command/asked_search.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/command/kept_plans.hpp"
#include "sim/command/scenario_input.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/tell_launch.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/files/colour.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/launch/launch.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/program/table_view.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/search.hpp"

namespace stepcast::sim {
namespace {

constexpr Option search_own_options[] = {
    {"objective", "step|tokens|dollars-per-token|joules-per-token", "", "what is to be best"},
    {"space", "FILE", "", "TOML with [space]: values for each knob, \"plan.tensor\" = [1, 2, 4]"},
    {"fix", "KEY=VALUE", "", "a knob stays: plan.tensor=4, or [2,4]; may be repeated"},
    {"allow-tp-across-nodes", "", "", "also tensor degrees above the GPUs of a node"},
    {"top", "N", "", "plans whose order is proven, and shown (default: 10)"},
    {"limit", "N", "", "simulate so many plans at most, and as many risky ones"},
    {"time", "SPAN", "", "end after that time, 60s, with the gap that is left"},
    {"all", "", "", "simulate every plan that fits"},
    {"json", "", "", "print JSON"},
    job_option,
    job_time_option,
    job_partition_option,
    job_account_option,
    {"out", "DIR", "",
     "also write the answer, its picture and the best plan into DIR, and keep plans"},
    report_option,
    svg_option,
    {"threads", "N", "", "plans to simulate at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

const std::vector<Option>& search_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out = with_scenario_options(step_tables, search_own_options);
    out.insert(out.end(), std::begin(kept_plans_options), std::end(kept_plans_options));
    for (const Option& option : table_options)  // --top is the search's own
      if (std::string_view(option.name) != "top") out.push_back(option);
    return out;
  }();
  return options;
}

Verb search_verb() {
  return {"stepcast search",
          "[SCENARIO.toml | FILE ...], or merge DIR",
          4,
          "Finds the fastest plans of a model on a machine, and proves that no other is faster.",
          search_options(),
          "stepcast search --model llama2-70b --gpu h100 --nodes 64 --global-batch 1024",
          "Every knob of the plan is free but those of --fix, [space] and the options that set a\n"
          "plan's key; the scenario's own plan is shown beside the best. --out DIR keeps every\n"
          "plan that is simulated: --resume goes on, shards fill one folder, merge DIR gives the\n"
          "answer of all."};
}

Verb search_merge_verb() {
  static const std::vector<Option> options =
      options_named(search_options(), kept_plans_merge_names);
  return {"stepcast search merge",
          "DIR",
          1,
          "Gives the answer of a search whose shards are in DIR, as one whole search does.",
          options,
          "stepcast search merge DIR --csv plans.csv"};
}

NamedTexts answer_files(const SearchAnswer& answer, const std::string& text, const Launch& launch) {
  NamedTexts files{{"search.json", search_json(answer) + "\n"}, {"search.txt", text}};
  if (!answer.result.found.empty()) {
    files.emplace_back("plans.svg", search_picture(answer));
    const StepReport& best = answer.result.found.front().report;
    files.emplace_back("best.toml", write_toml(resolved_document(best.scenario)));
    for (const LaunchFile& file : launch.files) files.emplace_back(file.name, file.text);
  }
  return files;
}

Launch launch_of_first(const Scenario& first, const Arguments& arguments,
                       const Catalogue& catalogue) {
  Launch out = launch_in_kind(first, arguments, catalogue);
  if (has_command(out) || !arguments.has("job"))
    add_job(out, first, arguments, catalogue);
  else if (!out.files.empty())
    out.notes.emplace_back("no --job: your own script starts your own configuration.");
  return out;
}

/// The first plan's launch: where its files are, or how to get them, or why there are none.
std::string launch_text(const Launch& launch, bool written) {
  std::string out;
  const auto line = [&](const std::string& text) {
    out += fmt::format("{:<11}{}\n", out.empty() ? "\nlaunch" : "", text);
  };
  for (const LaunchFile& file : launch.files)
    line(written ? file.name + ": " + file.use
                 : file.use + "  (--out DIR writes " + file.name + ")");
  if (!launch.why_not.empty()) line("not written: " + launch.why_not);
  for (const std::string& note : launch.notes) line("note: " + note);
  return out;
}

const std::initializer_list<std::string_view> search_answer_options{
    "objective", "allow-tp-across-nodes", "top", "limit", "all"};

/// Finds them with a line of progress.
void find_plans_telling(AskedSearch& asked, SearchMachine& machine, bool quiet) {
  ProgressLine line("stepcast: ", ProgressLine::style_for(quiet));
  std::string best;
  const auto show = [&](const std::string& text) {
    const auto now = ProgressLine::Clock::now();
    if (line.due(now)) line.show(text + best, now);
  };
  machine.progress = [&](const char* what, std::size_t done, std::size_t) {
    show(fmt::format("{} {}", done, what));
  };
  machine.better = [&](const Found& found) {
    best = fmt::format(", best so far {}: {}", to_text(found.report.step_time),
                       plan_words(asked.answer.space, found.knobs));
  };
  asked.answer.options.look_first = true;
  find_plans(asked, machine, stop_requested());
  machine.progress = {};
  machine.better = {};
}

int answer_search(const PlansRequest& request, const Arguments& arguments, const Origin& origin,
                  const Catalogue& catalogue) {
  const TableView view(arguments, true);
  const std::atomic<bool>& stop = stop_requested();
  Session session(catalogue);
  AskedSearch asked = open_search(request.document, arguments, catalogue);
  SearchAnswer& answer = asked.answer;
  const auto own = own_plan(asked, catalogue, [](const InputError& error) {
    tell(stderr, fmt::format("stepcast: your plan cannot be run: {}\n", error.what()));
  });
  KeptPlans kept(request, search_verb(), arguments, session);
  answer.options.share = kept.shard();
  SearchMachine machine = machine_of(answer, session);
  machine.step = [&](const Scenario& s) { return kept.step(s); };
  machine.knows = [&](const Scenario& s) { return kept.knows(s); };
  machine.look_again = [&] { return kept.look_again(); };
  find_plans_telling(asked, machine, arguments.has("quiet"));
  const SearchResult& result = answer.result;
  if (kept.shard().is_part()) return kept.tell_shard(result.ended, arguments.has("json"));
  complete_search(answer, own, machine, session, std::make_shared<Confidence>(session));
  const Launch launch = result.found.empty() ? Launch{}
                                             : launch_of_first(result.found.front().report.scenario,
                                                               arguments, catalogue);
  const TextTable plans = result.found.empty() ? TextTable{} : view.arranged(plans_table(answer));
  const std::string table = result.found.empty() ? "" : view.text(plans);
  const std::string text = search_text(answer, table) + launch_text(launch, kept.has_folder());
  if (arguments.has("json"))
    tell(stdout, search_json(answer) + "\n");
  else
    tell_best(stdout, view.prints_csv() ? table : text, " 1 ");
  if (kept.has_folder()) kept.write(answer_files(answer, text, launch), result.ended);
  if (!result.found.empty()) view.write(plans);
  const HandoutFiles files = handout_files(arguments);
  const bool written =
      !files.any() || handed_out(files, [&] { return search_page(answer, session, origin, stop); });
  if (stop) return stop_code();
  if (!written) return exit_unwritten;
  return result.found.empty() && result.proven() ? exit_no_feasible_plan : exit_ok;
}

int search(const Arguments& arguments, const Catalogue& catalogue) {
  stop_requested();  // before anything is read
  const Verb own = search_verb();
  if (const auto words = merge_words(arguments)) {
    const Verb merge = search_merge_verb();
    const StoredRequest stored = stored_request(own, merge, *words);
    const Origin origin = origin_of(merge, parse_arguments(merge, *words));
    return answer_search(stored.request, stored.arguments, origin, catalogue);
  }
  check_kept_plans(own, arguments);
  asked_job(arguments);
  if (arguments.has("status")) return show_plans_status(own, arguments);
  const PlansRequest request{asked_search(own, arguments, catalogue),
                             option_words(arguments, search_answer_options)};
  if (!arguments.has("print-slurm"))
    return answer_search(request, arguments, origin_of(own, arguments), catalogue);
  open_search(request.document, arguments, catalogue);  // before it is in a queue: mistakes
  return print_plans_slurm(own, "a search", arguments);
}

}  // namespace

Command search_command() { return {.verb = search_verb(), .run = search, .schema = search_schema}; }

}  // namespace stepcast::sim
