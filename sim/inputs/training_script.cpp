#include "sim/inputs/training_script.hpp"

#include <string>
#include <vector>

#include "sim/scripts/python_literals.hpp"

namespace stepcast::sim {
namespace {

const std::vector<std::string>& functions() {
  static const std::vector<std::string> all = {
      "from_pretrained", "TrainingArguments", "Seq2SeqTrainingArguments",
      "SFTConfig",       "DPOConfig",         "GRPOConfig",
      "LoraConfig",      "ParallelismConfig", "DeepSpeedSequenceParallelConfig",
      "DataLoader"};
  return all;
}

/// What an argument of a call is called on the command line or in accelerate's YAML; empty: there
/// is no such word.
std::string name_of(const std::string& function, const std::string& argument) {
  if (function == "from_pretrained")
    return argument == "0" || argument == "pretrained_model_name_or_path" ? "model_name_or_path"
                                                                          : "";
  if (function == "DataLoader")
    return argument == "batch_size" ? "per_device_train_batch_size" : "";
  if (function == "LoraConfig")
    return argument == "r"                 ? "lora_r"
           : argument.starts_with("lora_") ? argument
                                           : "lora_" + argument;
  if (function == "ParallelismConfig")
    return argument.ends_with("_size") ? "parallelism_config.parallelism_config_" + argument : "";
  if (function == "DeepSpeedSequenceParallelConfig")
    return argument == "sp_seq_length" ? "max_length" : "";
  return argument;
}

}  // namespace

Settings training_script_settings(std::string_view text) {
  Settings out;
  bool trl = false;
  for (const PythonCall& call : python_calls_of(text, functions())) {
    trl = trl || call.function == "SFTConfig" || call.function == "DPOConfig" ||
          call.function == "GRPOConfig";
    if (call.function == "LoraConfig") out.set("use_peft", "True");
    for (const auto& [argument, value] : call.arguments.all())
      if (const std::string name = name_of(call.function, argument);
          !name.empty() && (name.front() < '0' || name.front() > '9'))
        out.set_usual(name, value);
  }
  if (!out.has("model_name_or_path")) return {};
  if (!trl) out.set_usual("gradient_checkpointing", "False");  // TRL's alone is another
  return out;
}

}  // namespace stepcast::sim
