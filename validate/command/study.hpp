// The study's own figures beside what stepcast simulates for them.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "sim/study/results.hpp"

namespace stepcast::validate {

/// weak_scaling.toml and collectives.toml of the catalogue: the studies whose figures are known.
std::vector<std::string> study_files(const sim::Catalogue& catalogue);

/// Simulates every point of a scenario file.
sim::Results run_study(const std::string& path, const sim::Catalogue& catalogue, unsigned threads,
                       bool quiet);

/// Title and the [[reference]] tables, measured beside simulated.
std::string study_text(const sim::Results& results);

}  // namespace stepcast::validate
