// A network model that computes each time once, and what a group puts on links as long as it is
// asked about: steps of a search, kernels of one step under other names, a group's busiest end and
// its picture ask for the same again and again.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/network/model.hpp"
#include "sim/program/cache.hpp"

namespace stepcast::sim {

/// Threads may share one. What it keeps is bounded: full, it starts anew.
class RememberedNetwork final : public NetworkModel {
 public:
  explicit RememberedNetwork(std::unique_ptr<const NetworkModel> model)
      : model_(std::move(model)) {}

  CollectiveTime time_of(const workloads::Collective& collective,
                         const GroupShape& shape) const override {
    // Exchanges of tokens are closed forms, soon computed, and of many kinds.
    if (collective.tokens.tokens > 0) return model_->time_of(collective, shape);
    const Question question{collective.kind, collective.bytes.value, collective.dtype, shape};
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = times_.find(question); known != times_.end()) return known->second;
    }
    const CollectiveTime time = model_->time_of(collective, shape);
    const std::lock_guard lock(mutex_);
    if (times_.size() >= most_times) times_.clear();
    times_.emplace(question, time);
    return time;
  }
  std::vector<LinkLoad> loads_of(const Delivery& delivery,
                                 const std::vector<std::int64_t>& ranks) const override {
    const auto loads = [&] { return model_->loads_of(delivery, ranks); };
    if (ranks.size() > most_ranks) return loads();
    return *loads_.get({delivery, ranks}, loads);
  }

 private:
  // Loads of 4,096 ranks take about a megabyte.
  static constexpr std::size_t most_loads = 4, most_ranks = 4096;
  static constexpr std::size_t most_times = 16384;  // of some 200 bytes
  struct Question {
    workloads::CollectiveKind kind{};
    std::int64_t bytes = 0;
    workloads::Dtype dtype{};
    GroupShape shape;
    friend auto operator<=>(const Question&, const Question&) = default;
  };

  std::unique_ptr<const NetworkModel> model_;
  mutable std::mutex mutex_;
  mutable std::map<Question, CollectiveTime> times_;
  mutable Cache<std::pair<Delivery, std::vector<std::int64_t>>, std::vector<LinkLoad>> loads_{
      most_loads};
};

}  // namespace stepcast::sim
