// Where a run stands between its checkpoints. They lie on a grid of training: every period of the
// fastest tier, slower tiers at multiples of it. What happens between two events is arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/goodput/process.hpp"

namespace stepcast::sim {

class CheckpointGrid {
 public:
  /// `tiers` have periods (choose_periods) and outlive this.
  explicit CheckpointGrid(const std::vector<CheckpointCost>& tiers);

  struct Passed {
    double training_s = 0.0;    // full-speed seconds of work
    double checkpoint_s = 0.0;  // that training stood still for
  };
  /// Trains and writes for `wall_s`, at a share `speed` of full speed.
  Passed advance(double wall_s, double speed);

  /// Goes back to what is left after an interruption that tiers before `tier` do not survive;
  /// returns the full-speed seconds of work that are lost.
  double roll_back(std::size_t tier, double speed);

  /// Of work that stands, full-speed seconds.
  double position_s() const;

 private:
  double blocking_at(std::int64_t index) const;
  double cost_of(std::int64_t count, double speed) const;
  void pass_whole_cycles(double& wall_s, double speed, Passed& passed);
  double since(std::int64_t index, double speed) const;
  void settle(double speed);

  const std::vector<CheckpointCost>& tiers_;
  double period_;
  std::vector<std::int64_t> every_;   // of each tier, in periods
  std::vector<std::int64_t> usable_;  // newest checkpoint of each tier before this start
  std::int64_t start_ = 0;            // where the run last started from
  std::int64_t index_ = 0;            // checkpoints behind
  double trained_ = 0.0;              // of the period after them
  double written_ = 0.0;              // of the checkpoint at its end
};

}  // namespace stepcast::sim
