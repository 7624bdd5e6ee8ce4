// Measurements of any format that is understood, as one calibration table: CSV in our columns,
// nccl-tests as text or JSON, NCCL's own log. The format is told by the content.
#pragma once

#include <span>
#include <string>

#include "calibrate/rows/cluster_facts.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

struct Import {
  sim::CalibrationTable table;
  std::string report;  // lines: what each log gave, and what was ignored; none for CSV
};

/// Imports files in order; all rows are kept, also repeated ones. InputError on what is none of the
/// formats.
Import import_files(std::span<const std::string> paths, const ClusterFacts& facts = {});

}  // namespace stepcast::calibrate
