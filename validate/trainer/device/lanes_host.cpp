#include <chrono>
#include <vector>

#include "validate/trainer/device/lanes.hpp"

namespace stepcast::validate {
namespace {

class HostLanes final : public Lanes {
 public:
  void take(workloads::Lane) override {}
  Mark mark() override {
    marks_.push_back(Clock::now());
    return static_cast<Mark>(marks_.size() - 1);
  }
  void wait(Mark) override {}
  void synchronize() override {}
  void start() override {
    marks_.clear();
    start_ = Clock::now();
  }
  Duration time_of(Mark mark) override { return marks_.at(mark) - start_; }
  bool timing_costs() const override { return false; }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> marks_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

std::unique_ptr<Lanes> make_host_lanes() { return std::make_unique<HostLanes>(); }

}  // namespace stepcast::validate
