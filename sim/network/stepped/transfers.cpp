#include "sim/network/stepped/transfers.hpp"

#include <algorithm>
#include <limits>

#include "engine/check.hpp"
#include "engine/fluid.hpp"
#include "engine/time_queue.hpp"

namespace stepcast::sim {
namespace {

/// About 2 us each: some seconds.
constexpr std::size_t most_transfers = 4'000'000;

/// Successors by predecessor, in the order in which they were named.
class Successors {
 public:
  Successors(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs, std::size_t size)
      : first_(size + 1, 0), later_(pairs.size()) {
    for (const auto& [earlier, later] : pairs) ++first_[earlier + 1];
    for (std::size_t i = 0; i < size; ++i) first_[i + 1] += first_[i];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [earlier, later] : pairs) later_[next[earlier]++] = later;
  }
  std::span<const std::uint32_t> of(std::uint64_t earlier) const {
    return {later_.data() + first_[earlier], first_[earlier + 1] - first_[earlier]};
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> later_;
};

}  // namespace

std::uint32_t TransferGraph::add_way(Way way) {
  std::sort(way.loads.begin(), way.loads.end(),
            [](const auto& a, const auto& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (const engine::LinkLoad& load : way.loads) {
    if (kept > 0 && way.loads[kept - 1].link == load.link)
      way.loads[kept - 1].weight += load.weight;
    else
      way.loads[kept++] = load;
  }
  way.loads.resize(kept);
  ways_.push_back(std::move(way));
  return static_cast<std::uint32_t>(ways_.size() - 1);
}

void TransferGraph::make_room(std::size_t more) const {
  if (more > most_transfers - transfers_.size())
    throw InputError("--stepped", "more than 4 million transfers",
                     "stepped mode is for groups of some hundred GPUs at most");
}

TransferGraph::Id TransferGraph::add(std::uint32_t way, double bytes, std::uint32_t step) {
  make_room(1);
  transfers_.push_back({way, step, bytes});
  num_steps_ = std::max(num_steps_, step + 1);
  return static_cast<Id>(transfers_.size() - 1);
}

void TransferGraph::take_hops_from_links(std::span<const topology::Link> links, Duration extra) {
  for (Way& way : ways_) {
    double latency = 0.0;  // parallel links carry a part of the bytes each
    for (const engine::LinkLoad& load : way.loads)
      latency += load.weight * seconds(links[load.link].latency);
    way.hop = to_duration(latency) + extra;
  }
}

std::vector<double> TransferGraph::bytes_on_links(std::size_t num_links) const {
  std::vector<double> by_way(ways_.size(), 0.0), by_link(num_links, 0.0);
  for (const Transfer& transfer : transfers_) by_way[transfer.way] += transfer.bytes;
  for (std::size_t w = 0; w < ways_.size(); ++w)
    for (const engine::LinkLoad& load : ways_[w].loads)
      by_link[load.link] += by_way[w] * load.weight;
  return by_link;
}

/// One walk through time. A transfer waits for its data, then for its hop and its place in the
/// queue of its sender (`gates_`), then its bytes are a flow.
class TransferRun {
 public:
  TransferRun(const TransferGraph& graph, std::span<const BytesPerSecond> capacities,
              const TransferRules& rules)
      : graph_(graph),
        rules_(rules),
        fluid_(capacities),
        passed_on_(graph.data_, graph.size()),
        queued_(graph.queued_, graph.size()),
        data_(graph.size(), 0),
        gates_(graph.size(), 1),
        step_ends_(graph.num_steps(), Duration{}) {
    for (const auto& [earlier, later] : graph.data_) ++data_[later];
    for (const auto& [earlier, later] : graph.queued_)
      ++(rules_.hold_on_hop ? data_ : gates_)[later];
  }

  std::vector<Duration> step_ends() {
    for (std::uint32_t id = 0; id < graph_.size(); ++id)
      if (data_[id] == 0) begin_hop(id);
    fluid_.settle(now_);
    while (next_instant()) {
      take_instant();
      fluid_.settle(now_);
    }
    ensures(done_ == graph_.size(), "transfers do not wait for each other in a circle");
    return std::move(step_ends_);
  }

 private:
  bool next_instant() {
    const auto end = fluid_.next_end();
    if (!end && hops_.empty()) return false;
    now_ = end ? *end : Time::max();
    if (!hops_.empty()) now_ = std::min(now_, hops_.next());
    return true;
  }

  void take_instant() {
    ended_.clear();
    fluid_.take_ended(now_, ended_);
    for (const std::uint64_t id : ended_) arrive(id);
    if (hops_.empty() || hops_.next() != now_) return;
    due_.clear();
    hops_.take(due_);
    for (const engine::TimeQueue::Entry& entry : due_) open_gate(entry.id);
  }

  void begin_hop(std::uint32_t id) {
    const Duration hop = rules_.hops ? way_of(id).hop : Duration{};
    hop.count() == 0 ? open_gate(id) : hops_.push(now_ + hop, id, 0);
  }

  void open_gate(std::uint32_t id) {
    if (--gates_[id] > 0) return;
    const Way& way = way_of(id);
    const auto& loads = rules_.share_links ? way.loads : no_loads_;
    fluid_.start(now_, graph_.transfers_[id].bytes, way.cap, loads, id);
  }

  void arrive(std::uint64_t id) {
    ++done_;
    Duration& end = step_ends_[graph_.transfers_[id].step];
    end = std::max(end, now_.time_since_epoch());
    for (const std::uint32_t later : passed_on_.of(id)) met(later);
    for (const std::uint32_t later : queued_.of(id))
      rules_.hold_on_hop ? met(later) : open_gate(later);
  }

  void met(std::uint32_t id) {
    if (--data_[id] == 0) begin_hop(id);
  }

  const Way& way_of(std::uint32_t id) const { return graph_.ways_[graph_.transfers_[id].way]; }

  const TransferGraph& graph_;
  TransferRules rules_;
  engine::Fluid fluid_;
  Successors passed_on_, queued_;
  std::vector<std::uint32_t> data_, gates_;  // still to come, by transfer
  std::vector<Duration> step_ends_;
  std::vector<engine::LinkLoad> no_loads_;
  engine::TimeQueue hops_;
  Time now_{};
  std::size_t done_ = 0;
  std::vector<std::uint64_t> ended_;
  std::vector<engine::TimeQueue::Entry> due_;
};

std::vector<Duration> run_transfers(const TransferGraph& graph,
                                    std::span<const BytesPerSecond> capacities,
                                    const TransferRules& rules) {
  return TransferRun(graph, capacities, rules).step_ends();
}

Duration makespan(const std::vector<Duration>& step_ends) {
  return step_ends.empty() ? Duration{} : *std::max_element(step_ends.begin(), step_ends.end());
}

}  // namespace stepcast::sim
