// What the verbs share that are run in parts, of which the folder of --out is made whole: their
// options, a script for Slurm, putting together. Knows no verb.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/command_line.hpp"

namespace stepcast::sim {

inline constexpr Option print_slurm_option{
    "print-slurm", "N", "", "run nothing: print a script for sbatch that runs N shards"};

/// Those of `options` with these names, in their own order.
std::vector<Option> options_named(std::span<const Option> options,
                                  std::initializer_list<std::string_view> names);

/// The words behind the first, where that is "merge": `stepcast VERB merge DIR ...`.
std::optional<std::vector<std::string>> merge_words(const Arguments& arguments);

/// Throws UsageError for an option of the verb that `with`, "status", would leave without effect.
void refuse_idle(const Verb& verb, const Arguments& arguments, const std::string& with,
                 const std::function<bool(const Option&)>& is_idle);

/// Prints a script that runs so many shards of `what`, "80 points". Throws UsageError without a
/// folder for them.
int print_slurm(const Verb& verb, const std::string& what, const Arguments& arguments);

}  // namespace stepcast::sim
