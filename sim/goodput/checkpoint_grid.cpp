#include "sim/goodput/checkpoint_grid.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {

CheckpointGrid::CheckpointGrid(const std::vector<CheckpointCost>& tiers)
    : tiers_(tiers), period_(tiers.front().every_s), usable_(tiers.size(), 0) {
  expects(period_ > 0.0, "checkpoints have a period");
  for (const CheckpointCost& tier : tiers)
    every_.push_back(std::max<std::int64_t>(1, std::llround(tier.every_s / period_)));
}

double CheckpointGrid::blocking_at(std::int64_t index) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (index % every_[i] == 0) sum += tiers_[i].blocking_s;
  return sum;
}

/// Of the next `count` periods with their checkpoints.
double CheckpointGrid::cost_of(std::int64_t count, double speed) const {
  double sum = static_cast<double>(count) * period_ / speed;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    sum += tiers_[i].blocking_s *
           static_cast<double>((index_ + count) / every_[i] - index_ / every_[i]);
  return sum;
}

void CheckpointGrid::pass_whole_cycles(double& wall_s, double speed, Passed& passed) {
  double mean = period_ / speed;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    mean += tiers_[i].blocking_s / static_cast<double>(every_[i]);
  auto count = static_cast<std::int64_t>(wall_s / mean);
  while (count > 0 && cost_of(count, speed) > wall_s) --count;
  while (cost_of(count + 1, speed) <= wall_s) ++count;
  const double cost = cost_of(count, speed), training = static_cast<double>(count) * period_;
  passed.training_s += training;
  passed.checkpoint_s += cost - training / speed;
  wall_s -= cost;
  index_ += count;
}

CheckpointGrid::Passed CheckpointGrid::advance(double wall_s, double speed) {
  Passed passed;
  for (const bool first : {true, false}) {
    const double training = std::min(wall_s * speed, period_ - trained_);
    trained_ += training;
    passed.training_s += training;
    wall_s -= training / speed;
    if (trained_ < period_ || wall_s <= 0.0) return passed;
    const double left = blocking_at(index_ + 1) - written_, writing = std::min(wall_s, left);
    passed.checkpoint_s += writing;
    wall_s -= writing;
    written_ += writing;
    if (writing < left || wall_s <= 0.0) return passed;
    ++index_;
    trained_ = written_ = 0.0;
    if (first) pass_whole_cycles(wall_s, speed, passed);
  }
  return passed;  // less than rounding is left
}

/// Wall time since the checkpoint `index` was whole; speeds that have changed are taken for
/// today's.
double CheckpointGrid::since(std::int64_t index, double speed) const {
  double sum = static_cast<double>(index_ - index) * period_ / speed + trained_ / speed + written_;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    sum += tiers_[i].blocking_s * static_cast<double>(index_ / every_[i] - index / every_[i]);
  return sum;
}

/// Notes what can be read of the checkpoints since the last start.
void CheckpointGrid::settle(double speed) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    std::int64_t newest = index_ / every_[i] * every_[i];
    if (newest > start_ && since(newest, speed) < tiers_[i].behind_s) newest -= every_[i];
    if (newest > start_) usable_[i] = newest;
  }
}

double CheckpointGrid::roll_back(std::size_t tier, double speed) {
  settle(speed);
  const auto from = usable_.begin() + static_cast<std::ptrdiff_t>(tier);
  const double before = position_s();
  start_ = index_ = *std::max_element(from, usable_.end());
  trained_ = written_ = 0.0;
  std::fill(usable_.begin(), from, index_);  // what was read is there again
  return before - position_s();
}

double CheckpointGrid::position_s() const {
  return static_cast<double>(index_) * period_ + trained_;
}

}  // namespace stepcast::sim
