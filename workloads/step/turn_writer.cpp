#include "workloads/step/turn_writer.hpp"

#include <algorithm>
#include <numeric>

#include "workloads/pieces/ends_piece.hpp"

namespace stepcast::workloads {
namespace {

/// Whether the gradients of a chunk are complete after it, for its micro-batch.
bool completes_gradients(const Turn& turn) {
  return turn.pass == Pass::backward || turn.pass == Pass::weight_gradient;
}

}  // namespace

TurnWriter::TurnWriter(const StepInputs& in, KernelTable& table, Calls& calls,
                       const StageParameters& parameters, std::int64_t stage)
    : in_(in),
      calls_(calls),
      parameters_(parameters),
      stage_(stage),
      data_(make_data_calls(table)),
      exchange_(in_, table, calls_, stage),
      offload_(in_, table, calls_, parameters_),
      parts_(parts_backward(exchange_.turns())),
      gradients_of_chunk_(parameters.chunk_layers.size(), 0),
      all_gradients_of_chunk_(parameters.chunk_layers.size(), 0) {
  for (const Turn& turn : turns())
    if (completes_gradients(turn)) ++all_gradients_of_chunk_[static_cast<std::size_t>(turn.chunk)];
  make_pieces(table);
  if (overlaps()) make_nodes(table);
}

TurnWriter::Backward TurnWriter::parted(Piece whole) const {
  Backward out{std::move(whole), {}, {}};
  if (!parts_) return out;
  out.input = part_of_backward(out.whole, false);
  out.weights = part_of_backward(out.whole, true);
  return out;
}

void TurnWriter::make_pieces(KernelTable& table) {
  for (const AlikeLayers& alike : parameters_.kinds) {
    LayerPieces pieces = layer_pieces(in_, table, alike);
    layers_.push_back({std::move(pieces.forward), parted(std::move(pieces.backward)),
                       parted(std::move(pieces.kept_backward))});
  }
  if (in_.plan.has_first_part(stage_)) {
    embedding_forward_ = embedding_forward(in_, table);
    embedding_backward_ = embedding_backward(in_, table, parameters_.root);
  }
  if (in_.plan.has_last_part(stage_)) {
    head_forward_ = head_forward(in_, table);
    head_backward_ = parted(head_backward(in_, table, parameters_.root));
  }
}

void TurnWriter::replay(const Piece& piece, std::size_t unit, Lane lane) {
  calls_.replay(
      piece, [&](std::uint32_t tensor) { data([&](auto& d) { d.gradient(unit, tensor); }); }, lane);
}

/// The units of a stage are its root, if it has one, then the layers chunk by chunk.
UnitRange TurnWriter::units_of(const Turn& turn) const {
  const auto chunk = parameters_.chunk_layers.begin() + turn.chunk;
  const std::int64_t root = parameters_.root.empty() ? 0 : 1;
  const std::int64_t before = std::accumulate(parameters_.chunk_layers.begin(), chunk, root);
  return {static_cast<std::size_t>(before), static_cast<std::size_t>(before + *chunk)};
}

void TurnWriter::enter(const Turn& turn) {
  units_ = units_of(turn);
  if (auto* sharded = std::get_if<ShardedUnits>(&data_)) sharded->enter(units_);
}

/// A stage with both ends of the model runs backward through the embedding's last.
bool TurnWriter::completes_root(const Turn& turn) const {
  return exchange_.first_part(turn) ||
         (exchange_.last_part(turn) && !in_.plan.has_first_part(stage_));
}

void TurnWriter::begin_forward(std::size_t turn) {
  const Turn& now = turns()[turn];
  enter(now);
  const bool first = forwards_++ == 0;
  data([&](auto& d) { d.start_forward(first); });
  exchange_.before(turn);
  if (has_root(now)) data([&](auto& d) { d.before_forward(0); });
  if (exchange_.first_part(now)) replay(embedding_forward_, 0);
}

void TurnWriter::forward_layer(std::size_t unit) {
  data([&](auto& d) { d.before_forward(unit); });
  offload_.before_forward();
  replay(pieces_of(unit).forward, unit);
  offload_.after_forward(unit, units_);
  data([&](auto& d) { d.after_forward(unit); });
}

void TurnWriter::end_forward(std::size_t turn) {
  if (exchange_.last_part(turns()[turn])) replay(head_forward_, 0);
  exchange_.after(turn);
}

void TurnWriter::forward(std::size_t turn) {
  begin_forward(turn);
  for (std::size_t unit = units_.begin; unit < units_.end; ++unit) forward_layer(unit);
  end_forward(turn);
}

void TurnWriter::begin_gradients(const Turn& turn) {
  enter(turn);
  const auto chunk = static_cast<std::size_t>(turn.chunk);
  const std::int64_t of_chunk = ++gradients_of_chunk_[chunk];
  data([&](auto& d) {
    d.start_backward(of_chunk == 1, of_chunk == all_gradients_of_chunk_[chunk]);
  });
}

void TurnWriter::end_gradients(const Turn& turn) {
  if (completes_root(turn)) data([&](auto& d) { d.after_backward(0); });
  data([](auto& d) { d.after_micro_batch(); });
  const bool last = gradients_of_chunk_ == all_gradients_of_chunk_;
  if (last || in_.plan.reduce == ReduceWhen::each) data([](auto& d) { d.finish_backward(); });
}

const TurnWriter::Backward& TurnWriter::backward_of(std::size_t unit) const {
  const auto of_part = static_cast<std::int64_t>(unit - units_.begin);
  const bool again = of_part % in_.plan.recompute_every == 0;
  return again ? pieces_of(unit).backward : pieces_of(unit).kept_backward;
}

void TurnWriter::begin_backward(std::size_t turn) {
  const Turn& now = turns()[turn];
  begin_gradients(now);
  exchange_.before(turn);
  offload_.start_backward(units_, follows_its_forward(turn));
  if (has_root(now)) data([&](auto& d) { d.before_backward(0); });
  if (exchange_.last_part(now)) replay(head_backward_.whole, 0);
}

bool TurnWriter::follows_its_forward(std::size_t turn) const {
  if (turn == 0) return false;
  const Turn &now = turns()[turn], &before = turns()[turn - 1];
  return before.pass == Pass::forward && before.chunk == now.chunk &&
         before.micro_batch == now.micro_batch;
}

void TurnWriter::backward_layer(std::size_t unit) {
  data([&](auto& d) { d.before_backward(unit); });
  offload_.before_backward(unit, units_);
  replay(backward_of(unit).whole, unit);
  data([&](auto& d) { d.after_backward(unit); });
}

void TurnWriter::end_backward(std::size_t turn) {
  const Turn& now = turns()[turn];
  if (exchange_.first_part(now)) replay(embedding_backward_, 0);
  exchange_.after(turn);
  end_gradients(now);
}

void TurnWriter::backward(std::size_t turn) {
  begin_backward(turn);
  for (std::size_t unit = units_.end; unit-- > units_.begin;) backward_layer(unit);
  end_backward(turn);
}

void TurnWriter::input_gradients(std::size_t turn) {
  const Turn& now = turns()[turn];
  enter(now);
  exchange_.before(turn);
  if (exchange_.last_part(now)) {
    data([&](auto& d) { d.before_backward(0); });
    replay(head_backward_.input, 0);
  }
  for (std::size_t unit = units_.end; unit-- > units_.begin;) {
    data([&](auto& d) { d.before_backward(unit); });
    replay(backward_of(unit).input, unit);
    data([&](auto& d) { d.release(unit); });
  }
  exchange_.after(turn);
}

/// The embedding's gradient is a weight gradient altogether.
void TurnWriter::weight_gradients(std::size_t turn) {
  const Turn& now = turns()[turn];
  begin_gradients(now);
  if (exchange_.last_part(now)) replay(head_backward_.weights, 0);
  for (std::size_t unit = units_.end; unit-- > units_.begin;) {
    replay(backward_of(unit).weights, unit);
    data([&](auto& d) { d.reduce_gradients(unit); });
  }
  if (exchange_.first_part(now)) replay(embedding_backward_, 0);
  exchange_.after(turn);
  end_gradients(now);
}

void TurnWriter::pair(std::size_t turn) {
  const Turn &ahead = turns()[turn], &back = turns()[turn + 1];
  begin_forward(turn);
  begin_backward(turn + 1);
  const UnitRange forwards = units_of(ahead), backwards = units_of(back);
  std::size_t next = forwards.begin, last = backwards.end;
  while (next < forwards.end || last > backwards.begin) {
    if (next < forwards.end) enter(ahead), forward_layer(next++);
    if (last > backwards.begin) enter(back), backward_layer(--last);
  }
  end_forward(turn);
  end_backward(turn + 1);
}

void TurnWriter::write(std::size_t turn) {
  if (turn > 0 && turns()[turn - 1].paired) return;
  if (turns()[turn].paired) return overlaps() ? together(turn, turn + 1) : pair(turn);
  switch (turns()[turn].pass) {
    case Pass::forward:
      return overlaps() ? together(turn, std::nullopt) : forward(turn);
    case Pass::backward:
      return overlaps() ? together(std::nullopt, turn) : backward(turn);
    case Pass::input_gradient:
      return input_gradients(turn);
    case Pass::weight_gradient:
      return weight_gradients(turn);
  }
}

void TurnWriter::after_optimizer() {
  data([](auto& d) { d.after_optimizer(); });
}

bool TurnWriter::any_first_backward(std::size_t first, std::size_t end) const {
  const auto begin = turns().begin();
  return std::any_of(begin + static_cast<std::ptrdiff_t>(first),
                     begin + static_cast<std::ptrdiff_t>(end), [&](const Turn& turn) {
                       return completes_gradients(turn) &&
                              gradients_of_chunk_[static_cast<std::size_t>(turn.chunk)] == 0;
                     });
}

void TurnWriter::visit(WriterState& state, std::size_t next, std::size_t ahead) {
  data([&](auto& d) { d.visit(state); });
  exchange_.visit(state, next, ahead);
  offload_.visit(state);
}

void TurnWriter::pass(std::size_t next, std::size_t turns_done) {
  exchange_.pass(next, turns_done);
  for (std::size_t t = next; t < next + turns_done; ++t) {
    const Turn& turn = turns()[t];
    if (turn.pass == Pass::forward) ++forwards_;
    if (completes_gradients(turn)) ++gradients_of_chunk_[static_cast<std::size_t>(turn.chunk)];
  }
}

}  // namespace stepcast::workloads
