// What own_words.cpp chooses from, and what it shares with it.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

/// "behind your own command"; `states_optimizer`: as own_words_of.
Launch verl_words_of(const Scenario& scenario, bool states_optimizer);

/// Products with adapters, "[q_proj, v_proj]".
std::string projections(const Scenario& scenario, const char* between = ", ");

/// What no word of a stack says of the scenario, a sentence each. Gradients are summed in `summed`
/// there.
std::vector<std::string> notes_on(const Scenario& scenario, workloads::Dtype summed,
                                  bool says_masters);

}  // namespace stepcast::sim
