// The command line of verbs whose answer comes of many plans, search and design: the plans that
// they have simulated are kept in --out DIR, shards of them are put together, status. Knows
// neither.
#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/command/shards.hpp"
#include "sim/output/folder.hpp"
#include "sim/output/kept_steps.hpp"
#include "sim/program/shard.hpp"

namespace stepcast::sim {

inline constexpr Option kept_plans_options[] = {
    {"resume", "", "", "go on with the plans that are simulated in --out DIR"},
    {"shard", "I/N", "", "simulate a share of what has to be; merge DIR has the answer"},
    {"status", "", "", "run nothing: how many plans in --out DIR are simulated"},
    print_slurm_option,
    {"partial", "", "", "of merge: from what is there, also where shards are not finished"},
};

/// Of those that `merge DIR` takes.
inline const std::initializer_list<std::string_view> kept_plans_merge_names{
    "partial", "json", "threads", "quiet", "sort", "columns", "csv", "report", "svg"};

struct PlansRequest {
  TomlValue document;
  std::vector<std::string> options{};  // that change the answer, as words: "--top=10"
  std::string merged{};                // the folder whose shards are put together; else ""
};

/// Options of the command line with these names, as a request has them.
std::vector<std::string> option_words(const Arguments& arguments,
                                      std::initializer_list<std::string_view> names);

/// Throws UsageError for options without effect or meaning together.
void check_kept_plans(const Verb& verb, const Arguments& arguments);
/// --status
int show_plans_status(const Verb& verb, const Arguments& arguments);
/// --print-slurm
int print_plans_slurm(const Verb& verb, const std::string& what, const Arguments& arguments);

/// What was begun in the folder that `merge` names, with the options that it was begun with among
/// the arguments.
struct StoredRequest {
  PlansRequest request;
  Arguments arguments;
};
StoredRequest stored_request(const Verb& verb, const Verb& merge,
                             const std::vector<std::string>& words);

/// The plans in --out DIR; without it they are simulated and forgotten.
class KeptPlans {
 public:
  /// `session` is borrowed. Throws InputError where shards that are merged are not finished.
  KeptPlans(const PlansRequest& request, const Verb& verb, const Arguments& arguments,
            Session& session);

  const Shard& shard() const { return shard_; }
  bool has_folder() const { return folder_ || unwritten_; }
  StepReport step(const Scenario& scenario);
  bool knows(const Scenario& scenario) { return steps_ && steps_->knows(scenario); }
  bool look_again() { return steps_ && steps_->look_again(); }

  /// What became of a shard, instead of an answer; `ended`: early. Returns the exit code.
  int tell_shard(bool ended, bool json);
  /// The answer's files, into the folder that there is. Throws OutputError and InputError.
  void write(const NamedTexts& files, bool ended);

 private:
  void say_that_it_goes_on() const;

  Session& session_;
  std::string verb_;
  Shard shard_{};
  std::unique_ptr<OutputFolder> folder_;
  std::optional<KeptSteps> steps_;
  std::optional<OutputError> unwritten_;  // not even begun; the answer is printed all the same
};

/// Of what tell_shard() prints.
nlohmann::ordered_json shard_schema();

}  // namespace stepcast::sim
