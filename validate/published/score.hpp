// What predictions of published runs are worth: errors per source and over all rows, whether plans
// are ranked as they were measured, and the constant-MFU baseline on exactly the same rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "validate/published/published.hpp"

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
  std::optional<ErrorScore> ours, baseline;
  std::optional<double> rank_correlation, baseline_rank_correlation;
  std::size_t groups = 0;          // behind the rank correlation
  std::vector<std::string> worst;  // ids of the largest errors
};

struct PublishedSummary {
  std::size_t rows = 0, scorable = 0, in_scope = 0, predicted = 0;
  std::optional<ErrorScore> ours, baseline;  // over all scored rows
  double mean_source_median = 0;             // over sources of five scored rows or more
  double baseline_mean_source_median = 0;
  std::size_t sources = 0;                                            // of those
  std::optional<double> rank_correlation, baseline_rank_correlation;  // mean over groups
  std::size_t groups = 0;
  std::vector<std::pair<std::string, std::size_t>> refusals;  // reason and rows, most first
  std::size_t memory_rows = 0;                                // that state a peak
  std::optional<ErrorScore> memory;
  std::size_t too_large = 0;  // rows that ran although more memory than the GPU has is predicted
  std::vector<SourceScore> by_source;
};

/// Least rows of a source that counts in the mean over sources, and of a group that is ranked.
inline constexpr std::size_t least_rows_of_source = 5, least_rows_of_group = 4;

/// Fits one MFU per kind of GPU on the scored rows and fills in baseline_s: time = tokens (6 N +
/// 12 L h s) (4/3 under full recompute) / (GPUs x constant), the constant at the median of the
/// logarithms, which minimises the mean absolute logarithmic error.
void add_baseline(std::vector<PublishedResult>& results);

PublishedSummary summary_of(const std::vector<PublishedResult>& results);

/// Spearman's rank correlation, ties at their mean rank; none when one side does not vary.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

/// The value below which a share q of `values` lies, between neighbours linearly; not empty.
double quantile(std::vector<double> values, double q);

}  // namespace stepcast::validate
