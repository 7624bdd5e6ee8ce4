// Writes the members of a scenario's value into a TOML table (see members.hpp). What is left open
// is not written: an empty list, a size of which zero means "as many as it takes".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/units_text.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/scenario/members.hpp"

namespace stepcast::sim {

class MemberWriter : public MemberVisitor<MemberWriter> {
 public:
  explicit MemberWriter(TomlValue& table) : table_(table) {}

  template <class E, class Choices>
  void member(const Key& key, Bound, const E& value, const Choices& choices) {
    put(key, word_for(choices, value));
  }
  template <class T>
  void member(const Key& key, Bound bound, const std::optional<T>& value) {
    if (value) member(key, bound, *value);
  }
  template <class E, class Choices>
  void member(const Key& key, Bound bound, const std::optional<E>& value, const Choices& choices) {
    if (value) member(key, bound, *value, choices);
  }
  template <class E, class Choices>
  void member(const Key& key, Bound, const workloads::SetOf<E>& items, const Choices& choices) {
    TomlValue::Array words;
    for (const auto& [name, item] : choices)
      if (items.has(item)) words.push_back(item_of(std::string(name)));
    if (std::is_same_v<E, workloads::LayerModule> && items.empty())
      return;  // as most plans have it
    put(key, std::move(words));
  }
  template <class Q>
  void member(const Key& key, Bound, const Q& value) {
    put(key, to_exact_text(value));
  }
  void member(const Key& key, Bound bound, const std::int64_t& value) {
    if (bound == Bound::not_negative || value != 0) put(key, value);
  }
  void member(const Key& key, Bound, const std::uint64_t& value) {
    put(key, static_cast<std::int64_t>(value));
  }
  void member(const Key& key, Bound, const double& value) { put(key, value); }
  void member(const Key& key, Bound, const bool& value) { put(key, value); }
  void member(const Key& key, Bound, const std::string& value) {
    if (!value.empty()) put(key, value);
  }
  void member(const Key& key, Bound, const Ablation& without) { list(key, words_of(without)); }
  void member(const Key& key, Bound, const workloads::LayerPattern& pattern) {
    if (!pattern.empty()) put(key, workloads::to_text(pattern));
  }
  template <class T>
  void member(const Key& key, Bound, const std::vector<T>& items) {
    list(key, items);
  }
  /// Written by hand, elsewhere.
  void part(const Key&) {}

 private:
  static TomlValue item_of(std::int64_t item) { return {item, {}}; }
  static TomlValue item_of(double item) { return {item, {}}; }
  static TomlValue item_of(const std::string& item) { return {item, {}}; }
  static TomlValue item_of(const std::vector<std::int64_t>& row) {
    TomlValue::Array cells;
    for (const std::int64_t cell : row) cells.push_back(item_of(cell));
    return {std::move(cells), {}};
  }
  template <class T>
  void list(const Key& key, const std::vector<T>& items) {
    TomlValue::Array out;
    for (const T& item : items) out.push_back(item_of(item));
    if (!out.empty()) put(key, std::move(out));
  }
  template <class T>
  void put(const Key& key, T value) {
    table_.set(key.name, {std::move(value), {}});
  }

  TomlValue& table_;
};

/// The table that `visit` fills: calls one of members.hpp with the visitor that it is given.
template <class Visit>
TomlValue written(TomlValue table, Visit visit) {
  visit(MemberWriter(table));
  return table;
}

}  // namespace stepcast::sim
