// Timelines as files: Chrome's trace events (JSON, packed where the name ends in ".gz") or
// Perfetto's protocol buffers (".pftrace"). A process is a rank, a track a lane; ranks and lanes
// have names, quantities are counters, the critical path is a process of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/timeline.hpp"

namespace stepcast::sim {

/// The timelines side by side in one file. Throws OutputError where it cannot be written.
void write_timelines(const std::string& path, std::span<const Timeline> timelines);
/// What write_timelines wrote as JSON; of ranks to show each as one of its own.
std::vector<Timeline> read_timelines(const std::string& path);
/// How such a file begins, unpacked.
inline constexpr std::string_view timeline_head =
    R"({"displayTimeUnit":"ms","otherData":{"program":"stepcast",)";

/// Of what is recorded already.
TimelineSize size_of(const Timeline& timeline);
/// About what write_timelines would write there: within a third, mostly.
Bytes estimated_size(const std::string& path, const TimelineSize& size);

/// Without a word, a file may be as large as this: larger ones open slowly or not at all in
/// Perfetto's page (reports of 0.9 to 3 GB of JSON that do not, 256 MB in chrome://tracing:
/// perfetto 99, viztracer 610, kineto 595; 2026-11).
inline constexpr Bytes usual_timeline_limit{200'000'000};

/// Throws InputError with the estimate where a file would be larger than `most`.
TimelineApproval no_larger_than(Bytes most, const std::string& path);

}  // namespace stepcast::sim
