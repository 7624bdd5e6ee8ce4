#include "sim/files/toml_table.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {
namespace {

/// A share as people write it: "90 %" is 0.9.
std::optional<double> share_in(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(text.ends_with(" %") ? 2 : 1);
  const auto percent = number_in<double>(text);
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

/// A user's word in a message: one line, not a page.
std::string shortened(std::string_view word) {
  constexpr std::size_t longest = 60;
  return word.size() <= longest ? std::string(word) : std::string(word.substr(0, longest)) + "...";
}

/// "4k", "2M": a number and the letter of a power of ten, or of two.
bool is_abbreviated(std::string_view text) {
  if (text.size() < 2 || std::string_view("kKMG").find(text.back()) == std::string_view::npos)
    return false;
  text.remove_suffix(1);
  return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

TableReader::TableReader(const TomlValue& table, std::string name)
    : table_(table), name_(std::move(name)) {
  if (table.table() == nullptr)
    throw InputError(table.where,
                     "[" + name_ + "] must be a table, not " + std::string(kind_of(table)));
}

const TomlValue* TableReader::value(std::string_view key) {
  asked_.emplace_back(key);
  return table_.find(key);
}

const TomlValue* TableReader::table(std::string_view key) {
  const TomlValue* found = value(key);
  if (found != nullptr && found->table() == nullptr) wrong_type(*found, key, "a table");
  return found;
}

std::optional<std::string> TableReader::text(std::string_view key) {
  const TomlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  return text_of(*found, key);
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t least) {
  const TomlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(&found->data);
  if (integer == nullptr && found->text() != nullptr && is_abbreviated(*found->text()))
    throw InputError(found->where, label(key) + " is \"" + *found->text() + "\"",
                     "write the number out: k may be 1000 or 1024");
  if (integer == nullptr) wrong_type(*found, key, "an integer");
  if (*integer < least)
    throw InputError(found->where, label(key) + " must be at least " + std::to_string(least) +
                                       ", not " + std::to_string(*integer));
  // Products of a few sizes must stay within 63 bits.
  constexpr std::int64_t most = 1'000'000'000'000;
  if (*integer > most)
    throw InputError(found->where, label(key) + " is too large: " + std::to_string(*integer));
  return *integer;
}

std::optional<double> TableReader::number(std::string_view key, Range range) {
  const TomlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  double number = 0;
  if (const auto* real = std::get_if<double>(&found->data))
    number = *real;
  else if (const auto* integer = std::get_if<std::int64_t>(&found->data))
    number = static_cast<double>(*integer);
  else if (const auto share = found->text() ? share_in(*found->text()) : std::nullopt)
    number = *share;
  else
    wrong_type(*found, key, "a number");
  if (!std::isfinite(number) || std::abs(number) > 1e18)
    throw InputError(found->where, label(key) + " is not a usable number");
  check_range(*found, key, number < 0, number == 0, range);
  return number;
}

std::optional<bool> TableReader::flag(std::string_view key) {
  const TomlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(&found->data);
  if (flag == nullptr) wrong_type(*found, key, "true or false");
  return *flag;
}

std::optional<std::vector<std::string>> TableReader::texts(std::string_view key) {
  const TomlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->array() == nullptr) wrong_type(*found, key, "an array of strings");
  std::vector<std::string> out;
  for (const TomlValue& item : *found->array()) out.push_back(text_of(item, key));
  return out;
}

void TableReader::finish() const {
  for (const TomlEntry& entry : *table_.table())
    if (std::find(asked_.begin(), asked_.end(), entry.key) == asked_.end()) unknown(entry);
}

void TableReader::unknown(const TomlEntry& entry) const {
  const std::string place = name_.empty() ? "" : " in [" + name_ + "]";
  throw InputError(entry.where, "unknown key '" + shortened(entry.key) + "'" + place,
                   suggestion(entry.key, asked_));
}

void TableReader::missing(std::string_view key, const std::string& hint) const {
  // A misspelt key is the likelier mistake than a forgotten one.
  const std::vector<std::string> wanted{std::string(key)};
  for (const TomlEntry& entry : *table_.table()) {
    const bool asked = std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end();
    if (!asked && closest(entry.key, wanted)) unknown(entry);
  }
  throw InputError(table_.where, "missing key " + label(key), hint);
}

void TableReader::fail(std::string_view key, const std::string& what,
                       const std::string& hint) const {
  throw InputError(where(key), what, hint);
}

std::string TableReader::where(std::string_view key) const {
  for (const TomlEntry& entry : *table_.table())
    if (entry.key == key) return entry.where;
  return table_.where;
}

std::string TableReader::label(std::string_view key) const {
  return "'" + std::string(key) + "'" + (name_.empty() ? "" : " in [" + name_ + "]");
}

std::string TableReader::text_of(const TomlValue& found, std::string_view key) const {
  if (found.text() == nullptr) wrong_type(found, key, "a string");
  if (found.text()->empty()) throw InputError(found.where, label(key) + " is empty");
  return *found.text();
}

std::string TableReader::quantity_text(const TomlValue& found, std::string_view key,
                                       std::string_view example, bool bare) const {
  const bool number = std::holds_alternative<std::int64_t>(found.data) ||
                      std::holds_alternative<double>(found.data);
  if (number && bare) return write_toml_value(found);
  if (number)
    throw InputError(found.where, label(key) + " needs a unit",
                     "e.g. \"" + std::string(example) + "\"");
  return text_of(found, key);
}

void TableReader::check_range(const TomlValue& found, std::string_view key, bool negative,
                              bool zero, Range range) const {
  if (negative) throw InputError(found.where, label(key) + " is negative");
  if (zero && range == Range::positive)
    throw InputError(found.where, label(key) + " is zero", "it must be positive");
}

void TableReader::wrong_type(const TomlValue& found, std::string_view key,
                             std::string_view wanted) const {
  throw InputError(found.where, label(key) + " must be " + std::string(wanted) + ", not " +
                                    std::string(kind_of(found)));
}

void TableReader::refuse_choice(const TomlValue& found, std::string_view key,
                                const std::string& word,
                                const std::vector<std::string>& names) const {
  throw InputError(found.where, label(key) + " cannot be '" + shortened(word) + "'",
                   suggestion(word, names));
}

}  // namespace stepcast::sim
