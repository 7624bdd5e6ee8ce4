// The reports in the folder of --out: the resolved scenario, and the results as JSON and HDF5.
// Whose the folder is, and what else lies there: sim/output/folder.hpp.
#pragma once

#include <string>

#include "sim/study/output_place.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

/// scenario.toml (reads back to the same scenario, or to the same sweep), results.json, results.h5:
/// all of them or none. results.h5 has one group /points with one dataset per swept key and metric,
/// units as attributes; readable with h5py. Points without an answer have NaN, and their reason in
/// the column `refused` or `failed`. Throws OutputError.
void write_reports(const std::string& folder, OutputMark mark, const Results& results);

}  // namespace stepcast::sim
