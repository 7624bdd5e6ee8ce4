// Two calibration tables side by side: what only one of them knows, and how their times differ.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// How one family's rows of equal key compare; ratios are times of the second table over the first.
struct FamilyDiff {
  std::string family;
  std::size_t both = 0, only_first = 0, only_second = 0;
  std::size_t timed = 0;         // of those in both, such with a figure on both sides
  double median_ratio = 1.0;     // of these
  double median_distance = 0.0;  // of |ratio - 1|
  double worst_ratio = 1.0;      // furthest from 1
  std::string worst;             // what that row is
};

std::vector<FamilyDiff> diff(const sim::CalibrationTable& first,
                             const sim::CalibrationTable& second);

std::string to_text(const std::vector<FamilyDiff>& families);

}  // namespace stepcast::calibrate
