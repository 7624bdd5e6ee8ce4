// Runs the turns of all stages with given times of a chunk's passes and nothing else: a turn starts
// after the one before it on its stage and after those whose outputs it takes. The oracle of
// schedules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "workloads/plan/pipeline.hpp"

namespace stepcast::workloads {

struct PassTimes {
  std::int64_t forward = 1, input = 1, weight = 1;
  std::int64_t pair = 3;  // a forward and a whole backward together
};

class OrderClock {
 public:
  OrderClock(const PipelineShape& shape, const PassTimes& times) : shape_(shape), times_(times) {
    for (std::int64_t r = 0; r < shape.stages; ++r) turns_.push_back(turns_of_stage(shape, r));
    next_.assign(turns_.size(), 0);
    clock_.assign(turns_.size(), 0);
    busy_.assign(turns_.size(), 0);
    run();
  }

  /// End of the last turn; -1 when the stages wait for each other.
  std::int64_t makespan() const {
    for (std::size_t r = 0; r < turns_.size(); ++r)
      if (next_[r] != turns_[r].size()) return -1;
    return *std::ranges::max_element(clock_);
  }
  std::int64_t idle(std::size_t stage) const { return makespan() - busy_[stage]; }

 private:
  using Key = std::tuple<bool, std::int64_t, std::int64_t>;  // backward, part, micro-batch

  void run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t r = 0; r < turns_.size(); ++r)
        while (next_[r] < turns_[r].size() && advance(r)) progress = true;
    }
  }
  std::int64_t part_of(std::size_t r, const Turn& turn) const {
    return part_at(placement_of(shape_.schedule, shape_.orders), shape_.stages,
                   static_cast<std::int64_t>(r), turn.chunk);
  }
  std::int64_t last_part() const {
    const bool mirrored = placement_of(shape_.schedule, shape_.orders) == Placement::mirrored;
    return (mirrored ? shape_.stages : shape_.stages * shape_.chunks) - 1;
  }
  std::int64_t end_of(const Key& key) const {
    const auto at = end_.find(key);
    return at == end_.end() ? -1 : at->second;
  }
  /// When its inputs are there; -1: not yet.
  std::int64_t ready(std::size_t r, const Turn& turn) const {
    const std::int64_t part = part_of(r, turn);
    if (turn.pass == Pass::weight_gradient) return end_of({true, part, turn.micro_batch});
    if (turn.pass == Pass::forward)
      return part == 0 ? 0 : end_of({false, part - 1, turn.micro_batch});
    if (part == last_part()) return end_of({false, part, turn.micro_batch});
    return end_of({true, part + 1, turn.micro_batch});
  }
  std::int64_t time_of(const Turn& turn) const {
    switch (turn.pass) {
      case Pass::forward:
        return times_.forward;
      case Pass::backward:
        return times_.input + times_.weight;
      case Pass::input_gradient:
        return times_.input;
      case Pass::weight_gradient:
        return times_.weight;
    }
    return 0;
  }
  bool advance(std::size_t r) {
    const Turn& turn = turns_[r][next_[r]];
    const std::size_t count = turn.paired ? 2 : 1;
    std::int64_t start = clock_[r];
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t when = ready(r, turns_[r][next_[r] + i]);
      if (when < 0) return false;
      start = std::max(start, when);
    }
    const std::int64_t takes = turn.paired ? times_.pair : time_of(turn);
    for (std::size_t i = 0; i < count; ++i) {
      const Turn& done = turns_[r][next_[r] + i];
      if (done.pass != Pass::weight_gradient)
        end_[{done.pass != Pass::forward, part_of(r, done), done.micro_batch}] = start + takes;
    }
    clock_[r] = start + takes;
    busy_[r] += takes;
    next_[r] += count;
    return true;
  }

  PipelineShape shape_;
  PassTimes times_;
  std::vector<std::vector<Turn>> turns_;
  std::map<Key, std::int64_t> end_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> clock_, busy_;
};

}  // namespace stepcast::workloads
