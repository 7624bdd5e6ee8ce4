// Fills the members of a scenario's value from a table (see members.hpp) and notes which change.
// What the table does not say keeps its value, unless the entry is new and cannot do without.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_table.hpp"
#include "sim/scenario/members.hpp"
#include "sim/scenario/noise_keys.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

class MemberReader : public MemberVisitor<MemberReader> {
 public:
  /// `complete`: members that an entry needs must stand in the table itself.
  /// `also`: what to say beside the first that is missing.
  MemberReader(TableReader& table, bool complete, std::string also = {})
      : table_(table), complete_(complete), also_(std::move(also)) {}

  template <class T, class... Choices>
  void member(const Key& key, Bound bound, T& value, const Choices&... choices) {
    if (auto found = read(key.name, value, range_of(bound), choices...))
      take(key, value, *std::move(found));
    else if (bound == Bound::needed && complete_)
      table_.missing(key.name, also_);
  }
  template <class T, class... Choices>
  void member(const Key& key, Bound bound, std::optional<T>& value, const Choices&... choices) {
    if (auto found = read(key.name, T{}, range_of(bound), choices...))
      take(key, value, std::move(found));
  }
  /// Read by hand, elsewhere.
  void part(const Key& key) { table_.value(key.name); }

 private:
  using Row = std::vector<std::int64_t>;
  using Matrix = std::vector<Row>;

  static Range range_of(Bound bound) {
    return bound == Bound::not_negative ? Range::not_negative : Range::positive;
  }
  /// What no quantity of its unit can be; zero is left to Bound. A key may state its own.
  struct Limits {
    double least = 0.0, most = std::numeric_limits<double>::infinity();
  };
  static Limits limits_of(const BytesPerSecond&) { return {1e6, 1e18}; }
  static Limits limits_of(const FlopsPerSecond&) { return {1e9, 1e21}; }
  static Limits limits_of(const Watts&) { return {1e-3, 1e9}; }
  static Limits limits_of(const Hertz&) { return {1e6, 1e12}; }
  template <class T>
  static Limits limits_of(const T&) {
    return {};
  }
  template <class Q>
  requires(std::is_same_v<Q, Duration> || std::is_arithmetic_v<Q> ||
           requires(Q q) { q.value * 1.0; }) static double size_of(const Q& found) {
    if constexpr (std::is_same_v<Q, Duration>)
      return seconds(found);
    else if constexpr (std::is_arithmetic_v<Q>)
      return static_cast<double>(found);
    else
      return static_cast<double>(found.value);
  }
  template <class Q>
  static std::string size_text(double size) {
    if constexpr (std::is_same_v<Q, Duration>)
      return to_text(to_duration(size));
    else if constexpr (std::is_arithmetic_v<Q>)
      return to_text(Count(size));
    else
      return to_text(Q(static_cast<typename Q::rep>(size)));
  }
  template <class T>
  void check(const Key& key, const T& found) {
    if constexpr (requires { size_of(found); } && !std::is_same_v<T, bool>) {
      const Limits limits = key.most > 0.0 ? Limits{key.least, key.most} : limits_of(found);
      const double size = size_of(found);
      if (size != 0.0 && (size < limits.least || size > limits.most))
        table_.fail(key.name,
                    table_.label(key.name) + " is " + (size < limits.least ? "below " : "above ") +
                        "what there is: " + size_text<T>(size),
                    size_text<T>(limits.least) + " to " + size_text<T>(limits.most));
    }
  }
  template <class T>
  void check(const Key& key, const std::optional<T>& found) {
    check(key, *found);
  }

  template <class T>
  void take(const Key& key, T& value, T found) {
    check(key, found);
    if (!(value == found)) table_.note_change(key.name);
    value = std::move(found);
  }

  template <class E, class Choices>
  std::optional<E> read(std::string_view key, const E&, Range, const Choices& choices) {
    return table_.choice(key, choices);
  }
  template <class E, class Choices>
  std::optional<workloads::SetOf<E>> read(std::string_view key, const workloads::SetOf<E>&, Range,
                                          const Choices& choices) {
    const auto words = table_.texts(key);
    if (!words) return std::nullopt;
    workloads::SetOf<E> out;
    std::string all;
    for (const auto& [name, meaning] : choices)
      all += (all.empty() ? "" : ", ") + std::string(name);
    for (const std::string& word : *words) {
      const auto known = std::find_if(choices.begin(), choices.end(),
                                      [&](const auto& choice) { return choice.first == word; });
      if (known == choices.end())
        table_.fail(key, "'" + word + "' in '" + std::string(key) + "' is none of its words", all);
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
  std::optional<std::uint64_t> read(std::string_view key, const std::uint64_t&, Range range) {
    const auto found = read(key, std::int64_t{}, range);
    return found ? std::optional(static_cast<std::uint64_t>(*found)) : std::nullopt;
  }
  std::optional<std::vector<std::string>> read(std::string_view key,
                                               const std::vector<std::string>&, Range) {
    return table_.texts(key);
  }
  std::optional<workloads::LayerPattern> read(std::string_view key, const workloads::LayerPattern&,
                                              Range) {
    const auto text = table_.text(key);
    if (!text) return std::nullopt;
    workloads::LayerPattern out;
    std::string wrong;
    if (!workloads::read_pattern(*text, out, wrong))
      table_.fail(key, "'" + wrong + "' in '" + std::string(key) + "' is no layer",
                  std::string(workloads::pattern_letters));
    return out;
  }
  std::optional<Ablation> read(std::string_view key, const Ablation&, Range) {
    return table_.value(key) != nullptr ? std::optional(read_without(table_)) : std::nullopt;
  }
  std::optional<Row> read(std::string_view key, const Row&, Range) {
    const TomlValue* found = table_.value(key);
    if (found == nullptr) return std::nullopt;
    return row_of(key, *found, "an array of whole numbers", "e.g. [7, 8, 8, 7]");
  }
  std::optional<Matrix> read(std::string_view key, const Matrix&, Range) {
    const TomlValue* rows = table_.value(key);
    if (rows == nullptr) return std::nullopt;
    constexpr const char* shape = "rows of integers, [[0, 1], [1, 0]]";
    if (rows->array() == nullptr) refuse(key, shape);
    Matrix out;
    for (const TomlValue& row : *rows->array()) out.push_back(row_of(key, row, shape));
    return out;
  }
  std::optional<std::vector<double>> read(std::string_view key, const std::vector<double>&, Range) {
    const TomlValue* found = table_.value(key);
    if (found == nullptr || found->text() != nullptr) return std::nullopt;  // a file, read by hand
    const auto fail = [&] { refuse(key, "an array of numbers", "e.g. [120, 80, 100, 100]"); };
    if (found->array() == nullptr) fail();
    std::vector<double> out;
    for (const TomlValue& cell : *found->array()) {
      const auto* whole = std::get_if<std::int64_t>(&cell.data);
      const auto* real = std::get_if<double>(&cell.data);
      if (whole == nullptr && real == nullptr) fail();
      out.push_back(whole != nullptr ? static_cast<double>(*whole) : *real);
      if (!(out.back() >= 0.0)) fail();
    }
    return out;
  }
  Row row_of(std::string_view key, const TomlValue& value, const char* shape,
             const char* hint = "") {
    if (value.array() == nullptr) refuse(key, shape, hint);
    Row out;
    for (const TomlValue& cell : *value.array()) {
      const auto* count = std::get_if<std::int64_t>(&cell.data);
      if (count == nullptr || *count < 0) refuse(key, shape, hint);
      out.push_back(*count);
    }
    return out;
  }
  [[noreturn]] void refuse(std::string_view key, const char* shape, const char* hint = "") {
    table_.fail(key, table_.label(key) + " must be " + shape, hint);
  }

  TableReader& table_;
  bool complete_;
  std::string also_;
};

/// Asks for every member without reading it, so that a missing one is not mistaken for a neighbour
/// that has yet to be read (nic and nics).
class MemberKeys : public MemberVisitor<MemberKeys> {
 public:
  explicit MemberKeys(TableReader& table) : table_(table) {}

  template <class... T>
  void member(const Key& key, const T&...) {
    part(key);
  }
  void part(const Key& key) { table_.value(key.name); }

 private:
  TableReader& table_;
};

/// The members that an entry needs and `table` does not have.
class MissingMembers : public MemberVisitor<MissingMembers> {
 public:
  MissingMembers(TableReader& table, std::vector<std::string>& names)
      : table_(table), names_(names) {}

  template <class... T>
  void member(const Key& key, Bound bound, const T&...) {
    if (bound == Bound::needed && table_.value(key.name) == nullptr) names_.emplace_back(key.name);
  }
  void part(const Key&) {}

 private:
  TableReader& table_;
  std::vector<std::string>& names_;
};

/// `visit` calls one of members.hpp with the visitor that it is given.
template <class Visit>
void read_members(TableReader& table, bool complete, Visit visit) {
  visit(MemberKeys(table));
  std::vector<std::string> missing;
  if (complete) visit(MissingMembers(table, missing));
  std::string also;
  for (std::size_t i = 1; i < missing.size(); ++i)
    also += (also.empty() ? "as are " : ", ") + missing[i];
  visit(MemberReader(table, complete, also));
}

}  // namespace stepcast::sim
