// A log's steps in order: warm-up, the usual step, steps that stick out and how often, growth,
// restarts. Knows no scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/diagnose/causes.hpp"
#include "validate/trace/log.hpp"

namespace stepcast::validate {

struct StepSeries {
  std::size_t left_out = 0;  // at the start, and behind each restart
  std::size_t counted = 0;
  double mean = 0, usual = 0;          // s; the usual step: the median
  std::size_t longer = 0;              // steps that stick out
  double stalls = 0;                   // s of the mean step that they add
  std::optional<std::int64_t> period;  // between them, in steps as numbered, where it repeats
  double growth = 0;  // s: the usual step of the last quarter less that of the first; 0: noise
  std::size_t restarts = 0;
};

/// None where the log prints too few steps to tell (fewer than 8). Of logs that print tokens per
/// second alone, `tokens` of a step and GPU make steps of them.
std::optional<StepSeries> series_of(const StepLog& log, double tokens);

/// Stalls and drift as causes; they are in the mean step.
std::vector<Cause> causes_of(const StepSeries& series);
/// What a reader should know of the series, a sentence each.
std::vector<std::string> notes_of(const StepSeries& series);

}  // namespace stepcast::validate
