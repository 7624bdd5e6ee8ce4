// A timeline of our own (sim/run/timeline.hpp) in the terms of a trace. Knows no simulation.
#pragma once

#include <string>
#include <vector>

#include "sim/run/timeline.hpp"
#include "validate/trace/breakdown.hpp"
#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

bool is_timeline(TraceFile& file);

/// One of the timelines in the file: the measured one where `stepcast-validate run` wrote both.
sim::Timeline read_timeline(const std::string& path);

/// Its ranks, each with the step twice as the run repeats it; the first is to be left out. Throws
/// InputError where it shows none, naming `file`.
std::vector<RankTrace> traces_of(const sim::Timeline& timeline, const std::string& file);

/// Its one step. Throws InputError where it shows none, naming `file`.
MeasuredStep measure_timeline(const sim::Timeline& timeline, const std::string& file);

}  // namespace stepcast::validate
