// What turns one configuration under its framework's names into facts. Knows no framework.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/inputs/facts.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {

struct Rename {
  const char *setting, *key;
};

class Translator {
 public:
  /// `prefix` stands before every name: "model." of NeMo.
  Translator(Facts& facts, const Settings& settings, std::string prefix, std::string source)
      : facts_(facts),
        settings_(settings),
        prefix_(std::move(prefix)),
        source_(std::move(source)) {}

 protected:
  void set(const std::string& key, std::int64_t number) { facts_.set(key, {number, ""}, source_); }
  void set(const std::string& key, bool flag) { facts_.set(key, {flag, ""}, source_); }
  void set(const std::string& key, const std::string& word) {
    facts_.set(key, toml_text(word, ""), source_);
  }
  void set(const std::string& key, const char*) = delete;  // would be a flag
  void note(std::string text) { facts_.notes.push_back(std::move(text)); }
  std::string name(const char* setting) const { return prefix_ + setting; }
  const std::string* find(const char* setting) const { return settings_.find(name(setting)); }
  /// What it says; nothing where it says nothing.
  std::string word(const char* setting) const {
    const std::string* found = find(setting);
    return found == nullptr ? "" : *found;
  }
  std::optional<std::int64_t> integer(const char* setting) const {
    return settings_.integer(name(setting));
  }
  bool on(const char* setting) const { return settings_.flag(name(setting)).value_or(false); }

  template <std::size_t n>
  void numbers(const Rename (&table)[n]) {
    for (const auto& [setting, key] : table)
      if (const auto number = integer(setting); number && *number > 0) set(key, *number);
  }
  /// The counts and flags of a table.
  void take(LaunchWords words) {
    for (const LaunchWord& word : words) {
      const std::string setting(word.name), key(word.key);
      if (word.use == Use::count) {
        if (const auto number = integer(setting.c_str()); number && *number > 0) set(key, *number);
      } else if (word.use == Use::flag) {
        if (const auto flag = settings_.flag(name(setting.c_str()))) set(key, *flag);
      }
    }
  }
  void ranks(std::optional<std::int64_t> ranks) {
    if (!ranks || *ranks < 1) return;
    facts_.ranks = ranks;
    facts_.ranks_source = source_;
  }

  Facts& facts_;
  const Settings& settings_;
  std::string prefix_, source_;
};

}  // namespace stepcast::sim
