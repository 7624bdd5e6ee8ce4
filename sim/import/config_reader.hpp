// Reads a config.json key by key and remembers which, and takes down a model's entry. For
// model_config.cpp and its families.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

class ConfigReader {
 public:
  using Json = nlohmann::json;

  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  /// Whether a key is there and neither null, false, zero nor an empty list.
  bool says(const char* key) const;
  /// Whether one of the functions below was asked for it.
  bool was_read(const char* key) const { return read_.contains(key); }

  using Names = std::initializer_list<const char*>;  // of one key: the first that says something
  std::optional<std::int64_t> first(Names keys) const;
  std::int64_t needed_first(Names keys) const;
  std::int64_t count_first(Names keys) const { return first(keys).value_or(0); }

  std::optional<std::int64_t> integer(const char* key) const;  // none: missing or null
  std::int64_t count(const char* key) const;                   // the same, 0 for none
  std::int64_t needed(const char* key) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key) const;
  const Json* list(const char* key) const;  // null: no array
  const Json* object(const char* key) const;
  /// An integer, or the one value that all items of a list of integers have.
  std::optional<std::int64_t> alike(const char* key) const;

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw InputError(path_, what, hint);
  }

 private:
  const Json* find(const char* key) const;

  const Json& config_;
  const std::string& path_;
  mutable std::set<std::string, std::less<>> read_;
};

class ModelEntry {
 public:
  explicit ModelEntry(const std::string& path) : path_(path), document_(toml_table(path)) {}

  void set(const char* key, std::int64_t value) { document_.set(key, TomlValue{value, path_}); }
  void set(const char* key, bool value) { document_.set(key, TomlValue{value, path_}); }
  void set(const char* key, const std::string& text) { document_.set(key, toml_text(text, path_)); }
  void set(const char* key, const std::vector<std::string>& texts);
  TomlValue take() { return std::move(document_); }

 private:
  const std::string& path_;
  TomlValue document_;
};

}  // namespace stepcast::sim
