// What traces of one run measure: every rank's steps, cut into compute, communication and idle.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "validate/trace/breakdown.hpp"
#include "validate/trace/intervals.hpp"
#include "validate/trace/meetings.hpp"

namespace stepcast::validate {

/// The GPU's time by what runs, over the whole trace.
struct BusyLanes {
  Intervals compute, any;           // copies to and from the host are in none
  Intervals exposed, transferring;  // communication beside no compute; of it: bytes move
};
BusyLanes lanes_of(const RankTrace& trace, const std::vector<Duration>& transfer);

/// Numbers of the steps of this rank that count: all but the first `skip`; unless given, but one
/// where two or more are there. Throws InputError where none is left.
std::set<std::int64_t> counted_steps(const RankSteps& rank, std::optional<std::int64_t> skip);

/// The first `skip` steps of each rank are left out; unless given, one where two or more are there.
/// Throws InputError where none is left or two files are of one rank.
MeasuredStep measure_traces(std::vector<RankTrace> traces, std::optional<std::int64_t> skip);

/// Bytes of a collective as nccl-tests counts them; none where the profiler does not say.
std::optional<double> bytes_of(const CollectiveFacts& facts);

}  // namespace stepcast::validate
