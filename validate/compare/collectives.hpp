// Measured collectives beside the network model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/compare/measurements.hpp"

namespace stepcast::validate {

/// Which measured curves a prediction may draw on.
enum class Curves : std::uint8_t {
  other_sources,  // of the known table, but for the row's own source
  none,           // the model alone
  all,            // circular: also the row's own source, and this file
};

struct CollectiveOptions {
  std::string nccl = "2.20";  // of rows that state no version
  Curves curves = Curves::other_sources;
};

/// Every collective of `rows`, predicted as its benchmark would report it. A row that the model has
/// no machine for is kept with its reason.
Comparison compare_collectives(const std::string& file, const std::vector<MeasuredRow>& rows,
                               const sim::CalibrationTable& known, const sim::Catalogue& catalogue,
                               const CollectiveOptions& options = {});

}  // namespace stepcast::validate
