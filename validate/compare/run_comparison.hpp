// A step that the trainer ran beside the same step simulated: the whole, its parts, every kind of
// kernel and every collective.
#pragma once

#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/run/step_report.hpp"
#include "sim/run/timeline.hpp"
#include "validate/trainer/run/results.hpp"

namespace stepcast::validate {

struct MeasuredAndSimulated {
  std::string what;
  double calls = 0.0;  // per step and rank; 0: not counted
  Duration measured{}, simulated{};
  /// Of the measured time; 0 where nothing was measured.
  double error() const;
};

struct RunComparison {
  std::string point;  // "plan.data = zero2, batch.local = 4"
  std::int64_t ranks = 0;
  std::string device;  // of rank 0
  MeasuredAndSimulated step{"step time"};
  std::vector<MeasuredAndSimulated> parts;  // compute, exposed communication, waiting, the rest
  std::vector<MeasuredAndSimulated> kinds;  // of kernels
  std::vector<MeasuredAndSimulated> collectives;
  /// Buffers of the fullest rank; on a GPU all that is in use there.
  Bytes measured_memory{}, simulated_memory{};
  double memory_error() const;
  double spread = 0.0;  // of measured steps: half the middle 80 % over their median
};

/// `simulated` is the timeline of `report`'s step.
RunComparison compare_run(const std::string& point, const TrainerResults& measured,
                          const sim::Timeline& measured_step, const sim::StepReport& report,
                          const sim::Timeline& simulated);

/// The parts of one point.
std::string text_of(const RunComparison& comparison);

/// A line a point, then the median and the worst error of the step time; alone if there is but one.
std::string table_of(const std::vector<RunComparison>& points);
std::string json_of(const std::vector<RunComparison>& points);

/// Largest |error| of a step time.
double worst_error(const std::vector<RunComparison>& points);
double median_error(const std::vector<RunComparison>& points);

}  // namespace stepcast::validate
