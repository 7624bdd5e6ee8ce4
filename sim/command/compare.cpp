// stepcast compare: scenarios, kept results and measured traces side by side; what-ifs of one
// scenario; one scenario on several machines.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/compare/changes.hpp"
#include "sim/compare/comparison.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/parallel.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

constexpr Option compare_options[] = {
    {"what-if", "KEY=VALUE", "",
     "a changed key: \"node.nic = 800 Gbit/s\", or a factor: \"gpu.tensor_peak x2\"; may be "
     "repeated"},
    {"without", "WHAT[,WHAT]", "",
     "what the step would be without interference, latency, bandwidth, jitter, sharing; or all"},
    {"orders", "N", "", "random orders that share out more than six changes (default: 50)"},
    {"set", "KEY=VALUE", "", "set any key (stepcast show keys); more may follow, or be repeated"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
    {"json", "", "", "print JSON"},
    {"threads", "N", "", "scenarios to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
};

/// Of these an option may name several, each a side of its own.
constexpr const char* listed_options[] = {"gpu", "model", "node", "fabric", "framework"};

const std::vector<Option>& verb_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"model", "cluster", "plan", "batch", "run"}))
      if (option.name != std::string_view("without")) out.push_back(option);
    out.insert(out.end(), {framework_option, nccl_env_option});
    out.insert(out.end(), std::begin(compare_options), std::end(compare_options));
    return out;
  }();
  return options;
}

Verb compare_verb() {
  return {
      "stepcast compare",
      "[A B ...]",
      99,
      "Side by side: scenarios (TOML), results (what --json or --out wrote), measured traces "
      "(what validate trace --json wrote), in any mix; what-ifs of one scenario; or one scenario "
      "on several machines (--gpu a100,h100).",
      verb_options(),
      "stepcast compare --model llama2-7b --nodes 16 --local-batch 2 --gpu a100,h100,b200"};
}

/// A side before it is answered.
struct Asked {
  std::string name;
  std::optional<TomlValue> document{};  // none: a result, in `known`
  std::optional<Side> known{};
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// The option that names several, if one does.
std::optional<std::string> listed_option(const Arguments& arguments) {
  std::optional<std::string> out;
  for (const char* option : listed_options) {
    if (arguments.get(option).find(',') == std::string::npos) continue;
    if (out)
      throw UsageError(fmt::format("both --{} and --{} name several", *out, option),
                       "one of them can be compared");
    out = option;
  }
  return out;
}

/// The same words with one value of a listed option.
Arguments with_value(const Verb& verb, const Arguments& arguments, const std::string& option,
                     const std::string& value) {
  std::vector<std::string> words = arguments.words();
  const std::string list = arguments.get(option), name = "--" + option;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name + "=" + list) words[i] = name + "=" + value;
    if (i > 0 && words[i - 1] == name && words[i] == list) words[i] = value;
  }
  return parse_arguments(verb, words);
}

void check_step_scenario(const TomlValue& document) {
  if (document.find("collective") != nullptr)
    throw InputError(document.where, "asks for a collective", "training steps are compared");
}

/// A document as one side, or as many as its [sweep] has points.
void add_document(std::vector<Asked>& out, TomlValue document, const std::string& name) {
  constexpr std::size_t most_points = 100;
  check_step_scenario(document);
  const std::string where = document.where;
  const Study study = read_study(std::move(document));
  if (!study.is_sweep) return out.push_back({name, study.base});
  if (study.num_points() > most_points)
    throw InputError(where, fmt::format("its [sweep] has {} points", study.num_points()),
                     fmt::format("{} can be compared; stepcast sweep answers more", most_points));
  for (std::size_t i = 0; i < study.num_points(); ++i) {
    std::string point;
    for (const Setting& setting : study.point(i))
      point += (point.empty() ? "" : ", ") + setting.path.substr(setting.path.rfind('.') + 1) +
               " " +
               (setting.value.text() ? *setting.value.text() : write_toml_value(setting.value));
    out.push_back({point, study.document_of(study.point(i))});
  }
}

/// A folder that --out wrote: its result, and the scenario that it was.
Asked folder_side(const std::string& folder) {
  const std::filesystem::path place(folder);
  return {folder, std::nullopt, read_side((place / "results.json").string())};
}

void add_document_of(std::vector<Asked>& out, const Verb& verb, const Arguments& arguments,
                     const Catalogue& catalogue, const std::string& file, const std::string& name) {
  TomlValue document = file.empty() ? toml_table("command line") : read_toml_file(file);
  apply_options(document, verb, arguments, catalogue);
  add_document(out, std::move(document), name);
}

void add_scenario(std::vector<Asked>& out, const Arguments& arguments, const Catalogue& catalogue,
                  const std::string& file) {
  const Verb verb = compare_verb();
  const auto several = listed_option(arguments);
  if (!several) return add_document_of(out, verb, arguments, catalogue, file, file);
  for (const std::string& value : split(arguments.get(*several)))
    add_document_of(out, verb, with_value(verb, arguments, *several, value), catalogue, file,
                    file.empty() ? value : file + " " + value);
}

bool sets_keys(const Arguments& arguments) {
  return arguments.has("gpu") || arguments.has("framework") ||
         !settings_of(compare_verb(), arguments).empty();
}

std::vector<Asked> asked_of(const Arguments& arguments, const Catalogue& catalogue) {
  std::vector<Asked> out;
  bool scenarios = false;
  for (const std::string& file : arguments.positional()) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
      out.push_back(folder_side(file));
    } else if (is_json_file(file)) {
      out.push_back({file, std::nullopt, read_side(file)});
    } else {
      add_scenario(out, arguments, catalogue, file);
      scenarios = true;
    }
  }
  if (arguments.positional().empty() && sets_keys(arguments)) {
    add_scenario(out, arguments, catalogue, "");
    scenarios = true;
  }
  if (!scenarios && sets_keys(arguments))
    throw UsageError("options change scenarios, and a result is what it is",
                     "give a scenario (TOML) beside the results");
  return out;
}

/// Runs scenarios on several threads.
class Runner {
 public:
  Runner(Session& session, const Arguments& arguments)
      : session_(session),
        confidence_(std::make_shared<Confidence>(session)),
        simulator_(simulator_of(session, confidence_)),
        threads_(arguments.threads()),
        style_(Progress::style_for(arguments.has("quiet"))),
        ignore_memory_(arguments.has("ignore-memory")) {}

  Scenario read(const TomlValue& document) const {
    Scenario out = read_scenario(document, session_.catalogue());
    out.run.ignore_memory = ignore_memory_;
    return out;
  }

  /// All sides; a scenario that cannot be is one with its reason. A mistake that all of them share
  /// is the user's, and thrown.
  std::vector<Side> sides(std::vector<Asked> asked) {
    std::vector<std::optional<Side>> found(asked.size());
    std::vector<std::optional<InputError>> mistakes(asked.size());
    each(asked.size(), [&](std::size_t i) {
      if (!asked[i].document) {
        found[i].emplace(*std::move(asked[i].known));
        return;
      }
      try {
        found[i].emplace(side_of(answer(read(*asked[i].document), simulator_), asked[i].name));
      } catch (const InputError& error) {
        found[i].emplace(refused_side(error.what(), asked[i].name));
        mistakes[i] = error;
      }
    });
    if (std::ranges::all_of(mistakes, [](const auto& mistake) { return mistake.has_value(); }))
      throw InputError(*mistakes.front());
    std::vector<Side> out;
    for (std::size_t i = 0; i < found.size(); ++i) {
      out.push_back(*std::move(found[i]));
      out.back().label = label_of(i);
    }
    return out;
  }

  /// Steps of these documents, of `ratio`-th the tokens of the first one where tokens change.
  std::vector<Outcome> outcomes(const std::vector<TomlValue>& documents) {
    std::vector<Outcome> out(documents.size());
    std::vector<double> tokens(documents.size());
    each(documents.size(), [&](std::size_t i) {
      try {
        const Scenario scenario = read(documents[i]);
        const StepReport report = session_.step(scenario);
        tokens[i] = static_cast<double>(scenario.global_batch * scenario.batch.sequence);
        out[i].step_ps = report.step_time.count();
      } catch (const InputError& error) {
        out[i].reason = error.problem();
      } catch (const NoFeasiblePlan& error) {
        out[i].reason = error.what();
      }
    });
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i].step_ps && tokens[i] != tokens[0] && tokens[0] > 0)
        out[i].step_ps = std::llround(static_cast<double>(*out[i].step_ps) * tokens[0] / tokens[i]);
    return out;
  }

  std::optional<Order> order() const {
    const Order* order = confidence_->order();
    return order != nullptr ? std::optional(*order) : std::nullopt;
  }

 private:
  void each(std::size_t count, const std::function<void(std::size_t)>& work) {
    Progress progress(count, style_);
    std::mutex showing;
    std::size_t done = 0;
    const bool all = for_each_index(count, threads_, stop_requested(), [&](std::size_t i) {
      work(i);
      const std::lock_guard lock(showing);
      progress.show(++done);
    });
    if (!all) throw Failure(static_cast<ExitCode>(stop_code()), "interrupted");
  }

  Session& session_;
  std::shared_ptr<Confidence> confidence_;
  Simulator simulator_;
  unsigned threads_;
  Progress::Style style_;
  bool ignore_memory_;
};

OrderDraw draw_of(const Arguments& arguments) {
  return {static_cast<std::size_t>(arguments.count("orders", 50)), arguments.seed()};
}

std::vector<std::string> lines_of(const std::vector<Change>& changes) {
  std::vector<std::string> out;
  const auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
  for (const Change& change : changes)
    out.push_back(fmt::format("{}  {} -> {}", change.key, shown(change.from), shown(change.to)));
  return out;
}

/// Between two scenarios that are known.
void attribute_changes(Way& way, const Comparison& c, Runner& runner, const OrderDraw& draw) {
  const DocumentPair documents =
      documents_of(*c.sides[way.from].scenario, *c.sides[way.to].scenario);
  const std::vector<Change> changes = changes_between(documents);
  if (changes.empty()) return;
  way.keys = lines_of(changes);
  if (!c.sides[way.to].answered() || !c.sides[way.from].answered()) return;
  if (changes.size() > most_changes) {
    way.why_not = fmt::format("{} keys differ, more than {}", changes.size(), most_changes);
    return;
  }
  std::vector<NamedChange> named;
  for (const Change& change : changes)
    named.push_back({change.key, change.from, change.to,
                     [change](TomlValue& document) { make(change, document); }});
  way.attribution = attribute(
      documents.from, named,
      [&](const std::vector<TomlValue>& all) { return runner.outcomes(all); }, draw);
  if (!way.attribution) way.why_not = "the resolved scenarios cannot be run again";
}

void add_ways(Comparison& c, Runner& runner, const OrderDraw& draw) {
  for (std::size_t i = 0; i < c.sides.size(); ++i) {
    if (i == c.base() || !c.sides[i].scenario || !c.sides[c.base()].scenario) continue;
    c.ways.push_back({c.base(), i});
    attribute_changes(c.ways.back(), c, runner, draw);
  }
}

Comparison compare_sides(std::vector<Asked> asked, Runner& runner, const Arguments& arguments) {
  if (asked.size() < 2)
    throw UsageError("what is there to compare?",
                     "give two files, --what-if, --without, or --gpu a100,h100");
  Comparison out{.sides = runner.sides(std::move(asked))};
  out.order = runner.order();
  add_ways(out, runner, draw_of(arguments));
  return out;
}

int compare(const Arguments& arguments, const Catalogue& catalogue) {
  Session session(catalogue);
  Runner runner(session, arguments);
  std::vector<Asked> asked = asked_of(arguments, catalogue);
  const Comparison out = compare_sides(std::move(asked), runner, arguments);
  std::fputs(
      arguments.has("json") ? (comparison_json(out) + "\n").c_str() : comparison_text(out).c_str(),
      stdout);
  return std::ranges::any_of(out.sides, &Side::answered) ? exit_ok : exit_no_feasible_plan;
}

}  // namespace

Command compare_command() { return {compare_verb(), compare}; }

}  // namespace stepcast::sim
