// Runs the roles of a StepProgram on all ranks without time: which instruction can happen next, and
// whether all of them happen. Host order, lane order, events and meetings of groups are those of
// engine/program.hpp. The oracle for "this step does not hang".
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/step/step_program.hpp"

namespace stepcast::workloads::test {

class LaneMachine {
 public:
  LaneMachine(const StepProgram& step, const ParallelPlan& plan) : step_(step) {
    for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
      const auto stage = static_cast<std::size_t>(coordinates_of(plan, rank).pipeline);
      Rank r{.program = &step.roles[stage], .lanes = {}, .happened = {}};
      r.lanes.resize(num_lanes);
      r.happened.resize(r.program->num_events, false);
      ranks_.push_back(std::move(r));
    }
    for (int kind = 0; kind < num_group_kinds; ++kind)
      add_groups(plan, static_cast<GroupKind>(kind));
  }

  /// Empty when every instruction of every rank happened; else what went wrong.
  std::string run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        while (advance(rank)) progress = true;
      if (!error_.empty()) return error_;
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& r = ranks_[rank];
      if (r.host != r.program->instructions.size())
        return "rank " + std::to_string(rank) + " hangs at call " + std::to_string(r.host);
      for (std::size_t lane = 0; lane < r.lanes.size(); ++lane)
        if (!r.lanes[lane].empty())
          return "rank " + std::to_string(rank) + " hangs on lane " + std::to_string(lane);
    }
    for (const Group& group : groups_)
      if (group.arrived != 0) return "a group never met";
    return {};
  }

  std::int64_t meetings() const { return meetings_; }

 private:
  struct Rank {
    const engine::Program* program;
    std::size_t host = 0;
    std::vector<std::deque<engine::Instruction>> lanes;
    std::vector<bool> happened;
  };
  struct Group {
    std::vector<std::pair<std::size_t, std::uint8_t>> waiting;  // rank, lane
    std::size_t size = 0, arrived = 0;
    std::uint32_t collective = 0;
  };

  void add_groups(const ParallelPlan& plan, GroupKind kind) {
    const bool pair = axis_of(kind).meeting == Meeting::pair;
    for (const auto& members : groups(plan, kind)) {
      groups_.push_back({.waiting = {}, .size = members.size(), .arrived = 0, .collective = 0});
      for (std::size_t i = 0; i < members.size(); ++i)
        group_of_[{static_cast<std::size_t>(members[i]), slot_of(kind, pair && i > 0)}] =
            groups_.size() - 1;
    }
  }

  bool advance(std::size_t rank) {
    bool any = advance_host(ranks_[rank]);
    for (std::uint8_t lane = 0; lane < num_lanes; ++lane)
      while (advance_lane(rank, lane)) any = true;
    return any;
  }

  static bool advance_host(Rank& r) {
    if (r.host == r.program->instructions.size()) return false;
    const engine::Instruction& i = r.program->instructions[r.host];
    switch (i.op) {
      case engine::Op::host_wait:
        if (!r.happened[i.arg]) return false;
        break;
      case engine::Op::host_work:
      case engine::Op::mark:
        break;
      case engine::Op::work:
      case engine::Op::join:
      case engine::Op::record:
      case engine::Op::wait:
        r.lanes[i.lane].push_back(i);
        break;
    }
    ++r.host;
    return true;
  }

  bool advance_lane(std::size_t rank, std::uint8_t lane) {
    Rank& r = ranks_[rank];
    if (r.lanes[lane].empty() || joined_.contains({rank, lane})) return false;
    const engine::Instruction i = r.lanes[lane].front();
    if (i.op == engine::Op::wait && !r.happened[i.arg]) return false;
    if (i.op == engine::Op::join) return meet(rank, lane, i);
    if (i.op == engine::Op::record) r.happened[i.arg] = true;
    r.lanes[lane].pop_front();
    return true;
  }

  bool meet(std::size_t rank, std::uint8_t lane, const engine::Instruction& i) {
    const auto found = group_of_.find({rank, i.communicator});
    if (found == group_of_.end()) {
      error_ = "rank " + std::to_string(rank) + " has no group in slot " +
               std::to_string(i.communicator);
      return false;
    }
    Group& group = groups_[found->second];
    if (group.arrived > 0 && group.collective != i.arg) {
      error_ = "a group meets for " + step_.collectives[group.collective].name + " and " +
               step_.collectives[i.arg].name;
      return false;
    }
    group.collective = i.arg;
    group.waiting.push_back({rank, lane});
    joined_[{rank, lane}] = true;
    if (++group.arrived < group.size) return true;
    for (const auto& [member, its_lane] : group.waiting) {
      ranks_[member].lanes[its_lane].pop_front();
      joined_.erase({member, its_lane});
    }
    group.waiting.clear();
    group.arrived = 0;
    ++meetings_;
    return true;
  }

  const StepProgram& step_;
  std::vector<Rank> ranks_;
  std::vector<Group> groups_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> group_of_;
  std::map<std::pair<std::size_t, std::uint8_t>, bool> joined_;
  std::int64_t meetings_ = 0;
  std::string error_;
};

}  // namespace stepcast::workloads::test
