// What turns one configuration under its framework's names into facts. Knows no framework.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/inputs/facts.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {

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

  /// The counts and flags of a table.
  void take(LaunchWords words) {
    for (const LaunchWord& word : words)
      if (word.use == Use::count)
        take_count(word);
      else if (word.use == Use::flag)
        take_flag(word);
  }
  /// Those of parts of a model, `of(word)`, where it has the part.
  template <class Of>
  void take_part(LaunchWords words, Of of) {
    for (const LaunchWord& word : words)
      if (word.use == Use::part_count && of(word))
        take_count(word);
      else if (word.use == Use::part_flag && of(word))
        take_flag(word);
  }
  void take_count(const LaunchWord& word) {
    const auto number = integer(std::string(word.name).c_str());
    if (number && *number > 0) set(std::string(word.key), *number);
  }
  void take_flag(const LaunchWord& word) {
    const auto flag = settings_.flag(name(std::string(word.name).c_str()));
    if (flag) set(std::string(word.key), *flag);
  }
  /// By what torch's libraries call it, in any case of letters; one without a key is named, and
  /// taken for Adam (launch_facts.cpp).
  void optimizer_called(const std::string& theirs);
  /// Products with an adapter, as PEFT ("q_proj") or Megatron ("linear_qkv") calls them; all where
  /// nothing is said or "all", gate only where the model has gates. Whether an MLP's are among them
  /// (launch_facts.cpp).
  bool adapter_targets(const std::string& list, bool gated = true);
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
