// Fills the members of a catalogue value from a table (see members.hpp). What the table does not
// say keeps its value, unless the entry is new and cannot do without.
#pragma once

#include <algorithm>

#include "sim/toml_table.hpp"
#include "workloads/plan.hpp"

namespace stepcast::sim {

class MemberReader {
 public:
  /// `complete`: members that an entry needs must stand in the table itself.
  MemberReader(TableReader& table, bool complete) : table_(table), complete_(complete) {}

  template <class T, class... Choices>
  void needs(std::string_view key, T& member, const Choices&... choices) {
    if (auto found = read(key, member, Range::positive, choices...))
      member = *std::move(found);
    else if (complete_)
      table_.missing(key);
  }
  template <class T, class... Choices>
  void may(std::string_view key, T& member, const Choices&... choices) {
    if (auto found = read(key, member, Range::not_negative, choices...)) member = *std::move(found);
  }
  void may_bytes(std::string_view key, std::int64_t& member) {
    if (const auto found = table_.quantity<Bytes>(key)) member = found->value;
  }

 private:
  using Matrix = std::vector<std::vector<std::int64_t>>;

  template <class E, class Choices>
  std::optional<E> read(std::string_view key, const E&, Range, const Choices& choices) {
    return table_.choice(key, choices);
  }
  template <class Choices>
  std::optional<workloads::DataKinds> read(std::string_view key, const workloads::DataKinds&, Range,
                                           const Choices& choices) {
    const auto words = table_.texts(key);
    if (!words) return std::nullopt;
    workloads::DataKinds out;
    for (const std::string& word : *words) {
      const auto known = std::find_if(choices.begin(), choices.end(),
                                      [&](const auto& choice) { return choice.first == word; });
      if (known == choices.end())
        table_.fail(key, "'" + word + "' in '" + std::string(key) + "' is no kind of data",
                    "ddp, zero1, zero2, zero3");
      out.add(known->second);
    }
    return out;
  }
  template <class Q>
  std::optional<Q> read(std::string_view key, const Q&, Range range) {
    return table_.quantity<Q>(key, range);
  }
  std::optional<std::int64_t> read(std::string_view key, const std::int64_t&, Range range) {
    return table_.integer(key, range == Range::positive ? 1 : 0);
  }
  std::optional<double> read(std::string_view key, const double&, Range range) {
    return table_.number(key, range);
  }
  std::optional<bool> read(std::string_view key, const bool&, Range) { return table_.flag(key); }
  std::optional<std::string> read(std::string_view key, const std::string&, Range) {
    return table_.text(key);
  }
  std::optional<Matrix> read(std::string_view key, const Matrix&, Range) {
    const TomlValue* rows = table_.value(key);
    if (rows == nullptr) return std::nullopt;
    Matrix out;
    const std::string shape = "must be rows of integers, [[0, 1], [1, 0]]";
    if (rows->array() == nullptr) table_.fail(key, "'" + std::string(key) + "' " + shape);
    for (const TomlValue& row : *rows->array()) {
      if (row.array() == nullptr) table_.fail(key, "'" + std::string(key) + "' " + shape);
      out.emplace_back();
      for (const TomlValue& cell : *row.array()) {
        const auto* count = std::get_if<std::int64_t>(&cell.data);
        if (count == nullptr || *count < 0) table_.fail(key, "'" + std::string(key) + "' " + shape);
        out.back().push_back(*count);
      }
    }
    return out;
  }

  TableReader& table_;
  bool complete_;
};

/// Asks for every member without reading it, so that a missing one is not mistaken for a neighbour
/// that has yet to be read (nic and nics).
class MemberKeys {
 public:
  explicit MemberKeys(TableReader& table) : table_(table) {}

  template <class T, class... Choices>
  void needs(std::string_view key, T&, const Choices&...) {
    table_.value(key);
  }
  template <class T, class... Choices>
  void may(std::string_view key, T&, const Choices&...) {
    table_.value(key);
  }
  void may_bytes(std::string_view key, std::int64_t&) { table_.value(key); }

 private:
  TableReader& table_;
};

/// `visit` calls one of members.hpp with the visitor that it is given.
template <class Visit>
void read_members(TableReader& table, bool complete, Visit visit) {
  visit(MemberKeys(table));
  visit(MemberReader(table, complete));
}

}  // namespace stepcast::sim
