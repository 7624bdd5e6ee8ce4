// A network model that computes each time once. Steps of a search, and kernels of one step under
// other names, ask for the same collectives again and again.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/network/model.hpp"

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
    return model_->loads_of(delivery, ranks);
  }

 private:
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
};

}  // namespace stepcast::sim
