// What a table of what_ran.csv says of the forecasts: what fitted and what died, how far peaks and
// steps are off, and what could not be entered. Every row is counted once: ran + died +
// not_entered + aside.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/published/published.hpp"
#include "validate/published/score.hpp"

namespace stepcast::validate {

/// Whether a row is one of that set of columns.
bool of_what_ran(const std::vector<PublishedResult>& results);

/// A peak that a row reports, and ours.
struct PeakError {
  std::string figure;  // "allocated", "reserved", "process"; empty: not said which
  double stated_gib = 0, forecast_gib = 0;
  bool base_open = false;  // of GB whose base is not said; stated_gib takes them for GiB
  bool chosen = false;     // its tokens are not stated: chosen by it, or a mean
  bool scored() const { return !base_open && !chosen; }
  double error() const { return forecast_gib / stated_gib - 1.0; }
};
/// Of rows that ran: none, one, or two figures of one run.
std::vector<PeakError> peaks_of(const PublishedResult& result);

/// Whether a row is entered, and what is said of it: "ran", "refused_ran", "died",
/// "foreseen_died", "not_entered", "aside".
bool entered(const PublishedResult& result);
std::string verdict_of(const PublishedResult& result);

/// Errors of some of the rows: by framework, recompute or feature.
struct RanGroup {
  std::string list, name;
  std::size_t rows = 0, entered = 0, refused_ran = 0, foreseen_died = 0, died = 0;
  std::size_t peaks = 0, steps = 0;
  std::optional<ErrorScore> memory, step;
};

struct RanSummary {
  std::size_t rows = 0, ran = 0, refused_ran = 0, died = 0, foreseen_died = 0, not_entered = 0,
              aside = 0;
  // Of peaks, by figure, without those whose base is not said.
  std::vector<std::pair<std::string, ErrorScore>> memory;
  std::vector<std::size_t> memory_rows;
  std::size_t steps = 0;
  std::optional<ErrorScore> step;
  // Peaks whose tokens are not stated.
  std::size_t chosen_peaks = 0;
  std::optional<ErrorScore> chosen;
  // Peaks in GB whose base is not said, as 2^30 bytes and as 1e9.
  std::size_t open_peaks = 0;
  std::optional<ErrorScore> as_gib, as_gb;
  std::vector<RanGroup> groups;
  std::vector<const PublishedResult*> worst;                 // of peaks, at most ten, worst first
  std::vector<std::pair<std::string, std::size_t>> reasons;  // of not_entered, most first

  std::optional<double> memory_median(const std::string& figure) const;
};

/// Points into `results`.
RanSummary ran_summary(const std::vector<PublishedResult>& results);

std::string ran_text(const std::string& name, const std::vector<PublishedResult>& results);

}  // namespace stepcast::validate
