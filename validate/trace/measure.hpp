// What traces of one run measure: every rank's steps, cut into compute, communication and idle.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/trace/breakdown.hpp"
#include "validate/trace/meetings.hpp"

namespace stepcast::validate {

/// The first `skip` steps of each rank are left out; unless given, one where two or more are there.
/// Throws InputError where none is left or two files are of one rank.
MeasuredStep measure_traces(std::vector<RankTrace> traces, std::optional<std::int64_t> skip);

/// Bytes of a collective as nccl-tests counts them; none where the profiler does not say.
std::optional<double> bytes_of(const CollectiveFacts& facts);

}  // namespace stepcast::validate
