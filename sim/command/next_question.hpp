// What to ask after a run, as commands that can be called as they stand. Knows no arithmetic.
#pragma once

#include <cstdint>
#include <string>

#include "sim/program/command_line.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::sim {

/// A word as a shell reads it back.
std::string shell_word(const std::string& word);

/// Which keys a command is to name: all, or those alone that a search does not choose.
enum class Keys : std::uint8_t { all, without_plan };

/// The scenario of a command line as words for the shell: the file and what sets keys of it,
/// without what only says how to answer.
std::string scenario_words(const Verb& verb, const Arguments& arguments, Keys keys = Keys::all);

/// The whole command line as a shell reads it.
std::string command_words(const Verb& verb, const Arguments& arguments);

/// The last lines of a run's report. Empty for a collective. `open_scenario` is what a search is
/// asked: the scenario without its plan.
std::string next_question(const Answer& answer, const std::string& scenario,
                          const std::string& open_scenario);

}  // namespace stepcast::sim
