#include "sim/inputs/recipe_source.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/inputs/named_files.hpp"
#include "sim/launch/words.hpp"
#include "sim/scripts/python_calls.hpp"
#include "sim/scripts/text_pieces.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path, text;
};

/// The Python files of recipes above `path`, in the order of their names.
std::vector<Source> recipe_files(const std::string& path) {
  constexpr int most_folders = 8;
  constexpr std::size_t most_files = 1000;
  std::error_code error;
  fs::path folder = fs::absolute(path, error).parent_path(), recipes;
  for (int i = 0; i < most_folders && recipes.empty(); ++i, folder = folder.parent_path())
    if (fs::is_directory(folder / "src/megatron/bridge/recipes", error))
      recipes = folder / "src/megatron/bridge/recipes";
  std::vector<Source> out;
  if (recipes.empty()) return out;
  for (fs::recursive_directory_iterator at(recipes, error), end; at != end && !error;
       at.increment(error))
    if (at->path().extension() == ".py" && at->is_regular_file(error) && out.size() < most_files)
      out.push_back({at->path().string(), read_toml_text(at->path().string())});
  std::ranges::sort(out, {}, &Source::path);
  return out;
}

/// "from x import THIS as name": what another file calls it.
std::string name_before_alias(std::string_view text, const std::string& name) {
  const std::string alias = " as " + name;
  for (std::size_t at = text.find(alias); at != std::string_view::npos;
       at = text.find(alias, at + 1)) {
    const std::size_t end = at + alias.size();
    if (end < text.size() && !says(" ,)\r\n", text.substr(end, 1))) continue;
    const std::size_t begin = text.find_last_of(" ,(\n", at - 1) + 1;
    return std::string(text.substr(begin, at - begin));
  }
  return "";
}

const Source* defines(const std::vector<Source>& files, const std::string& name) {
  const auto at = std::ranges::find_if(
      files, [&](const Source& one) { return says(one.text, "\ndef " + name + "("); });
  return at == files.end() ? nullptr : &*at;
}

/// Of the model, its name says the rest; words that cannot matter are left out.
bool bears_on_plan(const std::string& name) {
  const LaunchWords tables[] = {bridge_words()};
  const LaunchWord* word = find_word(tables, name);
  if (word == nullptr || word->use == Use::ignored) return false;
  const bool adapters = word->key.starts_with("model.lora_");
  return adapters || !word->key.starts_with("model.") || word->key == "model.sequence";
}

/// All that the function sets, and the ones that it begins with.
Settings set_by(const std::string& name, const std::vector<Source>& files, std::string& from,
                int depth = 0) {
  constexpr int deepest_recipe = 4;
  std::string function = name;
  const Source* source = defines(files, function);
  for (std::size_t i = 0; source == nullptr && i < files.size(); ++i) {
    function = name_before_alias(files[i].text, name);
    if (!function.empty()) source = defines(files, function);
  }
  if (source == nullptr || depth > deepest_recipe) return {};
  std::string text;
  for (const Source& one : files)  // which all of them begin with
    if (one.path.ends_with("/recipes/common.py")) text = one.text + "\n";
  const auto functions = read_python_calls(text + source->text, source->path);
  const auto found = functions.find(function);
  if (found == functions.end()) return {};
  if (from.empty()) from = fs::path(source->path).filename().string();
  Settings out = found->second;
  if (const std::string* base = out.find(""); base != nullptr && *base != name)
    add_usual(out, set_by(*base, files, from, depth + 1));
  return out;
}

}  // namespace

Settings settings_of_recipe(const std::string& name, const std::string& path) {
  std::string from;
  const Settings all = set_by(name, recipe_files(path), from);
  Settings out;
  for (const auto& [key, value] : all.all())
    if (bears_on_plan(key)) out.set(key, value);
  for (const char* model : {"model", "tokenizer.tokenizer_model"})
    if (const std::string* id = all.find(model);
        id != nullptr && says(*id, "/") && !out.has("model.hf_model_id"))
      out.set("model.hf_model_id", *id);
  if (!from.empty()) out.set(std::string(recipe_source), from);
  return out;
}

}  // namespace stepcast::sim
