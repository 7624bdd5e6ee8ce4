// The output folder of --out: the resolved scenario, and the results as JSON and HDF5.
#pragma once

#include <string>

#include "sim/results.hpp"

namespace stepcast::sim {

/// Makes the folder and proves that it can be written. Throws InputError (where: --out).
void prepare_output(const std::string& directory);

/// scenario.toml (reads back to the same scenario, or to the same sweep), results.json, results.h5,
/// and for a sweep points/0001.toml ... with every point resolved.
void write_output(const std::string& directory, const Results& results);

/// One group /points with one dataset per swept key and metric, units as attributes; readable with
/// h5py. Refused points have NaN and their reason in the column `refused`.
void write_hdf5(const std::string& path, const Results& results);

}  // namespace stepcast::sim
