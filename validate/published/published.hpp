// Published training runs beside what stepcast predicts for them: one scenario per row, no tuning
// by row or source, and beside it the one-constant baseline that every model must beat.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/confidence/case.hpp"
#include "sim/run/session.hpp"
#include "validate/published/scenario.hpp"
#include "validate/rows/row.hpp"

namespace stepcast::validate {

struct PublishedResult {
  PublishedRow row;
  std::string gpu_kind;  // "A100": rows of one kind share a constant of the baseline
  std::string kind;      // "dense 16 bit", "dense mxfp8", "MoE fp8", ...
  Bucket bucket = Bucket::none;
  bool in_scope = false;  // of the bucket that is scored
  double measured_s = 0;  // of one step; from tokens/s where no time is stated. 0: neither
  std::optional<double> predicted_s;
  double parameters = 0;             // of the row, or of the shape it states
  std::optional<double> baseline_s;  // one MFU per kind of GPU, fitted on the rows in scope
  std::optional<double> memory_gib;  // of the fullest GPU
  bool own_kernels = false;          // kernels of its GPU are known from its own source
  sim::Case forecast;                // what kind of forecast it is, where there is one
  double allocated_gib = 0, reserved_gib = 0, process_gib = 0, needed_gib = 0;
  /// Of a figure of PublishedRow::mem_figure; where that does not say which, the sum of the parts.
  double memory_of(const std::string& figure) const;
  double reported_memory_gib() const { return memory_of(row.mem_figure); }
  double memory_error() const { return reported_memory_gib() / *row.mem_gib_per_gpu - 1.0; }
  double gpu_memory_gib = 0;          // what that GPU has
  double p_fits = 1;                  // see p_fits()
  std::string refused;                // why there is no prediction
  bool aside = false;                 // refused for a GPU that is counted apart
  std::vector<std::string> assumed;   // what the row does not state and which default stands for it
  std::vector<std::string> warnings;  // of the simulation
  bool tokens_open = false;           // how many tokens a GPU has at once at most is not stated
  bool batch_open = false;            // how many micro-batches a step has is not stated
  bool above_peak = false;            // its time as it stands is below what its GPUs' peak allows
  bool virtual_open = false;  // four stages or more that may be interleaved, the row does not say

  /// Its time is that of a whole run, with all that stopped it: a bar, no step.
  bool whole_run() const;

  /// Its time is that of steps whose tokens are known, and told with some confidence.
  bool times_a_step() const;

  bool scored() const { return in_scope && row.scorable && predicted_s && measured_s > 0; }
  /// predicted / measured - 1.
  double error() const { return *predicted_s / measured_s - 1.0; }
  double baseline_error() const { return *baseline_s / measured_s - 1.0; }
};

/// The probability that a run fits its GPU, of a row that is forecast: from reported peaks, those
/// of its own source left out.
double p_fits(const PublishedResult& result);

struct PublishedOptions {
  unsigned threads = 1;
  std::string only;   // ids that begin with this; empty: all
  bool quiet = true;  // no progress on standard error
  // What is scored; none: every row.
  Bucket bucket = Bucket::dense;
};

/// The same results, this bucket's rows in scope.
std::vector<PublishedResult> scored_in(std::vector<PublishedResult> results, Bucket bucket);

/// Predicts every row. Never throws for a row: a row that cannot be simulated says why in
/// `refused`. Stops early, with the remaining rows refused as interrupted, when sim::interrupted().
/// `file` names the rows in messages.
std::vector<PublishedResult> predict_published(const std::string& file,
                                               const std::vector<PublishedRow>& rows,
                                               sim::Session& session,
                                               const PublishedOptions& options);

}  // namespace stepcast::validate
