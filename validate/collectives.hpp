// Measured collectives beside the network model.
#pragma once

#include <string>
#include <vector>

#include "sim/catalogue.hpp"
#include "validate/comparison.hpp"
#include "validate/measurements.hpp"

namespace stepcast::validate {

struct CollectiveOptions {
  std::string nccl = "2.20";  // of rows that state no version
  /// Circular: also the curves of the row's own source. Else they are left out.
  bool with_curves = false;
};

/// Every collective of `rows`, predicted from `known` and from the other rows. A row that the model
/// has no machine for is kept with its reason.
Comparison compare_collectives(const std::string& file, const std::vector<MeasuredRow>& rows,
                               const sim::CalibrationTable& known, const sim::Catalogue& catalogue,
                               const CollectiveOptions& options = {});

}  // namespace stepcast::validate
