// Published interruptions and goodput of clusters and runs, a line of goodput.csv each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"

namespace stepcast::validate {

struct GoodputRow {
  std::string id, kind, source, url;  // kind: run, cluster, jobs, projection (the source's own)
  double gpus = 0, gpus_per_node = 8;
  std::optional<double> days, interruptions;  // counted over that time
  std::optional<double> between_h;            // mean time between interruptions of all GPUs
  std::optional<double> per_1000_node_days;   // as the source states it
  std::optional<double> ettr;                 // share of wall time
  bool at_least = false;                      // it is a bound from below
  std::optional<double> restart_s, checkpoint_s;
  std::string assumed;  // columns that the source does not state
  std::string notes;

  double nodes() const { return gpus / gpus_per_node; }
  /// Stated, counted or from the time between; none where the source says nothing.
  std::optional<double> rate() const;
};

/// Throws InputError (file:line).
std::vector<GoodputRow> goodput_rows(const sim::CsvFile& file);

}  // namespace stepcast::validate
