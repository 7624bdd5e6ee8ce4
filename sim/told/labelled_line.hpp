// A line of a report: its label in a column of one width, then its value.
#pragma once

#include <fmt/format.h>

#include <string>

namespace stepcast::sim {

inline constexpr int label_width = 22;

inline std::string labelled_line(const std::string& label, const std::string& value) {
  return fmt::format("{:<{}}{}\n", label, label_width, value);
}

}  // namespace stepcast::sim
