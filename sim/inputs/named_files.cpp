#include "sim/inputs/named_files.hpp"

#include <algorithm>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/inputs/recipe_source.hpp"
#include "sim/inputs/training_script.hpp"
#include "sim/launch/words.hpp"
#include "sim/scripts/python_calls.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "sim/scripts/yaml_settings.hpp"

namespace stepcast::sim {

namespace fs = std::filesystem;

std::optional<std::string> text_beside(const std::string& path, const std::string& named) {
  constexpr int most_folders = 6;
  if (named.empty() || named.find('$') != std::string::npos) return std::nullopt;
  std::error_code error;
  fs::path folder = fs::absolute(path, error).parent_path();
  for (int i = 0; i < most_folders; ++i, folder = folder.parent_path())
    if (const fs::path file = folder / named; fs::is_regular_file(file, error))
      return read_toml_text(file.string());
  return std::nullopt;
}

void add_toml(const TomlValue& value, const std::string& path, Settings& out) {
  if (const auto* table = value.table()) {
    for (const TomlEntry& entry : *table)
      add_toml(entry.value, path.empty() ? entry.key : path + "." + entry.key, out);
  } else {
    out.set(path, value.text() != nullptr ? *value.text() : write_toml_value(value));
  }
}

void add_usual(Settings& settings, const Settings& others) {
  for (const auto& [name, value] : others.all()) {
    const std::string* said = settings.find(name);
    if (said == nullptr || *said == "auto") settings.set(name, value);
  }
}

Settings registered(std::string_view text, const std::string& path, const std::string& function) {
  auto calls = read_python_calls(text, path);
  std::erase_if(calls, [](const auto& one) {
    const auto at = one.second.all().lower_bound("training");
    return at == one.second.all().end() || !at->first.starts_with("training");
  });
  if (calls.empty()) throw InputError(path, "has no function that returns a Trainer.Config");
  std::string names;
  for (const auto& [name, call] : calls) names += (names.empty() ? "" : ", ") + name;
  const auto found = function.empty() && calls.size() == 1 ? calls.begin() : calls.find(function);
  if (found == calls.end())
    throw InputError(path,
                     (function.empty() ? "has several functions: "
                                       : "has no function " + function +
                                             " that returns a Trainer.Config, it has: ") +
                         names,
                     "name one of them, " + path + "#" + calls.begin()->first);
  Settings out = found->second;
  out.set("config", found->first);
  constexpr std::string_view import = "from torchtitan.models.";
  std::string module = fs::path(path).parent_path().filename().string();  // models/llama3/...
  if (const std::size_t at = text.find(import); at != std::string_view::npos)
    if (const std::size_t end = text.find_first_of(" .", at + import.size());
        end != std::string_view::npos && text.substr(at + import.size(), 7) != "common.")
      module = text.substr(at + import.size(), end - at - import.size());
  out.set_usual("module", module);
  return out;
}

namespace {

/// Functions that make a model or call another recipe.
std::map<std::string, Settings> bridge_functions(std::string_view text, const std::string& path,
                                                 const std::string& function) {
  auto calls = read_python_calls(text, path);
  std::erase_if(calls, [&](const auto& one) {
    const std::string* base = one.second.find("");
    const bool recipe = base != nullptr && base->ends_with("_config");
    return (!function.empty() && one.first != function) ||
           !(recipe || one.second.has("model.num_layers"));
  });
  return calls;
}

}  // namespace

Settings bridge_recipe(std::string_view text, const std::string& path,
                       const std::string& function) {
  const auto calls = bridge_functions(text, path, function);
  if (calls.empty()) throw InputError(path, "has no function that returns a recipe");
  if (calls.size() > 1)
    throw InputError(path, "has several recipes",
                     "name one of them, " + path + "#" + calls.begin()->first);
  Settings out = calls.begin()->second;
  if (const std::string* base = out.find(""); base != nullptr && !out.has("model.num_layers"))
    out.set("recipe", *base);
  out.erase("");
  return out;
}

bool is_registry(std::string_view text) {
  return says(text, "def ") && says(text, "model_registry(");
}

bool is_bridge_recipe(std::string_view text) {
  return says(text, "def ") && says(text, "from megatron.bridge");
}

namespace {

/// Whose TOML, YAML or JSON a command line names: the settings of the file, if it lies beside.
Settings named_settings(const std::string& path, const std::string& file) {
  const auto text = text_beside(path, file);
  if (!text) return {};
  if (file.ends_with(".json")) return read_json_settings(*text, file);
  if (!file.ends_with(".toml")) return read_yaml_settings(*text, file);
  Settings out;
  add_toml(read_toml(*text, file), "", out);
  return out;
}

/// A count that a command line says under one name is not the recipe's to say under another.
void add_named_recipe(Settings& settings, const std::string& path) {
  const std::string* name = settings.find("recipe");
  if (name == nullptr || settings.has(std::string(recipe_source))) return;
  const LaunchWords tables[] = {bridge_words()};
  const auto counts = [&](const std::string& one) -> std::string_view {
    const LaunchWord* word = find_word(tables, one);
    return word == nullptr || word->use != Use::count ? "" : word->key;
  };
  Settings said = settings_of_recipe(*name, path);
  for (const auto& [own, value] : settings.all())
    for (auto at = said.all().begin(); at != said.all().end();) {
      const std::string one = (at++)->first;
      if (!counts(own).empty() && counts(own) == counts(one)) said.erase(one);
    }
  add_usual(settings, said);
}

void add_recipe_beside(Settings& settings, const std::string& path, const std::string& file) {
  if (settings.has("recipe")) return;
  const auto text = text_beside(path, file);
  if (text && is_bridge_recipe(*text) && !bridge_functions(*text, file, "").empty())
    add_usual(settings, bridge_recipe(*text, file, ""));
}

/// A script that is started with no model, and has it in its own code.
void add_training_script(Settings& settings, const std::string& path, const std::string& file) {
  const bool others = settings.has("model_name_or_path") || settings.has("recipe") ||
                      settings.has("num_layers") || settings.has("tensor_model_parallel_size");
  if (others) return;
  const auto text = text_beside(path, file);
  if (!text || !says(*text, "transformers") || says(*text, "from megatron")) return;
  const Settings said = training_script_settings(*text);
  if (said.empty()) return;
  add_usual(settings, said);
  settings.set(std::string(training_script), file);
  if (!settings.has("bf16.enabled") && !settings.has("mixed_precision"))
    settings.set_usual("bf16", "False");
}

/// Python beside a script that names it: a recipe of Megatron-Bridge by its file, a function of a
/// registry of torchtitan by its module. What takes --recipe, or has none, is a driver.
void add_python_beside(Settings& settings, const std::string& path) {
  const std::string* program = settings.find("@program");
  const std::string called = program == nullptr ? "" : *program;
  for (const std::string_view word : words_of_text(called))
    if (word.ends_with(".json") || word.ends_with(".yaml")) {  // llamafactory-cli train FILE
      add_usual(settings, named_settings(path, std::string(word)));
    } else if (word.ends_with(".py")) {
      add_recipe_beside(settings, path, std::string(word));
      add_training_script(settings, path, std::string(word));
    }
  const std::string *module = settings.find("module"), *function = settings.find("config");
  if (module == nullptr || function == nullptr) return;
  const std::string file = *module + ".py";
  const auto text = text_beside(path, file);
  if (!text || !is_registry(*text)) return;
  Settings said = registered(*text, file, *function);
  if (const std::string* base = said.find("module")) settings.set("module", *base);
  add_usual(settings, said);
}

}  // namespace

void add_named_files(Settings& settings, const std::string& path) {
  for (const char* name :
       {"job.config_file", "CONFIG_FILE", "config", "config_file", "accelerate_config", "deepspeed",
        "deepspeed_config", "deepspeed_config.deepspeed_config_file", "dist_config.config_file"})
    if (const std::string* found = settings.find(name)) {
      const std::string file = *found;
      for (const char* kind : {".toml", ".yaml", ".yml", ".json"})
        if (file.ends_with(kind)) add_usual(settings, named_settings(path, file));
    }
  if (const std::string* file = settings.find("config");
      file != nullptr && text_beside(path, *file))
    settings.erase("config");                                                   // is read
  if (const std::string* name = settings.find("config_name"); name != nullptr)  // hydra's, NeMo 1's
    add_usual(settings, named_settings(path, std::string(*name) + ".yaml"));
  add_python_beside(settings, path);
  add_named_recipe(settings, path);
}

}  // namespace stepcast::sim
