// The formats that a run can be told in, in the order in which a text is tried as one of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/inputs/facts.hpp"
#include "sim/inputs/understanding.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {

struct InputFormat {
  std::string_view name;  // "the YAML of LLaMA-Factory"
  bool (*is)(const Settings&);
  void (*add)(Facts&, const Settings&, const Catalogue&, const std::string& source);
  LaunchWords (*words[4])();  // null beyond those that it has
  std::string_view stack{};   // of own_words.hpp; empty: its framework has a launch form

  std::vector<LaunchWords> tables() const;
};

std::span<const InputFormat> input_formats();

/// The format of these settings; null: none that is known.
const InputFormat* format_of(const Settings& settings);

/// Whether the command line calls this program.
bool calls(const Settings& settings, std::string_view program);

// One function a family of formats.
void add_trainer_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                       const std::string& source);
void add_deepspeed_chat_facts(Facts& facts, const Settings& said, const Catalogue& catalogue,
                              const std::string& source);
void add_verl_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source);
/// Of its trainers of demonstrations, sft_trainer.py and fsdp_sft_trainer.py.
void add_verl_sft_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                        const std::string& source);
void add_verl_fsdp_sft_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                             const std::string& source);
void add_nanotron_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                        const std::string& source);
void add_neox_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source);
void add_foundry_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                       const std::string& source);
void add_bridge_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                      const std::string& source);
void add_torchtitan_2026_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                               const std::string& source);

/// The shape of a small model that torchtitan has for trying things out; false: it is none.
bool set_debug_model(Facts& facts, std::string_view module, std::string_view flavor,
                     const Catalogue& catalogue, const std::string& source);

/// transformers and torchtitan train no modules for further tokens (MTP), whatever the model has.
void without_further_tokens(Facts& facts, const Catalogue& catalogue, const std::string& source);

/// Whether the model that was named is one of the catalogue, with layers of experts.
bool has_experts(const Facts& facts, const Catalogue& catalogue, const std::string& source);

/// "[q_proj, v_proj]", "all", "all-linear", or `all` of them: of the named model's products those
/// that PEFT finds as linear layers. Nothing said: its default.
/// `linear_experts`: so are routed experts, as with Megatron's layers.
void set_adapter_targets(Facts& facts, const std::string& list, bool all, bool linear_experts,
                         const Catalogue& catalogue, const std::string& source);

/// The entry or id that the name of a file holds, "qwen3_8b_sft.yaml"; empty: none.
std::string model_in_file_name(const std::string& path, const Catalogue& catalogue);

/// Names the model: an entry of the catalogue, an id at Hugging Face, or a path whose last part is
/// one.
void set_model_name(Facts& facts, const std::string& said, const Catalogue& catalogue,
                    const std::string& source);

}  // namespace stepcast::sim
