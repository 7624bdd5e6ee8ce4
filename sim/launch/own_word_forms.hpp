// What own_words.cpp chooses from, and what it shares with it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

/// "behind your own command"; `stack`, `states_optimizer`: as own_words_of.
Launch verl_words_of(const Scenario& scenario, std::string_view stack, bool states_optimizer);

/// Of LLaMA-Factory's second generation; every optimizer is said.
Launch llama_factory_v1_words_of(const Scenario& scenario);

/// What FSDP has no word for: zero1, and states on the host that DeepSpeed updates there.
bool by_deepspeed(const Scenario& scenario);

/// Its deepspeed.json behind the words; where that has no form, they are none either.
void add_deepspeed_file(const Scenario& scenario, Launch& words);

/// Products with adapters, "[q_proj, v_proj]".
std::string projections(const Scenario& scenario, const char* between = ", ");

/// What no word of a stack says of the scenario, a sentence each. Gradients are summed in `summed`
/// there; `said`: keys that it does say, or has by itself.
std::vector<std::string> notes_on(const Scenario& scenario, workloads::Dtype summed,
                                  bool says_masters,
                                  std::initializer_list<std::string_view> said = {
                                      "plan.optimizer", "software.context_exchange",
                                      "software.dispatchers"});

}  // namespace stepcast::sim
