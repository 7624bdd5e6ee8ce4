// The options of a command line that make or change a scenario, for every verb that takes one.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

inline constexpr Option gpu_option{"gpu", "NAME", "",
                                   "GPU of stepcast show gpus, in its usual node: h100, a100"};
inline constexpr Option framework_option{
    "framework", "NAME[@VERSION]", "",
    "framework of the catalogue, its newest version without one"};
inline constexpr Option nccl_env_option{"nccl-env", "NAME=VALUE", "",
                                        "NCCL's own variable, NCCL_ALGO=Ring; may be repeated"};

inline constexpr Option set_option{
    "set", "KEY=VALUE", "", "set any key (stepcast show keys); more may follow, or be repeated"};

/// The tables of a training step whose keys have options.
inline const std::initializer_list<std::string_view> step_tables{
    "model", "cluster", "plan", "batch", "precision", "run", "run_goal", "cost", "site", "power"};

/// --gpu, the options that set keys of these tables, --framework, --nccl-env, --set,
/// --scenario-out; then `own`.
std::vector<Option> with_scenario_options(std::initializer_list<std::string_view> tables,
                                          std::span<const Option> own);

/// The scenario of a command line: its file, ours or a launch file of others, or nothing but what
/// the options of `verb` say, which are set in it. Throws UsageError where there is neither. Keys
/// of `own_table` are the verb's own: whoever reads them knows them.
TomlValue asked_document(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue,
                         std::string_view own_table = "");

/// The same of these files, or of none.
TomlValue asked_document(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue,
                         std::span<const std::string> files, std::string_view own_table);

/// Sets in the document what the options of `verb` say. Throws UsageError and InputError.
void apply_options(TomlValue& document, const Verb& verb, const Arguments& arguments,
                   const Catalogue& catalogue, std::string_view own_table = "");

}  // namespace stepcast::sim
