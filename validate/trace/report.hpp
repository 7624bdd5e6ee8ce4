// A measured step beside the simulated one, told once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/handout/handout.hpp"
#include "validate/trace/breakdown.hpp"

namespace stepcast::validate {

struct TraceComparison {
  std::vector<std::string> files;
  std::string scenario;            // its file
  std::string what;                // "llama-2-7b on 16 x h100-sxm5-80gb"
  std::vector<std::string> notes;  // what the reader must know about the figures
  StepBreakdown measured, simulated;
  std::string verdict = {};  // why the two are not of one run; then no error means anything
};

/// simulated / measured - 1; none where one of them is unknown or the measured one is zero.
std::optional<double> error_of(std::optional<double> measured, std::optional<double> simulated);
/// Of the step time; none against a verdict.
std::optional<double> step_error(const TraceComparison& comparison);

/// As JSON {"summary": {...}, "quantities": [...], "kernels": [...], "collectives": [...], "notes":
/// [...]}; seconds, bytes and shares; null where nothing is known.
sim::ToldSection told_of(const TraceComparison& comparison);
sim::Told trace_page(const TraceComparison& comparison, const sim::Origin& origin);

}  // namespace stepcast::validate
