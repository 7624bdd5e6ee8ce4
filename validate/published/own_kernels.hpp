// Whether a forecast of a published run may rest on kernels that its own source has measured: then
// it is no forecast of an unknown.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::validate {

class OwnKernels {
 public:
  explicit OwnKernels(const sim::CalibrationTable& table);

  /// `url`: where a published row comes from; `gpu`: its GPU in the catalogue. A source is a
  /// repository, a page or a document (calibrate/rows/source_key.hpp).
  bool measured(const std::string& url, const std::string& gpu) const;

 private:
  std::map<std::string, std::set<std::string>> gpus_;  // measured ones, by source
};

}  // namespace stepcast::validate
