// Strict reading of one TOML table: every key must be asked for, every value has its type, unit and
// range, and every mistake names file and line. Knows no scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/units.hpp"
#include "engine/units_text.hpp"
#include "sim/files/suggest.hpp"
#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

/// What a quantity may be: sizes are positive; a peak that a GPU lacks, or a latency, may be zero.
enum class Range : std::uint8_t { positive, not_negative };

class TableReader {
 public:
  /// `name` is the path of the table, "cluster.fabric"; empty for the document itself.
  TableReader(const TomlValue& table, std::string name);

  /// Each asks for a key: none when it is not there, InputError when it is there and wrong.
  const TomlValue* value(std::string_view key);
  const TomlValue* table(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least = 1);
  std::optional<double> number(std::string_view key, Range range = Range::positive);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);

  template <class Q>
  std::optional<Q> quantity(std::string_view key, Range range = Range::positive) {
    const TomlValue* found = value(key);
    if (found == nullptr) return std::nullopt;
    const Q q = parse<Q>(quantity_text(*found, key, example_of(Q{}), std::is_same_v<Q, Count>),
                         found->where);
    check_range(*found, key, q < Q{}, q == Q{}, range);
    return q;
  }

  /// One of a closed set of names.
  template <class Choices>
  auto choice(std::string_view key, const Choices& choices)
      -> std::optional<typename Choices::value_type::second_type> {
    const TomlValue* found = value(key);
    if (found == nullptr) return std::nullopt;
    const std::string word = text_of(*found, key);
    std::vector<std::string> names;
    for (const auto& [name, meaning] : choices) {
      if (word == name) return meaning;
      names.emplace_back(name);
    }
    refuse_choice(*found, key, word, names);
  }

  /// Unwraps a key that must be there.
  template <class T>
  T required(std::string_view key, std::optional<T> found) {
    if (!found) missing(key);
    return *std::move(found);
  }
  template <class T>
  const T* required(std::string_view key, const T* found) {
    if (found == nullptr) missing(key);
    return found;
  }

  /// Throws at the first key that nobody asked for, suggesting one that was.
  void finish() const;

  /// InputError at a key, or at the table when the key is not there.
  [[noreturn]] void fail(std::string_view key, const std::string& what,
                         const std::string& hint = {}) const;
  [[noreturn]] void missing(std::string_view key, const std::string& hint = {}) const;

  /// A key that says something else than what holds without it.
  void note_change(std::string_view key) { changes_.push_back(name_ + "." + std::string(key)); }
  const std::vector<std::string>& changes() const { return changes_; }

  const std::string& where() const { return table_.where; }
  std::string where(std::string_view key) const;
  const std::string& name() const { return name_; }
  /// "'tensor' in [plan]".
  std::string label(std::string_view key) const;

  static std::string_view example_of(Bytes) { return "64 MiB"; }
  static std::string_view example_of(Duration) { return "1.5 us"; }
  static std::string_view example_of(BytesPerSecond) { return "50 GB/s"; }
  static std::string_view example_of(FlopsPerSecond) { return "312 TFLOP/s"; }
  static std::string_view example_of(Watts) { return "700 W"; }
  static std::string_view example_of(Hertz) { return "1410 MHz"; }
  static std::string_view example_of(Usd) { return "46000 USD"; }
  static std::string_view example_of(UsdPerHour) { return "2.5 USD/h"; }
  static std::string_view example_of(UsdPerKwh) { return "0.08 USD/kWh"; }
  static std::string_view example_of(GramsPerKwh) { return "369 g/kWh"; }
  static std::string_view example_of(Count) { return "15T"; }

 private:
  std::string text_of(const TomlValue& found, std::string_view key) const;
  /// `bare`: a number without a unit will do.
  std::string quantity_text(const TomlValue& found, std::string_view key, std::string_view example,
                            bool bare) const;
  void check_range(const TomlValue& found, std::string_view key, bool negative, bool zero,
                   Range range) const;
  [[noreturn]] void wrong_type(const TomlValue& found, std::string_view key,
                               std::string_view wanted) const;
  [[noreturn]] void refuse_choice(const TomlValue& found, std::string_view key,
                                  const std::string& word,
                                  const std::vector<std::string>& names) const;
  [[noreturn]] void unknown(const TomlEntry& entry) const;

  const TomlValue& table_;
  std::string name_;
  std::vector<std::string> asked_, changes_;
};

}  // namespace stepcast::sim
