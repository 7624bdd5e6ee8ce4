// A forward of one micro-batch beside the backward of another on two streams, layer by layer, as
// Megatron core issues them (models/common/model_chunk_schedule_plan.py at d98e8a6, read 2026):
//
//       expert lane                  compute lane
//    1  backward: rest, combine
//    2                               forward: attention, norm, router, permute
//    3                               backward: experts
//    4  forward: dispatch
//    5                               backward: the experts' weight gradients, where put off
//    6  backward: dispatch
//    7                               forward: experts
//    8  forward: combine, rest
//    9                               backward: permute, router, attention
//   10                               backward: the other weight gradients, where put off
//
// Every row waits for the row before it of its own micro-batch alone. The rest of a layer, the sum
// of a token's rows and the residual, runs where the way back does (submodule_combine_forward in
// fine_grained_callables.py; recalled, 2026). Dense layers have rows 2, 3, 7 and 9. A turn that
// runs alone has its own rows.
#include "workloads/step/turn_writer.hpp"

namespace stepcast::workloads {
namespace {

using enum LayerNode;

/// Exchanges of a node, a second time for where they run under another micro-batch's compute.
void also_beside(const Piece& node, KernelTable& table,
                 std::map<std::uint32_t, std::uint32_t>& out) {
  for (const Action& action : node) {
    if (action.kind == Action::Kind::host_wait) continue;
    Collective beside = table.collectives()[action.index];
    beside.beside = true;
    out.emplace(action.index, table.index_of(std::move(beside)));
  }
}

}  // namespace

void TurnWriter::make_nodes(KernelTable& table) {
  const bool put_off = in_.plan.expert.delay_wgrad;
  for (const OfLayer& layer : layers_) {
    NodesOfLayer out;
    for (std::size_t i = 0; i < num_layer_nodes; ++i) {
      out.forward[i] = node_of(layer.forward, static_cast<LayerNode>(i));
      out.backward[i] = node_of(layer.backward.whole, static_cast<LayerNode>(i));
      if (!put_off) continue;
      out.weights[i] = part_of_backward(out.backward[i], true);
      out.backward[i] = part_of_backward(out.backward[i], false);
    }
    for (const Nodes* way : {&out.forward, &out.backward})
      for (const LayerNode node : {dispatch, combine}) also_beside(of(*way, node), table, beside_);
    nodes_.push_back(std::move(out));
  }
}

/// The exchange of a node on its lane; the host waits for counts behind all that is on that lane.
void TurnWriter::exchange(const Piece& node, const Together& run) {
  for (const Action& action : node) {
    if (action.kind == Action::Kind::host_wait)
      calls_.host_wait(calls_.record(expert_lane));
    else
      calls_.join(expert_lane, GroupKind::expert,
                  run.both() ? beside_.at(action.index) : action.index);
  }
}

void TurnWriter::weights(std::size_t unit, LayerNode node) {
  replay(nodes_of(unit).weights, node, unit);
}

/// Rows 2, 4, 7, 8, and their events.
void TurnWriter::ahead_attention(Together& run, std::size_t unit) {
  enter(turns()[*run.forward]);
  data([&](auto& d) { d.before_forward(unit); });
  if (run.forward_done) calls_.wait(compute, *run.forward_done);
  run.forward_done.reset();
  replay(nodes_of(unit).forward, attention, unit);
  if (exchanges(unit)) run.permuted = calls_.record(compute);
}
void TurnWriter::ahead_dispatch(Together& run, std::size_t unit) {
  if (!exchanges(unit)) return;
  calls_.wait(expert_lane, run.permuted);
  exchange(of(nodes_of(unit).forward, dispatch), run);
  run.dispatched = calls_.record(expert_lane);
}
void TurnWriter::ahead_experts(Together& run, std::size_t unit) {
  enter(turns()[*run.forward]);
  if (exchanges(unit)) calls_.wait(compute, run.dispatched);
  replay(nodes_of(unit).forward, experts, unit);
  if (exchanges(unit)) {
    calls_.after(expert_lane, compute);
    exchange(of(nodes_of(unit).forward, combine), run);
    replay(nodes_of(unit).forward, rest, unit, expert_lane);
    run.forward_done = calls_.record(expert_lane);
  }
  data([&](auto& d) { d.after_forward(unit); });
}

/// Rows 1, 3, 5 and 6, 9 and 10.
void TurnWriter::back_combine(Together& run, std::size_t unit) {
  enter(turns()[*run.backward]);
  data([&](auto& d) { d.before_backward(unit); });
  if (!exchanges(unit)) return;
  calls_.wait(expert_lane, run.backward_done ? *run.backward_done : calls_.record(compute));
  replay(nodes_of(unit).backward, rest, unit, expert_lane);
  exchange(of(nodes_of(unit).backward, combine), run);
  run.combined = calls_.record(expert_lane);
}
void TurnWriter::back_experts(Together& run, std::size_t unit) {
  enter(turns()[*run.backward]);
  if (exchanges(unit)) calls_.wait(compute, run.combined);
  replay(nodes_of(unit).backward, experts, unit);
  if (exchanges(unit)) run.computed = calls_.record(compute);
}
void TurnWriter::back_dispatch(Together& run, std::size_t unit) {
  weights(unit, experts);
  if (!exchanges(unit)) return;
  calls_.wait(expert_lane, run.computed);
  exchange(of(nodes_of(unit).backward, dispatch), run);
  run.returned = calls_.record(expert_lane);
}
void TurnWriter::back_attention(Together& run, std::size_t unit) {
  enter(turns()[*run.backward]);
  if (exchanges(unit)) calls_.wait(compute, run.returned);
  replay(nodes_of(unit).backward, attention, unit);
  run.backward_done = calls_.record(compute);
  run.put_off.reset();
  if (in_.plan.expert.delay_wgrad && unit == run.backwards.begin) {
    run.put_off = unit;
    return;
  }
  weights(unit, attention);
  data([&](auto& d) { d.after_backward(unit); });
}

/// The rows of a forward's and a backward's layer, either of which may not be there.
void TurnWriter::layer_pair(Together& run, std::optional<std::size_t> ahead,
                            std::optional<std::size_t> back) {
  if (back) back_combine(run, *back);
  if (ahead) ahead_attention(run, *ahead);
  if (back) back_experts(run, *back);
  if (ahead) ahead_dispatch(run, *ahead);
  if (back) back_dispatch(run, *back);
  if (ahead) ahead_experts(run, *ahead);
  if (back) back_attention(run, *back);
}

/// The weight gradients of a backward's last layer fill the wait for the neighbours.
void TurnWriter::together(std::optional<std::size_t> forward, std::optional<std::size_t> backward) {
  Together run{forward, backward};
  if (forward) begin_forward(*forward), run.forwards = units_of(turns()[*forward]);
  if (backward) begin_backward(*backward), run.backwards = units_of(turns()[*backward]);
  std::size_t next = run.forwards.begin, last = run.backwards.end;
  while (next < run.forwards.end || last > run.backwards.begin) {
    std::optional<std::size_t> ahead, back;
    if (next < run.forwards.end) ahead = next++;
    if (last > run.backwards.begin) back = --last;
    layer_pair(run, ahead, back);
  }
  if (forward) {
    enter(turns()[*forward]);
    if (run.forward_done) calls_.wait(compute, *run.forward_done);
    end_forward(*forward);
  }
  if (!backward) return;
  const Turn& now = turns()[*backward];
  enter(now);
  if (exchange_.first_part(now)) replay(embedding_backward_, 0);
  exchange_.after(*backward);
  if (run.put_off) {
    weights(*run.put_off, attention);
    data([&](auto& d) { d.after_backward(*run.put_off); });
  }
  end_gradients(now);
}

}  // namespace stepcast::workloads
