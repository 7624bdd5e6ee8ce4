// Measured matrix products and attention kernels beside the kernel model.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/compare/measurements.hpp"

namespace stepcast::validate {

/// What a prediction does not see.
enum class LeaveOut : std::uint8_t {
  source,  // all rows of the row's own source; only its shape where no other source has that GPU
  shape,   // the rows of this very shape
  gpu,     // all rows of the row's own chip
};

/// Every gemm, grouped_gemm, attention and rmsnorm row of `rows`, predicted from `known` and from
/// the other rows.
Comparison compare_kernels(const std::string& file, const std::vector<MeasuredRow>& rows,
                           const sim::CalibrationTable& known, const sim::Catalogue& catalogue,
                           LeaveOut leave_out = LeaveOut::source);

/// A card counts from so many products on.
inline constexpr std::size_t rows_of_a_card = 30;

/// Of one card how far its products are off (median |error|), and the share of them inside the bar
/// of this level that the errors of all other cards make that count, each card weighing the same.
struct CardCoverage {
  std::string gpu;
  std::size_t rows = 0;
  double median = 0, covered = 0;
};
std::vector<CardCoverage> coverage_of_cards(const Comparison& comparison, double level);

}  // namespace stepcast::validate
