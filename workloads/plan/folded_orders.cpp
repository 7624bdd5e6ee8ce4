#include "workloads/plan/folded_orders.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

/// Every pass of a chunk takes its micro-batches in turn.
class TwoChunkTurns {
 public:
  /// The micro-batches of chunk c begin with `first[c]`; direction 0 is chunk `first_chunk`.
  explicit TwoChunkTurns(std::array<std::int64_t, 2> first = {0, 0}, int first_chunk = 0)
      : first_chunk_(first_chunk), forwards_(first), backwards_(first), weights_(first) {}

  void forward(int direction) { add(Pass::forward, direction, forwards_); }
  void backward(int direction) { add(Pass::backward, direction, backwards_); }
  void input(int direction) {
    add(Pass::input_gradient, direction, backwards_);
    waiting_.push_back(turns_.back());
  }
  void weight(int direction) { add(Pass::weight_gradient, direction, weights_); }
  /// Those of the input gradient that waits longest.
  void oldest_weight() {
    expects(!waiting_.empty(), "an input gradient before its weights'");
    turns_.push_back(waiting_.front());
    turns_.back().pass = Pass::weight_gradient;
    waiting_.pop_front();
  }
  void pair(int forward_direction, int backward_direction) {
    forward(forward_direction);
    turns_.back().paired = true;
    backward(backward_direction);
  }
  void backward(int direction, bool parted) { parted ? input(direction) : backward(direction); }

  std::int64_t forwards(int direction) const { return forwards_[chunk_of(direction)]; }
  std::int64_t inputs(int direction) const { return backwards_[chunk_of(direction)]; }
  std::int64_t weights(int direction) const { return weights_[chunk_of(direction)]; }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  using Counts = std::array<std::int64_t, 2>;
  std::size_t chunk_of(int direction) const {
    return static_cast<std::size_t>(direction ^ first_chunk_);
  }
  void add(Pass pass, int direction, Counts& counts) {
    const std::size_t chunk = chunk_of(direction);
    turns_.push_back({pass, counts[chunk]++, static_cast<std::int64_t>(chunk)});
  }

  int first_chunk_;
  Counts forwards_, backwards_, weights_;
  std::deque<Turn> waiting_;
  std::vector<Turn> turns_;
};

/// `rank` of `half` from the outside in, each of which is both first and last for one direction at
/// the outer end; `middle` pairs in the main part.
void write_dualpipe(TwoChunkTurns& turns, std::int64_t half, std::int64_t rank,
                    std::int64_t middle) {
  const std::int64_t inside = half - rank - 1;
  const auto times = [](std::int64_t count, auto&& write) {
    for (std::int64_t i = 0; i < count; ++i) write(i);
  };
  times(2 * inside, [&](std::int64_t) { turns.forward(0); });
  times(rank + 1, [&](std::int64_t) { turns.forward(0), turns.forward(1); });
  times(inside, [&](std::int64_t) { turns.input(1), turns.oldest_weight(), turns.forward(1); });
  times(middle, [&](std::int64_t i) {
    if (i == 0 && inside == 0)
      turns.forward(0), turns.backward(1);  // apart, so that the other stages start sooner
    else
      turns.pair(0, 1);
    turns.pair(1, 0);
  });
  times(inside, [&](std::int64_t) { turns.backward(1), turns.pair(1, 0); });
  const std::int64_t parted_from = (rank + 1) / 2;
  times(rank + 1, [&](std::int64_t i) {
    turns.backward(1, i > parted_from || (i == parted_from && rank % 2 == 1));
    turns.backward(0, i >= parted_from);
  });
  times(inside, [&](std::int64_t) { turns.oldest_weight(), turns.input(0); });
  times(rank + 1, [&](std::int64_t) { turns.oldest_weight(); });
}

}  // namespace

std::vector<Turn> zb_v_turns(std::int64_t stages, std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t p = stages, m = std::max(micro_batches, 2 * p - 1);
  TwoChunkTurns turns;
  const auto all_of = [&](int direction) { turns.input(direction), turns.weight(direction); };
  for (std::int64_t i = 0; i < 2 * (p - stage) - 1; ++i) turns.forward(0);
  for (std::int64_t i = 0; i < stage; ++i) turns.forward(1), turns.forward(0);
  for (std::int64_t i = 0; i < p - stage; ++i) turns.forward(1), all_of(1);
  while (turns.forwards(1) < turns.forwards(0) || turns.forwards(0) < m) {
    if (turns.forwards(0) < m) turns.forward(0);
    all_of(0), turns.forward(1), all_of(1);
  }
  for (std::int64_t i = 0; i < stage; ++i) turns.input(0), turns.input(1);
  for (std::int64_t i = 0; i < p - stage; ++i) turns.input(0), turns.weight(0);
  for (const int direction : {1, 0})
    while (turns.weights(direction) < turns.inputs(direction)) turns.weight(direction);
  std::vector<Turn> out = turns.take();
  // Too few to fill the stages: the places of those that are not there stay empty.
  std::erase_if(out, [&](const Turn& turn) { return turn.micro_batch >= micro_batches; });
  return out;
}

std::vector<Turn> dualpipe_turns(std::int64_t stages, std::int64_t micro_batches,
                                 std::int64_t stage) {
  const std::int64_t half = stages / 2, rank = std::min(stage, stages - 1 - stage);
  expects(stages % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * stages,
          "micro-batches that check() accepts");
  TwoChunkTurns turns({0, micro_batches / 2}, stage < half ? 0 : 1);
  write_dualpipe(turns, half, rank, micro_batches / 2 - stages + rank + 1);
  return turns.take();
}

std::vector<Turn> dualpipe_v_turns(std::int64_t stages, std::int64_t micro_batches,
                                   std::int64_t stage) {
  expects(micro_batches >= 2 * stages, "micro-batches that check() accepts");
  TwoChunkTurns turns;
  write_dualpipe(turns, stages, stage, micro_batches - 2 * stages + stage + 1);
  return turns.take();
}

}  // namespace stepcast::workloads
