// What a framework says of its configuration at the head of its log, under its own names. Knows
// no scenario.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scripts/settings.hpp"

namespace stepcast::validate {

using sim::Settings;

/// Finds them in the lines of a log, or of a configuration in a file of its own:
///   Megatron-LM  "  num_layers ................ 32", _print_args of megatron/training/arguments.py
///                (core_v0.8 to v0.14), and "(new size: 50432)" of the vocabulary
///   NeMo         the YAML that hydra's configuration is printed as (NeMo 1.23,
///                examples/nlp/language_modeling/megatron_gpt_pretraining.py)
///   torchtitan   its TOML; "Running with configs: {...}"; "Building llama3 8B with
///                TransformerModelArgs(dim=4096, ...)" or JSON; the mesh; batch and sequence; GPU
///                (torchtitan v0.1 and v0.2, train.py, parallel_dims.py, metrics.py)
///   arguments    "--num-layers 32 --sequence-parallel" of Megatron-LM and Megatron-DeepSpeed, a
///   line
///                each or all in one, as under the names of Megatron-LM's print
///                (sim/inputs/launch_arguments.hpp)
///   JSON         a file that is one object: DeepSpeed's configuration, stepcast launch's of FSDP
class SettingsReader {
 public:
  void line(std::string_view text);
  /// What the caller knows of it.
  void set(const std::string& name, std::string value) { settings_.set(name, std::move(value)); }
  Settings take();

 private:
  bool megatron(std::string_view text);
  bool arguments(std::string_view text);
  bool json(std::string_view text);
  bool toml(std::string_view text);
  bool yaml(std::string_view text);
  void torchtitan(std::string_view text);
  void mesh(std::string_view text);
  void begin_json(std::string_view text, std::string prefix);
  void finish_json();

  Settings settings_;
  std::string json_, json_prefix_;  // what was read of an object that goes on
  bool in_json_ = false;
  bool begun_ = false;      // a line that is not blank was read
  bool arguments_ = false;  // Megatron-LM's were read
  int depth_ = 0;           // its open braces
  std::string section_;     // of TOML
  struct Level {
    std::size_t indent;
    std::string name;
  };
  std::vector<Level> levels_;  // of YAML
  bool in_yaml_ = false;
};

/// Whether a text that begins as JSON is a configuration, not a trace.
bool is_configuration(std::string_view json);

}  // namespace stepcast::validate
