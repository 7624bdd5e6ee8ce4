// NCCL's own tuning table beside our restatement of it: latency and bandwidth of every algorithm
// and protocol, and whether the same ones win at every size. No measurement enters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/nccl/tuning.hpp"
#include "sim/tables/calibration_table.hpp"
#include "topology/specs.hpp"

namespace stepcast::calibrate {

struct NcclFigures {
  Duration latency{};
  BytesPerSecond bandwidth{};  // of long messages
};

struct TuningLine {
  std::string collective, algorithm, protocol;
  NcclFigures nccl, ours;  // a bandwidth of 0: not offered
};

struct ChoiceLine {
  std::string collective;
  Bytes bytes{};
  bool logged = false;     // NCCL said so for a call; else it follows from its table
  std::string nccl, ours;  // "ring ll128"
  bool agree() const { return nccl == ours; }
};

/// One communicator shape of one NCCL version.
struct TuningComparison {
  std::string nccl;  // as the log says
  std::string key;   // of our constants
  std::string node;
  std::int64_t ranks = 0, nodes = 0;
  std::vector<TuningLine> figures;
  std::vector<ChoiceLine> choices;
};

/// Every shape that the table holds figures or choices of, as run on `node`. The constants come
/// from `directory` (scenarios/nccl). What its table makes NCCL choose is asked at 4 KiB to 1 GiB,
/// in steps of 4; how Tree loses bandwidth and Ring gains latency with the size is taken from ours.
std::vector<TuningComparison> compare_tuning(const sim::CalibrationTable& table,
                                             const topology::NodeSpec& node,
                                             const std::string& directory);

std::string to_text(const TuningComparison& comparison);

}  // namespace stepcast::calibrate
