// A scenario as a file says it: ours, or one of others' that is read as one (sim/inputs).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/files/toml_value.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/launch/launch.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

inline constexpr Option scenario_out_option{
    "scenario-out", "FILE.toml", "",
    "also write there the scenario of file and options, or that a launch file was read as"};

struct ScenarioInput {
  TomlValue document;
  std::optional<LaunchInput> launch;  // none: a scenario of ours
};

/// Told apart by what stands in them; several files are one run of others. "configs.py#llama3_8b"
/// names a function of a file. Throws InputError.
ScenarioInput read_scenario_input(std::span<const std::string> paths, const Catalogue& catalogue);

/// Once the options of the command line are in the document: says on standard error how the file
/// was read, names the machine that follows, writes --scenario-out. Throws InputError naming all
/// that nobody said, each with its option.
void complete_input(ScenarioInput& input, const Arguments& arguments, const Catalogue& catalogue);

/// The stack of own words that the files named by `arguments` are of; empty: of none, or another
/// framework is asked for.
std::string own_stack(const Arguments& arguments, const Catalogue& catalogue);

/// The plan in the format of the files that the user has, where that is a stack of own words; else
/// in its framework's form, with what the files say beside a plan: arguments of Megatron-LM in
/// own.args, keys of DeepSpeed's JSON in it.
Launch launch_in_kind(const Scenario& scenario, const Arguments& arguments,
                      const Catalogue& catalogue);

}  // namespace stepcast::sim
