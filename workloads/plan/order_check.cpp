#include "workloads/plan/order_check.hpp"

#include <set>
#include <tuple>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {
namespace {

/// A pass of a part for one micro-batch. Its backward is done with the gradient of its input.
using Step = std::tuple<Pass, std::int64_t, std::int64_t>;

class OrderRun {
 public:
  explicit OrderRun(const ListedOrders& orders) : orders_(orders), next_(orders.stages.size(), 0) {}

  std::optional<OrderFault> fault() {
    for (std::size_t s = 0; s < next_.size(); ++s)
      if (auto found = repeated_or_unordered(s)) return found;
    for (std::size_t s = 0; s < next_.size(); ++s)
      if (auto found = missing(s)) return found;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t s = 0; s < next_.size(); ++s)
        while (next_[s] < orders_.stages[s].size() && advance(s)) progress = true;
    }
    for (std::size_t s = 0; s < next_.size(); ++s)
      if (next_[s] < orders_.stages[s].size()) return waits_for_ever(s);
    return std::nullopt;
  }

 private:
  std::int64_t stages() const { return static_cast<std::int64_t>(next_.size()); }
  std::int64_t last_part() const {
    return (orders_.placement == Placement::mirrored ? 1 : orders_.chunks) * stages() - 1;
  }
  std::int64_t part_of(std::size_t stage, const Turn& turn) const {
    return part_at(orders_.placement, stages(), static_cast<std::int64_t>(stage), turn.chunk);
  }
  std::string name_of(std::size_t stage, const Turn& turn) const {
    return text_of(turn, part_of(stage, turn));
  }
  OrderFault at(std::size_t stage, std::size_t turn, std::string what, std::string hint) const {
    return {static_cast<std::int64_t>(stage), turn, std::move(what), std::move(hint)};
  }

  /// Of one stage alone: no pass twice, none before what it needs of the same part.
  std::optional<OrderFault> repeated_or_unordered(std::size_t stage) const {
    std::set<Step> seen;
    const std::vector<Turn>& turns = orders_.stages[stage];
    const auto has = [&](Pass pass, const Turn& t) {
      return seen.contains({pass, t.chunk, t.micro_batch});
    };
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const Turn& t = turns[i];
      const std::string name = name_of(stage, t);
      const bool parted = t.pass == Pass::input_gradient || t.pass == Pass::weight_gradient;
      if (has(t.pass, t) || (parted && has(Pass::backward, t)) ||
          (t.pass == Pass::backward &&
           (has(Pass::input_gradient, t) || has(Pass::weight_gradient, t))))
        return at(stage, i, name + " computes what was computed before",
                  "a backward is B once, or I and W once each");
      const Pass before = t.pass == Pass::weight_gradient ? Pass::input_gradient : Pass::forward;
      if (t.pass != Pass::forward && !has(before, t))
        return at(
            stage, i,
            name + " stands before " + name_of(stage, {before, t.micro_batch, t.chunk, false}),
            "a backward needs its forward, a W its I");
      seen.insert({t.pass, t.chunk, t.micro_batch});
    }
    return std::nullopt;
  }

  std::optional<OrderFault> missing(std::size_t stage) const {
    std::set<Step> seen;
    for (const Turn& t : orders_.stages[stage]) seen.insert({t.pass, t.chunk, t.micro_batch});
    for (std::int64_t chunk = 0; chunk < orders_.chunks; ++chunk)
      for (std::int64_t mb = 0; mb < orders_.micro_batches; ++mb) {
        const bool forward = seen.contains({Pass::forward, chunk, mb});
        const bool whole = seen.contains({Pass::backward, chunk, mb});
        const bool input = seen.contains({Pass::input_gradient, chunk, mb});
        const bool weight = seen.contains({Pass::weight_gradient, chunk, mb});
        if (forward && (whole || (input && weight))) continue;
        const Pass pass = !forward ? Pass::forward : input ? Pass::weight_gradient : Pass::backward;
        return at(stage, orders_.stages[stage].size(),
                  name_of(stage, {pass, mb, chunk, false}) + " is missing",
                  "every micro-batch passes every part of the model once each way");
      }
    return std::nullopt;
  }

  /// What a turn needs of another stage, if anything.
  std::optional<Step> needs(std::size_t stage, const Turn& t) const {
    const std::int64_t part = part_of(stage, t);
    if (t.pass == Pass::weight_gradient) return std::nullopt;
    if (t.pass == Pass::forward)
      return part == 0 ? std::nullopt : std::optional(Step{Pass::forward, part - 1, t.micro_batch});
    return part == last_part() ? std::nullopt
                               : std::optional(Step{Pass::backward, part + 1, t.micro_batch});
  }

  bool advance(std::size_t stage) {
    const std::vector<Turn>& turns = orders_.stages[stage];
    const std::size_t count = turns[next_[stage]].paired ? 2 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto step = needs(stage, turns[next_[stage] + i]);
      if (step && !done_.contains(*step)) return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Turn& t = turns[next_[stage]++];
      if (t.pass != Pass::weight_gradient)
        done_.insert({t.pass == Pass::forward ? Pass::forward : Pass::backward, part_of(stage, t),
                      t.micro_batch});
    }
    return true;
  }

  OrderFault waits_for_ever(std::size_t stage) const {
    const Turn& t = orders_.stages[stage][next_[stage]];
    const auto step = needs(stage, t);
    std::string what = name_of(stage, t) + " waits for ever";
    if (step && !done_.contains(*step)) {
      const auto [pass, part, micro_batch] = *step;
      what += " for " + text_of(Turn{pass, micro_batch, 0, false}, part);
    }
    return at(stage, next_[stage], std::move(what), "the stages' orders wait for each other");
  }

  const ListedOrders& orders_;
  std::vector<std::size_t> next_;
  std::set<Step> done_;
};

}  // namespace

std::string text_of(const Turn& turn, std::int64_t part) {
  constexpr char letters[] = {'F', 'B', 'I', 'W'};
  return std::to_string(part) + letters[static_cast<std::size_t>(turn.pass)] +
         std::to_string(turn.micro_batch);
}

std::optional<OrderFault> fault_of(const ListedOrders& orders) { return OrderRun(orders).fault(); }

}  // namespace stepcast::workloads
