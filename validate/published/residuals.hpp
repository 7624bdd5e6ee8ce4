// The residuals and pairs that scenarios/confidence ships, made anew: every shipped table of
// measurements predicted, and kernels predicted with and without their own source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/confidence/evidence.hpp"
#include "sim/run/session.hpp"
#include "validate/published/published.hpp"

namespace stepcast::validate {

std::vector<sim::Residual> step_residuals(const std::vector<PublishedResult>& results);
/// Of the rows that ran and report a peak.
std::vector<sim::Residual> memory_residuals(const std::vector<PublishedResult>& results);

/// Of a table of what_ran.csv the peaks of rows that ran, but those whose unit is open.
std::vector<sim::Residual> peak_residuals(const std::vector<PublishedResult>& results);

/// ln(card / forecast) of plans that died, or of those that ran and report no peak.
std::vector<sim::Residual> card_residuals(const std::vector<PublishedResult>& results, bool died);

/// How much larger the median error of a kernel becomes when its whole source is left out instead
/// of its shape alone: of the same rows both ways, the median of the ratios over GPUs and kernels
/// of five rows or more. At least 1.
double shift_of_kernels(const std::string& kernels_csv, const sim::Catalogue& catalogue);

/// The same where no row of the GPU is left, the median over the tables of products in `folder`.
double growth_on_unmeasured(const std::string& folder, const sim::Catalogue& catalogue);

/// `training`, `sweep`, `modern`, `what_ran`: their results; plans are compared of the first two,
/// and of the last peaks alone are taken, and what ran or died. `measurements`: the folder of
/// collectives.csv and kernels.csv. Without date and version.
sim::Evidence evidence_of(const std::vector<PublishedResult>& training,
                          const std::vector<PublishedResult>& sweep,
                          const std::vector<PublishedResult>& modern,
                          const std::vector<PublishedResult>& what_ran,
                          const std::string& measurements, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
