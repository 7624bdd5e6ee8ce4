// DeepSpeed-Chat's three steps, whose main.py have defaults of their own
// (sim/launch/deepspeed_chat_words.cpp): of the third the update of its actor.
#include <string>

#include "sim/inputs/formats.hpp"

namespace stepcast::sim {
namespace {

/// What its parser and its ds_utils.py have where nothing is said.
Settings with_its_defaults(const Settings& said, bool samples) {
  Settings out = said;
  out.set_usual(samples ? "actor_zero_stage" : "zero_stage", "0");
  if (!samples) return out;
  const auto length = [&](const char* name) {
    constexpr std::int64_t usual = 256;
    return said.integer(name).value_or(usual);
  };
  out.set("max_seq_len",
          std::to_string(length("max_prompt_seq_len") + length("max_answer_seq_len")));
  return out;
}

}  // namespace

void add_deepspeed_chat_facts(Facts& facts, const Settings& said, const Catalogue& catalogue,
                              const std::string& source) {
  const bool samples = said.has("actor_model_name_or_path");
  add_trainer_facts(facts, with_its_defaults(said, samples), catalogue, source);
  facts.set("software.framework", toml_text("deepspeed", ""), source);
  facts.erase("software.version");
  if (samples)
    facts.notes.push_back(
        "A step is one update of the actor on a prompt and its answer of full length: sampling, "
        "critic, reward and reference are left out.");
  const auto rank = said.integer(samples ? "actor_lora_dim" : "lora_dim");
  if (rank && *rank > 0 && !said.flag("only_optimize_lora").value_or(false))
    facts.notes.push_back(
        "Without only_optimize_lora the weights are trained beside their adapters: all parameters "
        "are taken as trained, the adapters left out.");
}

}  // namespace stepcast::sim
