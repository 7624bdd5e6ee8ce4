// What predictions of published runs are worth: errors per source and over all rows, whether plans
// are ranked as they were measured, and the constant-MFU baseline on exactly the same rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "validate/published/published.hpp"
#include "validate/published/ranking.hpp"

namespace stepcast::validate {

/// Of relative errors e = predicted / measured - 1, as shares.
struct ErrorScore {
  double median = 0;  // of |e|
  double mape = 0;    // mean of |e|
  double p90 = 0;     // of |e|
  double bias = 0;    // median of e: positive predicts too long a time
};

struct SourceScore {
  std::string key, source;  // the id's letters; the source's own words, of its first row
  std::size_t rows = 0, in_scope = 0, predicted = 0;  // predicted: of those in scope
  std::size_t own_kernels = 0;  // of those, that may rest on kernels of their own source
  std::optional<ErrorScore> ours, baseline;
  Ranking ranking;
  std::vector<std::string> worst;  // ids of the largest errors
  bool whole_runs = false;         // all its scored rows are such: its figures are a bar
};

/// Peaks that sources report of one figure: "allocated", "reserved", "process"; empty: which is not
/// said.
struct MemoryScore {
  std::string figure;
  bool scored = false;  // of rows whose time is scored; others stand beside
  std::size_t rows = 0;
  ErrorScore errors;
};

struct PublishedSummary {
  std::size_t rows = 0, scorable = 0, in_scope = 0, predicted = 0;
  std::optional<ErrorScore> ours, baseline;  // over all scored rows
  double mean_source_median = 0;             // over sources of five scored rows or more
  double baseline_mean_source_median = 0;
  std::size_t sources = 0;                                             // of those
  double mean_unmarked_median = 0, baseline_mean_unmarked_median = 0;  // without whole runs
  std::size_t unmarked = 0;
  // Rows of four stages or more that do not say whether they interleave, where the framework can.
  std::size_t virtual_open_rows = 0;
  std::optional<ErrorScore> virtual_open, others;  // their errors, and those of all other rows
  Ranking ranking, baseline_ranking;
  std::vector<std::pair<std::string, std::size_t>> refusals;  // reason and rows, most first
  std::size_t memory_rows = 0;                                // that state a peak
  std::optional<ErrorScore> memory;
  std::vector<MemoryScore> memory_by_figure;
  // Rows that ran, those of them that are predicted to need more than the GPU has; rows that ran
  // out of memory, and those of them.
  std::size_t ran = 0, too_large = 0, ran_out = 0, foreseen = 0;
  std::vector<SourceScore> by_source;
};

/// Least rows of a source that counts in the mean over sources.
inline constexpr std::size_t least_rows_of_source = 5;

/// The errors of all scored rows that state this degree.
struct DegreeScore {
  std::string knob;  // "tensor", "pipeline", "micro-batch", "GPUs"
  std::size_t degree = 0, rows = 0;
  ErrorScore errors;
};
std::vector<DegreeScore> degree_scores(const std::vector<PublishedResult>& results);

/// The errors of all scored rows of a kind: "dense mxfp8", "MoE fp8".
struct KindScore {
  std::string kind;
  std::size_t in_scope = 0, predicted = 0;
  std::optional<ErrorScore> ours, baseline;
};
std::vector<KindScore> kind_scores(const std::vector<PublishedResult>& results);

/// Fits one MFU per kind of GPU on the scored rows and fills in baseline_s: time = tokens (6 N +
/// 12 L h s) (4/3 under full recompute) / (GPUs x constant), the constant at the median of the
/// logarithms, which minimises the mean absolute logarithmic error.
void add_baseline(std::vector<PublishedResult>& results);

PublishedSummary summary_of(const std::vector<PublishedResult>& results);

/// Of one error or more.
ErrorScore error_score(const std::vector<double>& errors);

/// The value below which a share q of `values` lies, between neighbours linearly; not empty.
double quantile(std::vector<double> values, double q);

}  // namespace stepcast::validate
