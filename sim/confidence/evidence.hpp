// What scenarios/confidence holds: residuals, pairs of plans and the shift, with the date and the
// version that they were made with. One command writes all of it: stepcast-validate confidence
// --write.
#pragma once

#include <string>
#include <vector>

#include "sim/run/residuals.hpp"

namespace stepcast::sim {

struct Evidence {
  std::vector<Residual> steps, memory, collectives;
  // ln(card / forecast): of plans that died, and of those that ran without a reported peak.
  std::vector<Residual> died, fitted;
  std::vector<PairCount> pairs;
  double shift = 1;           // Growth::source, see interval.hpp
  double unmeasured_gpu = 1;  // Growth::gpu
  std::string date, version;
};

/// The files of a folder, there or not.
std::vector<std::string> evidence_files(const std::string& folder);

// Each throws InputError with file:line.

Evidence read_evidence(const std::string& folder);
/// Without its residuals.
Evidence read_outline(const std::string& folder);
/// One of its tables of residuals: &Evidence::steps.
using EvidenceTable = std::vector<Residual> Evidence::*;
std::vector<Residual> read_table(const std::string& folder, EvidenceTable table);

/// Date and version are written where the rest has changed, or where nothing is there yet. Throws
/// OutputError.
void write_evidence(const std::string& folder, const Evidence& evidence);

}  // namespace stepcast::sim
