// The turns of one pipeline stage, call by call: forwards, backwards, whole or parted into input
// and weight gradients, and pairs of both, with what data parallelism and the neighbours add.
//
// A pair runs layer by layer: a layer of the forward, a layer of the backward; where the exchange
// between experts overlaps, on two streams (overlapped_turns.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/activation_offload.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/gradient_buckets.hpp"
#include "workloads/step/pipeline_exchange.hpp"
#include "workloads/step/sharded_units.hpp"
#include "workloads/step/step_parts.hpp"

namespace stepcast::workloads {

class TurnWriter {
 public:
  TurnWriter(const StepInputs&, KernelTable&, Calls&, const StageParameters&, std::int64_t stage);

  const std::vector<Turn>& turns() const { return exchange_.turns(); }
  /// The first of a pair writes both, the second nothing more.
  void write(std::size_t turn);
  void after_optimizer();

  /// Gradients are reduced in buckets, parameters not gathered unit by unit.
  bool has_buckets() const { return std::holds_alternative<GradientBuckets>(data_); }
  /// Whether a chunk has its first backward among turns [first, end), which come next.
  bool any_first_backward(std::size_t first, std::size_t end) const;
  /// The state before turn `next`, as far as `ahead` turns behind it.
  void visit(WriterState& state, std::size_t next, std::size_t ahead);
  /// Turns [next, next + turns) are done as those before.
  void pass(std::size_t next, std::size_t turns);

 private:
  using DataParallelCalls = std::variant<ShardedUnits, GradientBuckets>;
  /// A backward, and the same in two where the schedule parts it.
  struct Backward {
    Piece whole, input, weights;
  };
  struct OfLayer {
    Piece forward;
    Backward backward, kept_backward;
  };
  /// Where the exchange between experts overlaps: a layer's nodes each way, and weight gradients
  /// that are put off.
  using Nodes = std::array<Piece, num_layer_nodes>;
  struct NodesOfLayer {
    Nodes forward, backward, weights;
  };
  /// Up to two turns that run together, a forward and a backward, with the layer that each is at.
  struct Together {
    std::optional<std::size_t> forward, backward;
    UnitRange forwards{}, backwards{};
    std::optional<Event> forward_done{}, backward_done{};  // of the layer before
    bool both() const { return forward && backward; }
    Event permuted = 0, dispatched = 0, combined = 0, computed = 0, returned = 0;
    std::optional<std::size_t> put_off{};  // the layer whose weight gradients run after the sends
  };

  template <class F>
  void data(F&& f) {
    std::visit(std::forward<F>(f), data_);
  }
  DataParallelCalls make_data_calls(KernelTable& table) {
    if (in_.sharded()) return ShardedUnits(in_, table, calls_, parameters_);
    return GradientBuckets(in_, table, calls_, parameters_);
  }
  void make_pieces(KernelTable& table);
  Backward parted(Piece whole) const;

  bool has_root(const Turn& turn) const {
    return exchange_.first_part(turn) || exchange_.last_part(turn);
  }
  bool completes_root(const Turn& turn) const;
  const OfLayer& pieces_of(std::size_t unit) const {
    return layers_[parameters_.kind_of[unit - (parameters_.root.empty() ? 0 : 1)]];
  }
  const Backward& backward_of(std::size_t unit) const;
  bool follows_its_forward(std::size_t turn) const;
  UnitRange units_of(const Turn& turn) const;
  void enter(const Turn& turn);
  void replay(const Piece& piece, std::size_t unit, Lane lane = compute);
  void replay(const Nodes& nodes, LayerNode node, std::size_t unit, Lane lane = compute) {
    replay(of(nodes, node), unit, lane);
  }

  void begin_forward(std::size_t turn);
  void forward_layer(std::size_t unit);
  void end_forward(std::size_t turn);
  void forward(std::size_t turn);
  void begin_gradients(const Turn& turn);
  void end_gradients(const Turn& turn);
  void begin_backward(std::size_t turn);
  void backward_layer(std::size_t unit);
  void end_backward(std::size_t turn);
  void backward(std::size_t turn);
  void input_gradients(std::size_t turn);
  void weight_gradients(std::size_t turn);
  void pair(std::size_t turn);

  bool overlaps() const { return in_.plan.expert.overlap; }
  void make_nodes(KernelTable& table);
  const NodesOfLayer& nodes_of(std::size_t unit) const {
    return nodes_[parameters_.kind_of[unit - (parameters_.root.empty() ? 0 : 1)]];
  }
  void together(std::optional<std::size_t> forward, std::optional<std::size_t> backward);
  void layer_pair(Together& run, std::optional<std::size_t> ahead, std::optional<std::size_t> back);
  void ahead_attention(Together& run, std::size_t unit);
  void ahead_dispatch(Together& run, std::size_t unit);
  void ahead_experts(Together& run, std::size_t unit);
  void back_combine(Together& run, std::size_t unit);
  void back_experts(Together& run, std::size_t unit);
  void back_dispatch(Together& run, std::size_t unit);
  void back_attention(Together& run, std::size_t unit);
  void weights(std::size_t unit, LayerNode node);
  void exchange(const Piece& node, const Together& run);
  static const Piece& of(const Nodes& nodes, LayerNode node) {
    return nodes[static_cast<std::size_t>(node)];
  }
  bool exchanges(std::size_t unit) const {
    return !of(nodes_of(unit).forward, LayerNode::dispatch).empty();
  }

  const StepInputs in_;
  Calls& calls_;
  const StageParameters& parameters_;
  std::int64_t stage_;
  DataParallelCalls data_;
  PipelineExchange exchange_;
  ActivationOffload offload_;
  bool parts_;  // backwards in two
  Piece embedding_forward_, head_forward_, embedding_backward_;
  Backward head_backward_;
  std::vector<OfLayer> layers_;                    // by kind
  std::vector<NodesOfLayer> nodes_;                // the same, where the exchange overlaps
  std::map<std::uint32_t, std::uint32_t> beside_;  // an exchange, and the same under compute
  UnitRange units_;                                // of the chunk whose turn it is
  std::int64_t forwards_ = 0;
  std::vector<std::int64_t> gradients_of_chunk_, all_gradients_of_chunk_;  // turns: done, and all
};

}  // namespace stepcast::workloads
