#include "sim/scripts/settings.hpp"

#include <cmath>

#include "sim/files/numbers.hpp"

namespace stepcast::sim {

std::optional<bool> flag_in(std::string_view text) {
  for (const std::string_view word : {"True", "true", "yes", "Yes", "on"})
    if (text == word) return true;
  for (const std::string_view word : {"False", "false", "no", "No", "off"})
    if (text == word) return false;
  return std::nullopt;
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  if (const auto whole = number_in<std::int64_t>(text)) return whole;
  constexpr double largest = 9e15;  // whole numbers of a double
  const auto real = number_in<double>(text);
  if (!real || std::abs(*real) > largest || std::floor(*real) != *real) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

const std::string* Settings::find(const std::string& name) const {
  const auto at = values_.find(name);
  const bool said =
      at != values_.end() && !at->second.empty() && at->second != "None" && at->second != "null";
  return said ? &at->second : nullptr;
}

std::optional<std::int64_t> Settings::integer(const std::string& name) const {
  const std::string* text = find(name);
  return text == nullptr ? std::nullopt : integer_in(*text);
}

std::optional<double> Settings::number(const std::string& name) const {
  const std::string* text = find(name);
  return text == nullptr ? std::nullopt : number_in<double>(*text);
}

std::optional<bool> Settings::flag(const std::string& name) const {
  const std::string* text = find(name);
  return text == nullptr ? std::nullopt : flag_in(*text);
}

void Settings::add(const Settings& others) {
  for (const auto& [name, value] : others.values_) values_[name] = value;
}

}  // namespace stepcast::sim
