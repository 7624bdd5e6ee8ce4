#include "sim/import/model_index.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

constexpr std::array<std::string_view, 22> shapeless{
    "-instruct", "-base",      "-chat",     "-it",       "-pt",      "-hf",
    "-fp8",      "-nvfp4",     "-mxfp4",    "-awq",      "-gptq",    "-bf16",
    "-int4",     "-int8",      "-gguf",     "-bnb-4bit", "-unsloth", "-fp8-static",
    "-dynamic",  "-pertensor", "-thinking", "-static"};

/// "-2407", "-0528": a month, of four digits.
bool ends_with_date(std::string_view name) {
  constexpr std::size_t digits = 4;
  if (name.size() <= digits + 1 || name[name.size() - digits - 1] != '-') return false;
  const std::string_view date = name.substr(name.size() - digits);
  return std::ranges::all_of(date, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string text_of(const TomlValue& table, const char* key) {
  const TomlValue* found = table.find(key);
  return found != nullptr && found->text() != nullptr ? *found->text() : "";
}

}  // namespace

std::string plain_model_name(std::string_view name) {
  std::string out(name.substr(name.rfind('/') + 1));
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string_view end : shapeless)
      if (out.size() > end.size() && out.ends_with(end)) {
        out.resize(out.size() - end.size());
        shorter = true;
      }
    if (ends_with_date(out)) {
      out.resize(out.rfind('-'));
      shorter = true;
    }
  }
  // "Mistral-7B-Instruct-v0.3"
  constexpr std::string_view tuned = "-instruct";
  if (const std::size_t at = out.find("-instruct-v"); at != std::string::npos)
    out.erase(at, tuned.size());
  if (out.starts_with("meta-")) out.erase(0, std::string_view("meta-").size());
  std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return out;
}

ModelIndex::ModelIndex(const TomlValue& document) {
  expects(document.table() != nullptr, "a table of models");
  for (const TomlEntry& named : *document.table()) {
    const TomlValue& table = named.value;
    if (table.table() == nullptr)
      throw InputError(named.where, "'" + named.key + "' is no table of a model");
    IndexedModel model{.id = named.key,
                       .entry = table,
                       .catalogue = text_of(table, "catalogue"),
                       .unlike = text_of(table, "unlike"),
                       .nearest = text_of(table, "nearest"),
                       .published = 0,
                       .explained = text_of(table, "explained")};
    if (const TomlValue* published = table.find("published"))
      if (const auto* billions = std::get_if<double>(&published->data)) model.published = *billions;
    std::vector<std::string> names{model.id};
    for (const char* key : {"aliases", "text_of"})
      if (const TomlValue* others = table.find(key))
        for (const TomlValue& other : *others->array()) names.push_back(*other.text());
    if (const TomlValue* with_images = table.find("text_of"))
      for (const TomlValue& name : *with_images->array())
        of_images_.insert(plain_model_name(*name.text()));
    for (const char* key :
         {"aliases", "text_of", "catalogue", "unlike", "nearest", "published", "explained"})
      model.entry.erase(key);
    for (const std::string& name : names) {
      const auto [at, is_new] = by_name_.emplace(plain_model_name(name), models_.size());
      if (!is_new && at->second != models_.size())
        throw InputError(named.where,
                         "'" + name + "' is also a name of '" + models_[at->second].id + "'");
    }
    models_.push_back(std::move(model));
  }
}

bool ModelIndex::leaves_images_out(std::string_view name) const {
  return of_images_.contains(plain_model_name(name));
}

const IndexedModel* ModelIndex::find(std::string_view name) const {
  const auto found = by_name_.find(plain_model_name(name));
  return found == by_name_.end() ? nullptr : &models_[found->second];
}

}  // namespace stepcast::sim
