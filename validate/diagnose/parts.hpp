// How each rank spent its step: parts that add up to it, what ran, and whom it waited for. The
// simulated step is cut the same way. Knows no cause.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/trace/meetings.hpp"
#include "validate/trace/records/events.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

struct CallTally {
  double calls = 0, seconds = 0, bytes = 0;
  double each() const { return calls > 0 ? seconds / calls : 0; }
};

/// Collectives that are alike: what they do, among how many ranks (0: the trace does not say).
struct ExchangeKind {
  workloads::CollectiveKind kind{};
  std::int64_t ranks = 0;
  friend auto operator<=>(const ExchangeKind&, const ExchangeKind&) = default;
};

struct ExchangeTally : CallTally {  // of transfers, waiting left out
  double exposed = 0;               // s of them beside no compute; all kinds: RankParts::transfer
};

/// Seconds per step: the mean over the steps of a trace that count.
struct RankParts {
  std::int64_t rank = 0;
  std::int64_t alike = 1;  // ranks that it stands for

  double step = 0;      // the sum of the next six
  double compute = 0;   // some kernel runs that is no communication
  double transfer = 0;  // bytes move and nothing computes
  double wait = 0;      // for the last member of a collective, and nothing computes
  double boundary = 0;  // no kernel, between the last of a step and the first of the next
  double pauses = 0;    // no kernel, in gaps long enough to be single events
  double gaps = 0;      // no kernel, in gaps between launches

  double longest_pause = 0;
  double communicating = 0;  // kernels of collectives, waiting included, beside compute or not
  double behind_a_gap = 0;   // share of the kernels that begin on an idle GPU
  double under_compute = 0;  // of collectives' time: some kernel computes
  std::map<TraceKind, CallTally> kernels;
  std::map<ExchangeKind, ExchangeTally> exchanges;
  /// Seconds of a transfer of this kind, each group's mean; by the ranks of the group as text.
  std::map<std::pair<ExchangeKind, std::string>, CallTally> groups;
  std::map<std::size_t, double> waited_for;  // of `wait`: by the place of the rank that came last
};

/// Idle time of more than this share of a step in one piece is an event, not the launches' pace.
inline constexpr double pause_share = 0.01;

/// Of every rank, in the order of the traces. `skip` is that of measure_traces(). Throws InputError
/// for a trace without steps.
std::vector<RankParts> parts_of(std::vector<RankTrace> traces, std::optional<std::int64_t> skip);

}  // namespace stepcast::validate
