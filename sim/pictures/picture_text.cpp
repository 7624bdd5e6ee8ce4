#include "sim/pictures/picture_text.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

// Of 12 units: sans-serif fonts take 5.5 to 6.7 on average of lower-case text and digits.
constexpr double letter_width = 7;

/// UTF-8: bytes that go on with a letter are not counted.
bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::vector<double> round_ticks(double low, double high, std::size_t most) {
  expects(low < high && most > 1, "an axis with a length");
  const double least = (high - low) / static_cast<double>(most - 1);
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  double step = 10 * decade;
  for (const double digit : {5.0, 2.0, 1.0})
    if (digit * decade >= least) step = digit * decade;
  std::vector<double> out;
  constexpr double slack = 1e-9;  // of a step: 0.3 is no multiple of 0.1
  for (double n = std::ceil(low / step - slack); n <= high / step + slack; ++n)
    out.push_back(n == 0 ? 0 : n * step);  // no "-0"
  return out;
}

std::vector<double> decade_ticks(double low, double high) {
  expects(low > 0 && low <= high, "an axis above nothing");
  std::vector<double> out;
  for (double decade = std::floor(std::log10(low)); decade <= std::log10(high); ++decade)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10.0, decade);
      if (tick >= low && tick <= high) out.push_back(tick);
    }
  return out;
}

double text_width(const std::string& text) {
  return letter_width * static_cast<double>(std::ranges::count_if(text, begins_letter));
}

std::string cut_text(const std::string& text, double width) {
  if (text_width(text) <= width) return text;
  std::string out;
  for (const char c : text) {
    if (begins_letter(c) && text_width(out) + 2 * letter_width > width) break;
    out += c;
  }
  return out + "\u2026";
}

std::vector<std::string> wrapped_text(const std::string& text, double width, std::size_t most) {
  std::vector<std::string> out;
  std::string rest = text;
  while (text_width(rest) > width && out.size() + 1 < most) {
    std::size_t at = std::string::npos;
    for (std::size_t blank = rest.find(' '); blank != std::string::npos;
         blank = rest.find(' ', blank + 1)) {
      if (text_width(rest.substr(0, blank)) > width) break;
      at = blank;
    }
    if (at == std::string::npos) break;
    out.push_back(rest.substr(0, at));
    rest.erase(0, at + 1);
  }
  out.push_back(cut_text(rest, width));
  return out;
}

bool TextBox::overlaps(const TextBox& other) const {
  return left < other.left + other.width && other.left < left + width &&
         top < other.top + other.height && other.top < top + height;
}

}  // namespace stepcast::sim
