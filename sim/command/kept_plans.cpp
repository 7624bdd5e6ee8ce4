#include "sim/command/kept_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/command/next_question.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/table_view.hpp"

namespace stepcast::sim {
namespace {

/// What is about an answer, which a shard has none of; --limit counts the plans of one search.
bool is_of_answer(const Option& option) {
  constexpr std::string_view others[] = {"report", "svg", "limit"};
  const bool of_table = std::ranges::any_of(table_options, [&](const Option& table) {
    return std::string_view(table.name) == option.name &&
           std::string_view(table.help) == option.help;  // --top of a search is its own
  });
  return of_table || std::ranges::count(others, option.name) > 0;
}

}  // namespace

std::vector<std::string> option_words(const Arguments& arguments,
                                      std::initializer_list<std::string_view> names) {
  std::vector<std::string> out;
  for (const std::string_view name : names) {
    const std::string option(name);
    if (!arguments.has(option)) continue;
    const std::string value = arguments.get(option);
    out.push_back("--" + option + (value.empty() ? "" : "=" + value));
  }
  return out;
}

void check_kept_plans(const Verb& verb, const Arguments& arguments) {
  // "merge DIR" are two words; one run may have several files where a verb takes more than that.
  const std::size_t most = verb.max_positional > 2 ? verb.max_positional : 1;
  if (arguments.positional().size() > most)
    throw UsageError("'" + arguments.positional()[most] + "' is one argument too many",
                     fmt::format("see {} --help", verb.name));
  if (arguments.has("partial"))
    throw UsageError(fmt::format("--partial is for {} merge", verb.name));
  for (const char* option : {"resume", "shard"})
    if (arguments.has(option) && !arguments.has("out"))
      throw UsageError("--" + std::string(option) + " is for the plans in --out DIR");
  if (arguments.has("shard")) refuse_idle(verb, arguments, "shard", is_of_answer);
}

int show_plans_status(const Verb& verb, const Arguments& arguments) {
  if (!arguments.has("out")) throw UsageError("--status of which folder?", "give its --out DIR");
  if (!arguments.positional().empty())
    throw UsageError("--status is of --out DIR alone", "leave out " + arguments.positional()[0]);
  refuse_idle(verb, arguments, "status", [](const Option& option) {
    constexpr std::string_view counts[] = {"status", "out", "json"};
    return std::ranges::count(counts, option.name) == 0;
  });
  const std::string folder = arguments.get("out");
  stored_study(folder, verb.word());
  const PlansStatus status = plans_status_of(folder);
  tell(stdout, arguments.has("json") ? status_json(status) : status_text(status));
  return exit_ok;
}

int print_plans_slurm(const Verb& verb, const std::string& what, const Arguments& arguments) {
  refuse_idle(verb, arguments, "print-slurm", [](const Option& option) {
    constexpr std::string_view others[] = {"json", "shard", "status"};
    return is_of_answer(option) || std::ranges::count(others, option.name) > 0;
  });
  return print_slurm(verb, what, arguments);
}

StoredRequest stored_request(const Verb& verb, const Verb& merge,
                             const std::vector<std::string>& words) {
  const std::string folder = parse_arguments(merge, words).first("which folder?");
  StoredStudy stored = stored_study(folder, verb.word());
  std::vector<std::string> all = stored.mark.options;
  all.insert(all.end(), words.begin(), words.end());
  return {{std::move(stored.document), std::move(stored.mark.options), folder},
          parse_arguments(verb, all)};
}

KeptPlans::KeptPlans(const PlansRequest& request, const Verb& verb, const Arguments& arguments,
                     Session& session)
    : session_(session), verb_(verb.name) {
  const bool merges = !request.merged.empty();
  if (arguments.has("shard")) shard_ = read_shard(arguments.get("shard"));
  if (arguments.has("partial")) shard_ = no_share;
  if (!merges && !arguments.has("out")) return;
  const std::string folder = merges ? request.merged : arguments.get("out");
  try {
    folder_ =
        std::make_unique<OutputFolder>(OutputRequest{folder, merges || arguments.has("resume"),
                                                     shard_.name(), request.options, verb.word()},
                                       request.document, session.catalogue().directory());
  } catch (const OutputError& error) {
    if (shard_.is_part()) throw;
    unwritten_ = error;
    return;
  }
  if (merges && !arguments.has("partial"))
    if (const auto missing = folder_->unfinished(); !missing.empty())
      throw InputError(folder, "not finished: " + words_of(missing),
                       verb_ + " --resume goes on, --partial takes what is there");
  steps_.emplace(*folder_, session);
}

StepReport KeptPlans::step(const Scenario& scenario) {
  return steps_ ? steps_->step(scenario) : session_.step(scenario);
}

void KeptPlans::say_that_it_goes_on() const {
  tell(stderr,
       fmt::format("stepcast: what is simulated is in '{}': --resume goes on\n", folder_->place()));
}

namespace {

struct ToldShard {
  std::string shard;
  bool finished;
  std::size_t simulated, known;
};

const Form<ToldShard>& shard_form() {
  using S = const ToldShard&;
  static const Form<ToldShard> form =
      Form<ToldShard>()
          .has("shard", "\"2/8\"", [](S s) { return s.shard; })
          .has("finished", "", [](S s) { return s.finished; })
          .has("simulated", "Plans, by this call.", [](S s) { return s.simulated; })
          .has("known", "Plans, from before.", [](S s) { return s.known; });
  return form;
}

}  // namespace

nlohmann::ordered_json shard_schema() {
  return document_schema("shard", "What a shard of stepcast search or design prints.",
                         shard_form().schema_of());
}

int KeptPlans::tell_shard(bool ended, bool json) {
  const auto print = [&](bool finished) {
    const std::string name = fmt::format("{}/{}", shard_.index, shard_.of);
    if (json) {
      const ToldShard told{name, finished, steps_->simulated(), steps_->recalled()};
      return tell(stdout, json_text(stamped("shard", shard_form().json(told)), 2) + "\n");
    }
    tell(stdout, fmt::format("shard {} {}: {} plans simulated, {} known before; {} merge {} puts "
                             "the shards together\n",
                             name, finished ? "finished" : "is not finished", steps_->simulated(),
                             steps_->recalled(), verb_, shell_word(folder_->place())));
  };
  try {
    if (!ended) folder_->note_finished();
  } catch (const OutputError&) {
    print(false);
    throw;
  }
  print(!ended);
  if (ended) say_that_it_goes_on();
  return stop_requested() ? stop_code() : exit_ok;
}

void KeptPlans::write(const NamedTexts& files, bool ended) {
  if (unwritten_) throw OutputError(*unwritten_);
  folder_->write_answer(files);
  if (ended || shard_ == no_share)
    say_that_it_goes_on();
  else
    folder_->note_finished();
}

}  // namespace stepcast::sim
