// A plan in the words of a stack that has no launch form of its own, for the user to lay over the
// file that they have.
#pragma once

#include <string_view>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

/// Stacks that are told so; behind "verl" its trainers of demonstrations.
inline constexpr std::string_view own_word_stacks[] = {
    "axolotl", "llama-factory", "llama-factory-v1", "swift", "verl", "verl-sft", "verl-fsdp-sft"};

/// One file with their names for what the plan says; notes on what they have no name for. `stack`:
/// one of those above. `states_optimizer`: Adam is named as well, since the file below may say
/// another.
Launch own_words_of(const Scenario& scenario, std::string_view stack,
                    bool states_optimizer = false);

/// A configuration of DeepSpeed with all that it says beside a plan, and the plan of another.
/// `same_optimizer`: the plan's is the one that `theirs` names. Throws nothing: both were read.
std::string deepspeed_over(std::string_view theirs, std::string_view plan,
                           bool same_optimizer = true);

}  // namespace stepcast::sim
