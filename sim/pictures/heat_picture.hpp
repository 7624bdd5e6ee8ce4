// A grid of values: the larger, the larger the square in its cell, with the number below, so that
// it is read without colours. Knows no quantity.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stepcast::sim {

struct HeatPicture {
  std::string title;
  std::string rows_name, columns_name;
  std::vector<std::string> rows{}, columns{};
  std::vector<std::vector<std::optional<double>>> values{};  // [row][column]; none: no answer
  std::vector<std::vector<std::string>> texts{};             // what stands below the squares
};

/// The least value is marked by a frame.
std::string heat_picture(const HeatPicture& picture);

}  // namespace stepcast::sim
