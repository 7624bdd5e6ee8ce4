#include "sim/import/config_reader.hpp"

namespace stepcast::sim {

const ConfigReader::Json* ConfigReader::find(const char* key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::says(const char* key) const {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_number()) return found->get<double>() != 0;
  return !found->is_array() || !found->empty();
}

std::optional<std::int64_t> ConfigReader::integer(const char* key) const {
  read_.insert(key);
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer() || found->get<std::int64_t>() < 1)
    refuse("'" + std::string(key) + "' is no positive whole number");
  return found->get<std::int64_t>();
}

std::optional<std::int64_t> ConfigReader::alike(const char* key) const {
  const Json* items = list(key);
  if (items == nullptr) return integer(key);
  for (const Json& item : *items)
    if (!item.is_number_integer() || item.get<std::int64_t>() < 1 || item != items->front())
      refuse("'" + std::string(key) + "' of other values in other layers is not modelled");
  if (items->empty()) return std::nullopt;
  return items->front().get<std::int64_t>();
}

std::optional<std::int64_t> ConfigReader::first(Names keys) const {
  std::optional<std::int64_t> out;
  for (const char* key : keys) {
    read_.insert(key);
    if (!out && says(key)) out = alike(key);
  }
  return out;
}

std::int64_t ConfigReader::needed_first(Names keys) const {
  if (const auto found = first(keys)) return *found;
  std::string names;
  for (const char* key : keys) names += (names.empty() ? "'" : " or '") + std::string(key) + "'";
  refuse(names + " is missing", "a model's config.json states it");
}

const ConfigReader::Json* ConfigReader::object(const char* key) const {
  read_.insert(key);
  const Json* found = find(key);
  return found != nullptr && found->is_object() ? found : nullptr;
}

std::int64_t ConfigReader::count(const char* key) const {
  read_.insert(key);
  return says(key) ? integer(key).value_or(0) : 0;
}

std::int64_t ConfigReader::needed(const char* key) const {
  const auto found = integer(key);
  if (!found) refuse("'" + std::string(key) + "' is missing", "a model's config.json states it");
  return *found;
}

bool ConfigReader::flag(const char* key, bool otherwise) const {
  read_.insert(key);
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) refuse("'" + std::string(key) + "' is neither true nor false");
  return found->get<bool>();
}

std::string ConfigReader::text(const char* key) const {
  read_.insert(key);
  const Json* found = find(key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

const ConfigReader::Json* ConfigReader::list(const char* key) const {
  read_.insert(key);
  const Json* found = find(key);
  return found != nullptr && found->is_array() ? found : nullptr;
}

void ModelEntry::set(const char* key, const std::vector<std::string>& texts) {
  TomlValue::Array items;
  for (const std::string& text : texts) items.push_back(toml_text(text, path_));
  document_.set(key, TomlValue{std::move(items), path_});
}

}  // namespace stepcast::sim
