#include "validate/trace/records/numbers.hpp"

#include <charconv>
#include <cmath>

namespace stepcast::validate {

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds) {
  // Differences and sums of such times fit into 64 bits as ns; the clock reads 1.8e15 in 2026.
  constexpr std::int64_t largest = 4'000'000'000'000'000, least = -1'000'000'000'000'000;
  if (microseconds.find_first_of("eE") != std::string_view::npos) {
    double value = 0;
    const char* last = microseconds.data() + microseconds.size();
    const auto [end, error] = std::from_chars(microseconds.data(), last, value);
    if (error != std::errc{} || end != last ||
        !(value <= static_cast<double>(largest) && value >= static_cast<double>(least)))
      return std::nullopt;
    return static_cast<std::int64_t>(std::llround(value * 1000));
  }
  const std::size_t point = microseconds.find('.');
  const auto whole = integer_of(microseconds.substr(0, point));
  if (!whole || *whole > largest || *whole < least) return std::nullopt;
  std::string digits =
      point == std::string_view::npos ? "" : std::string(microseconds.substr(point + 1));
  if (point != std::string_view::npos && digits.empty()) return std::nullopt;
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  digits.resize(3, '0');
  const std::int64_t rest = *integer_of(digits);
  return *whole * 1000 + (microseconds.starts_with('-') ? -rest : rest);
}

std::optional<double> leading_number(std::string_view text) {
  std::string digits;
  const std::size_t first = text.find_first_not_of(" \t");
  for (std::size_t i = first; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit =
        (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
    if (c != ',' && !digit) break;
    if (digit) digits += c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string out;
  for (const char c : text.substr(0, longest)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return text.size() > longest ? out + "..." : out;
}

}  // namespace stepcast::validate
