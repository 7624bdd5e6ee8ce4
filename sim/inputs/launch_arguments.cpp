#include "sim/inputs/launch_arguments.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::sim {
namespace {

constexpr std::string_view blanks = " \t\r", dashes = "--";

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (word.starts_with("#")) break;
    if (word != "\\") out.emplace_back(word);
    at = line.find_first_not_of(blanks, end);
  }
  return out;
}

std::string name_of(std::string_view word) {
  std::string out(word.substr(dashes.size()));
  std::ranges::replace(out, '-', '_');
  return out;
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  return !name.empty() && std::ranges::all_of(name, letter) && name.front() != '_';
}

std::string without_quotes(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

struct OtherName {
  std::string_view written, name, value;  // no value: as written
};

// Switches that turn something off, short for something, or called otherwise by Megatron-DeepSpeed.
constexpr OtherName other_names[] = {
    {"disable_bias_linear", "add_bias_linear", "False"},
    {"checkpoint_activations", "recompute_granularity", "full"},
    {"recompute_activations", "recompute_granularity", "selective"},
    {"use_rotary_position_embeddings", "position_embedding_type", "rope"},
    {"fp8_format", "fp8", ""},
};

/// Arguments of several words.
constexpr std::string_view lists[] = {"recompute_modules",
                                      "lora_target_modules",
                                      "target_modules",
                                      "window_size",
                                      "rampup_batch_size",
                                      "data_path",
                                      "train_data_path",
                                      "valid_data_path",
                                      "test_data_path",
                                      "step_batch_size_schedule",
                                      "fsdp"};

void add_argument(std::string name, std::string value, std::vector<LaunchArgument>& out) {
  if (name == "num_key_value_heads") {
    out.push_back({"group_query_attention", "True"});
    name = "num_query_groups";
  }
  const auto other = std::ranges::find(other_names, name, &OtherName::written);
  if (other == std::end(other_names))
    out.push_back({std::move(name), std::move(value)});
  else
    out.push_back({std::string(other->name),
                   other->value.empty() ? std::move(value) : std::string(other->value)});
}

}  // namespace

std::vector<LaunchArgument> command_arguments(std::span<const std::string> words) {
  std::vector<LaunchArgument> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with(dashes)) continue;
    const std::size_t equals = words[i].find('=');
    std::string name = name_of(std::string_view(words[i]).substr(0, equals));
    if (!is_name(name)) continue;
    std::string value = "True";
    if (equals != std::string::npos) {
      value = without_quotes(std::string_view(words[i]).substr(equals + 1));
    } else if (i + 1 < words.size() && !words[i + 1].starts_with(dashes)) {
      value = without_quotes(words[++i]);
      const bool many = std::ranges::find(lists, name) != std::end(lists);
      while (many && i + 1 < words.size() && !words[i + 1].starts_with(dashes))
        value += " " + words[++i];
    }
    add_argument(std::move(name), std::move(value), out);
  }
  return out;
}

std::vector<LaunchArgument> launch_arguments(std::string_view line) {
  const std::vector<std::string> words = words_of(line);
  const bool calls = line.find("--tensor-model-parallel-size") != std::string_view::npos;
  if (words.empty() || !(calls || words.front().starts_with(dashes))) return {};
  std::vector<LaunchArgument> out = command_arguments(words);
  std::erase_if(out, [](const LaunchArgument& one) { return one.value.starts_with("$"); });
  return out;
}

void set_usual_arguments(Settings& settings) {
  constexpr std::pair<const char*, const char*> usual[] = {
      {"tensor_model_parallel_size", "1"},
      {"pipeline_model_parallel_size", "1"},
      {"context_parallel_size", "1"},
      {"sequence_parallel", "False"},
      {"use_distributed_optimizer", "False"},
      {"overlap_grad_reduce", "False"},
      {"overlap_param_gather", "False"},
      {"add_bias_linear", "True"},
      {"swiglu", "False"},
      {"normalization", "LayerNorm"},
      {"group_query_attention", "False"},
      {"untie_embeddings_and_output_weights", "False"},
      {"position_embedding_type", "learned_absolute"},
      {"hidden_dropout", "0.1"},
      {"bf16", "False"},
      {"fp16", "False"},
  };
  for (const auto& [name, value] : usual) settings.set_usual(name, value);
  // validate_args(): sums of bf16 gradients are fp32 unless they are asked for in bf16.
  const bool wide = settings.flag("bf16") == true && settings.flag("grad_reduce_in_bf16") != true;
  settings.set_usual("accumulate_allreduce_grads_in_fp32", wide ? "True" : "False");
  const std::string* kind = settings.find("recompute_granularity");
  if (kind == nullptr) settings.set_usual("recompute_granularity", "None");
}

}  // namespace stepcast::sim
