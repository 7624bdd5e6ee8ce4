#include "validate/trace/meetings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "validate/trace/records/kernels.hpp"

namespace stepcast::validate {
namespace {

using workloads::CollectiveKind;

/// Streams with communication, in the order of their first kernel: their ids differ between ranks.
class StreamOrder {
 public:
  std::size_t of(std::int64_t stream) {
    return order_.try_emplace(stream, order_.size()).first->second;
  }

 private:
  std::map<std::int64_t, std::size_t> order_;
};

/// Who talks to whom, alike on all members. None: a message whose other end is not known, because
/// sends and receives of two ranks come in different orders.
std::optional<std::string> communicator_of(const RankTrace& trace, const TraceKernel& kernel,
                                           CollectiveKind kind, StreamOrder& streams) {
  const bool message = kind == CollectiveKind::send_receive;
  if (kernel.facts < 0) {
    const std::size_t stream = streams.of(kernel.stream);
    return message ? std::nullopt : std::optional(fmt::format("stream {}", stream));
  }
  const CollectiveFacts& facts = trace.facts[static_cast<std::size_t>(kernel.facts)];
  const std::string group = facts.group + " " + facts.members;
  if (!message) return group;
  const std::int64_t rank = trace.rank.value_or(-1);
  const bool sends = facts.destination >= 0 && facts.destination != rank;
  const bool receives = facts.source >= 0 && facts.source != rank;
  if (rank < 0 || sends == receives) return std::nullopt;
  return sends ? fmt::format("{} {} {}", group, rank, facts.destination)
               : fmt::format("{} {} {}", group, facts.source, rank);
}

struct Member {
  std::size_t rank, kernel;
};

}  // namespace

std::optional<CollectiveKind> collective_of(const RankTrace& trace, const TraceKernel& kernel) {
  const auto kind = trace.name_of(kernel).collective;
  if (kernel.facts < 0 || (kind && *kind != CollectiveKind::send_receive)) return kind;
  // Generic kernels say nothing, and NCCL sends an all-to-all as messages.
  const auto called = collective_of(trace.facts[static_cast<std::size_t>(kernel.facts)].collective);
  return called ? called : kind;
}

Meetings meetings_of(const std::vector<RankSteps>& ranks) {
  Meetings out;
  std::map<std::pair<std::string, std::int64_t>, std::vector<Member>> meetings;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankTrace& trace = ranks[r].trace;
    StreamOrder streams;
    std::map<std::string, std::int64_t> calls;
    std::vector<Duration>& transfer = out.transfer.emplace_back();
    out.last.emplace_back(trace.kernels.size(), nobody);
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      const TraceKernel& kernel = trace.kernels[k];
      transfer.push_back(trace.waits.empty() ? kernel.duration : kernel.duration - trace.waits[k]);
      if (!trace.name_of(kernel).communication) continue;
      if (!trace.waits.empty()) {
        ++out.met;
        continue;
      }
      const auto kind = collective_of(trace, kernel);
      const std::int64_t step = ranks[r].steps.step_of[k];
      if (!kind || step == no_step) continue;
      if (kernel.facts < 0) out.communicators_known = false;
      const auto communicator = communicator_of(trace, kernel, *kind, streams);
      if (!communicator) {
        ++out.alone;
        continue;
      }
      const std::string key = fmt::format("{} {} {}", *communicator, static_cast<int>(*kind), step);
      meetings[{key, calls[key]++}].push_back({r, k});
    }
  }
  for (const auto& [key, members] : meetings) {
    (members.size() > 1 ? out.met : out.alone) += members.size();
    const auto duration_of = [&](const Member& m) {
      return ranks[m.rank].trace.kernels[m.kernel].duration;
    };
    const Member& latest = *std::ranges::min_element(members, {}, duration_of);
    for (const Member& m : members) {
      out.transfer[m.rank][m.kernel] = duration_of(latest);
      if (members.size() > 1) out.last[m.rank][m.kernel] = static_cast<std::int32_t>(latest.rank);
    }
  }
  return out;
}

}  // namespace stepcast::validate
