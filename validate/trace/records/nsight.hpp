// What Nsight Systems recorded, from `nsys export --type sqlite`: one RankTrace per process that
// ran kernels. Knows no steps and no model.
#pragma once

#include <string>
#include <vector>

#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

/// Whether the file is a SQLite database.
bool is_sqlite(TraceFile& file);

/// Tables and columns as NVIDIA's "SQLite Export Schema Reference" (nsys-exporter, 2021.5) has
/// them; those that an older or newer nsys does not write are done without. Ranks and process
/// groups stand in no table. Throws InputError for a database of something else, a damaged one, one
/// without kernels, and one whose CUDA graphs were recorded as a whole.
std::vector<RankTrace> read_nsight(const std::string& path);

}  // namespace stepcast::validate
