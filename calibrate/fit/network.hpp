// Fits the constants of the network model (sim/network/constants.hpp) on measured collectives: one
// set for all rows, the sum of absolute logarithmic errors as small as it gets.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "calibrate/import/collective_case.hpp"
#include "calibrate/import/crossovers.hpp"
#include "sim/network/constants.hpp"

namespace stepcast::calibrate {

/// What is left between the fitted model and one group of rows.
struct FitResidual {
  std::string group;  // "Hopper allreduce infiniband, from 1 MiB"
  std::size_t rows = 0;
  double median = 0, mean = 0, bias = 0;  // of errors; see error_of()
};

struct FittedConstant {
  std::string name;  // "hopper.ring_step"
  double before = 0, after = 0;
  std::size_t rows = 0;  // predictions that it moves
  bool held = false;     // too few rows: left as it was
};

struct NetworkFit {
  sim::NetworkConstants constants;
  std::vector<FittedConstant> fitted;
  std::vector<FitResidual> residuals;
  std::size_t rows = 0;
  double objective_before = 0, objective_after = 0;  // mean absolute log error
};

struct FitOptions {
  std::string nccl = "2.20";   // of rows that state no version
  std::size_t least_rows = 4;  // a constant that moves fewer predictions is held
  std::int64_t evaluations = 40000;
  /// Left as they are. The trees' share of NVLink: that of A100's ring, as the trees over 64 nodes
  /// and more, which it moves, are slow for reasons of their own. The trees' share of NICs: only
  /// rows over EFA show it, and efa.tree is the same factor there. efa.tree: A100's rows over two
  /// nodes show it, 0.834 with efa.bandwidth; trees over 4 and more nodes of H100 are slower for a
  /// reason that is not known. LL's share with trees: RoCE's few rows alone show it. Copies between
  /// a buffer and a list: a copy is measured by itself, 2,900 GB/s of reading and writing on an
  /// H100 (Azure's BabelStream row of calibrate/published/kernels.csv).
  std::set<std::string> hold{"shared.nvlink_tree", "shared.nic_tree", "shared.nic_ll", "efa.tree",
                             "measurement.list_copy"};
  std::string nccl_of_crossovers = "2.23";  // aws-ofi-nccl's tuner of 2024-11
};

/// What a fit rests on: times, and sizes at which two times are equal.
struct NetworkEvidence {
  std::vector<sim::CollectiveRow> rows;
  std::vector<Crossover> crossovers;
};

/// Rows of high or medium confidence that have a machine. A peak without a size is read as reached
/// at 8 GiB, for the fit alone. A crossover's error is the ratio of its two times.
NetworkFit fit_network(const NetworkEvidence&, const sim::Catalogue& catalogue,
                       const sim::NetworkConstants& start, const FitOptions& options = {});

/// How well constants fitted without a source predict that source.
struct LeftOut {
  std::string source;
  std::size_t rows = 0;
  double median_seen = 0, median_unseen = 0;  // errors with, and without, the source in the fit
};

/// One fit per source, each without it.
std::vector<LeftOut> cross_validate(const NetworkEvidence&, const sim::Catalogue& catalogue,
                                    const sim::NetworkConstants& start,
                                    const FitOptions& options = {});

std::string to_text(const std::vector<LeftOut>& sources);

/// The file of constants, with residuals.
std::string to_toml(const NetworkFit& fit, const std::string& source);

/// Constants and residuals as a table for people.
std::string to_text(const NetworkFit& fit);

}  // namespace stepcast::calibrate
