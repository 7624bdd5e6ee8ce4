// Which rows come from the same source, so that a row is not predicted from its own sisters.
#pragma once

#include <string>
#include <vector>

#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// The repository, page or document of a reference, without the path inside it or its version:
/// "github:NVIDIA/cudnn-frontend@v1.5.0 benchmark/x.csv" and "... other.csv" are one source. One
/// source under two names is not noticed.
std::string source_key(const sim::RowSource& source);

template <class Row>
std::vector<Row> without_source(const std::vector<Row>& rows, const std::string& key) {
  std::vector<Row> out;
  for (const Row& row : rows)
    if (source_key(*row.source) != key) out.push_back(row);
  return out;
}

}  // namespace stepcast::calibrate
