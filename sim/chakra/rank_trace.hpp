// The nodes of one rank: its program's calls with the times that a run gave them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/chakra/et_file.hpp"
#include "sim/run/simulate.hpp"
#include "sim/run/timeline.hpp"

namespace stepcast::sim {

/// Process groups by communicator of the step's layout: numbers from 1, 0 for a group of one rank.
struct NumberedGroups {
  std::vector<std::int64_t> number;
  std::map<workloads::GroupKind, std::vector<std::int64_t>> of_kind;
};

class RankTrace {
 public:
  /// `events` are those of the rank, in order of start. What is given outlives it.
  RankTrace(const BoundStep& bound, const NumberedGroups& groups, std::int64_t rank,
            const std::vector<const TimelineEvent*>& events,
            std::function<void(const EtNode&)> write);
  /// All nodes, in the order of the host's calls.
  void write();

 private:
  using Ids = std::vector<std::uint64_t>;
  struct LaneState {
    std::size_t next_event = 0;
    std::uint64_t last = 0;  // node; 0: none
    Ids awaited;             // beside it, for the next node
    Duration rest{};         // of rounding
    std::vector<const TimelineEvent*> events;
  };

  void call(const engine::Instruction& i);
  void kernel(const engine::Instruction& i);
  void join(const engine::Instruction& i);
  void message(const workloads::Collective& what, const engine::Instruction& i, bool sends,
               const engine::Communicator& pair, EtNode node);
  void ring(const workloads::Collective& what, const engine::Instruction& i,
            std::uint32_t communicator, EtNode node);
  void launch(Duration cost);
  void end_of_step(std::size_t lane);
  EtNode begun(const engine::Instruction& i, const std::string& name, EtType type);
  void ended(LaneState& lane, EtNode node);
  static Ids deps_of(LaneState& lane);
  std::uint32_t communicator_of(const engine::Instruction& i) const;

  const BoundStep& bound_;
  const NumberedGroups& groups_;
  const std::int64_t rank_;
  const std::function<void(const EtNode&)> write_;
  std::vector<LaneState> lanes_;
  LaneState host_;
  Duration host_cost_{};  // since the last node of the host
  std::vector<Ids> events_;
  std::uint64_t next_id_ = 1;
};

}  // namespace stepcast::sim
