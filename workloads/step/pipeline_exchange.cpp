#include "workloads/step/pipeline_exchange.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

/// Tensor ranks send a part of the hidden tensor each and gather it after (Megatron's
/// scatter-gather, arXiv 2104.04473); under sequence parallel it is cut anyway.
bool scatters(const StepInputs& in) {
  return in.software.pipeline.scatter_gather && in.plan.tensor > 1 && !in.plan.sequence_parallel;
}

/// Whether a turn's output goes from stage s to s + 1: parts of second chunks that lie upwards send
/// activations up and gradients down.
bool downwards(const ParallelPlan& plan, const Turn& turn) {
  const bool parts_go_down = plan.placement() == Placement::looped || turn.chunk == 0;
  return (turn.pass == Pass::forward) == parts_go_down;
}

/// A listed order of forwards and backwards of one chunk is exchanged as the built-in ones.
bool is_other_order(const PipelineShape& shape) {
  if (shape.schedule == Schedule::gpipe || shape.schedule == Schedule::one_f_one_b) return false;
  if (shape.schedule != Schedule::listed || shape.chunks > 1) return true;
  return std::ranges::any_of(shape.orders.list->stages, parts_backward);
}

/// Forwards before the first that a backward follows.
std::size_t warm_up_of(const std::vector<Turn>& turns) {
  const auto backward = std::find_if(turns.begin(), turns.end(),
                                     [](const Turn& t) { return t.pass == Pass::backward; });
  const auto forwards = static_cast<std::size_t>(backward - turns.begin());
  return 2 * forwards == turns.size() ? forwards : forwards - 1;
}

}  // namespace

Collective stage_message(const StepInputs& in, Pass pass, GroupKind link) {
  const std::int64_t bytes = Sizes(in).local_bytes();
  return {pass == Pass::forward ? "pipeline.forward" : "pipeline.backward",
          CollectiveKind::send_receive, link, in.precision.compute,
          Bytes(scatters(in) ? bytes / in.plan.tensor : bytes)};
}

/// The receive for the next turn of the same pass is posted now, so that it runs under the turn of
/// the other pass between them; the first of the backwards at the end of the warm-up
/// (core_v0.12.0 schedules.py forward_backward_pipelining_with_interleaving).
std::vector<std::size_t> receives_ahead(const std::vector<Turn>& turns, std::size_t turn) {
  std::vector<std::size_t> out;
  for (std::size_t next = turn + 1; next < turns.size() && next <= turn + 2; ++next)
    if (turns[next].pass == turns[turn].pass) {
      out.push_back(next);
      break;
    }
  const std::size_t warm_up = warm_up_of(turns);
  if (turn + 1 == warm_up) out.push_back(warm_up + (2 * warm_up < turns.size() ? 1 : 0));
  return out;
}

PipelineExchange::PipelineExchange(const StepInputs& in, KernelTable& table, Calls& calls,
                                   std::int64_t stage)
    : in_(in),
      table_(table),
      calls_(calls),
      stage_(stage),
      turns_(turns_of_stage(pipeline_shape(in.plan, in.batch), stage)),
      other_order_(is_other_order(pipeline_shape(in.plan, in.batch))),
      received_(turns_.size()) {
  if (other_order_) find_arrivals();
}

/// Folded parts: the middle two lie on the last stage.
bool PipelineExchange::turns_round(const Turn& turn, bool from_first_chunk) const {
  return in_.plan.placement() == Placement::folded && stage_ == in_.plan.pipeline - 1 &&
         (turn.chunk == 0) == from_first_chunk;
}

bool PipelineExchange::receives(std::size_t turn) const {
  const Turn& t = turns_[turn];
  if (t.pass == Pass::weight_gradient) return false;
  if (t.pass == Pass::forward) return !first_part(t) && !turns_round(t, false);
  return !last_part(t) && !turns_round(t, true);
}

bool PipelineExchange::sends(std::size_t turn) const {
  const Turn& t = turns_[turn];
  if (t.pass == Pass::weight_gradient) return false;
  if (t.pass == Pass::forward) return !last_part(t) && !turns_round(t, true);
  return !first_part(t) && !turns_round(t, false);
}

GroupKind PipelineExchange::link_of(const Turn& turn) const {
  return downwards(in_.plan, turn) ? GroupKind::pipeline_forward : GroupKind::pipeline_backward;
}

/// Messages of one kind from one stage are met in the order in which they are sent.
void PipelineExchange::find_arrivals() {
  using Input = std::tuple<bool, std::int64_t, std::int64_t>;  // forward, part, micro-batch
  std::map<Input, std::size_t> wanted;
  for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
    const Turn& t = turns_[turn];
    if (receives(turn)) wanted[{t.pass == Pass::forward, part_of(t), t.micro_batch}] = turn;
  }
  const PipelineShape shape = pipeline_shape(in_.plan, in_.batch);
  for (const bool down : {true, false}) {
    const std::int64_t sender = (stage_ + (down ? in_.plan.pipeline - 1 : 1)) % in_.plan.pipeline;
    for (const Turn& t : turns_of_stage(shape, sender)) {
      if (t.pass == Pass::weight_gradient || downwards(in_.plan, t) != down) continue;
      const bool forward = t.pass == Pass::forward;
      const std::int64_t part = in_.plan.part_of(sender, t.chunk) + (forward ? 1 : -1);
      const auto at = wanted.find({forward, part, t.micro_batch});
      if (at != wanted.end()) arrivals_[down ? 0 : 1].push_back(at->second);
    }
  }
}

std::uint32_t PipelineExchange::message(const Turn& turn) const {
  return table_.index_of(stage_message(in_, turn.pass, link_of(turn)));
}

/// Posted when the host gets here: the lane starts where compute stands, as torch's irecv does.
Event PipelineExchange::start_receive(std::size_t turn) {
  const GroupKind pair = link_of(turns_[turn]);
  const Lane lane = axis_of(pair).receiving_lane;
  calls_.after(lane, compute);
  calls_.join(lane, pair, message(turns_[turn]), true);
  return calls_.record(lane);
}

/// After those that its sender sends before.
void PipelineExchange::receive(std::size_t turn) {
  if (received_[turn]) return;
  if (!other_order_) {
    received_[turn] = start_receive(turn);
    return;
  }
  const std::size_t from = downwards(in_.plan, turns_[turn]) ? 0 : 1;
  while (!received_[turn]) {
    const std::size_t next = arrivals_[from].at(arrived_[from]++);
    received_[next] = start_receive(next);
  }
}

Lane PipelineExchange::start_send(std::size_t turn) {
  const GroupKind pair = link_of(turns_[turn]);
  const Lane lane = axis_of(pair).lane;
  calls_.after(lane, compute);
  calls_.join(lane, pair, message(turns_[turn]));
  return lane;
}

void PipelineExchange::before(std::size_t turn) {
  if (!receives(turn)) return;
  receive(turn);
  calls_.wait(compute, *received_[turn]);
  if (!ahead() && in_.software.pipeline.sync) {
    // Megatron synchronises after an exchange. A send is waited for only here, after the receive
    // that the neighbour may need first (its exchanges are batched: send and receive at once).
    calls_.host_wait(*received_[turn]);
    if (sent_) calls_.host_wait(*sent_);
    sent_.reset();
  }
  if (scatters(in_))
    calls_.tensor_collective(
        table_.index_of(Collective{"pipeline.gather", CollectiveKind::all_gather, GroupKind::tensor,
                                   in_.precision.compute, Bytes(Sizes(in_).hidden_bytes())}));
}

void PipelineExchange::after(std::size_t turn) {
  if (interleaved() && !other_order_ && !in_.software.pipeline.interleaved_overlap)
    return exchange(turn);
  if (sends(turn)) {
    const Lane lane = start_send(turn);
    if (!ahead() && in_.software.pipeline.sync) sent_ = calls_.record(lane);
  }
  if (!ahead()) return;
  for (const std::size_t next : next_receives(turn))
    if (receives(next)) receive(next);
}

std::vector<std::size_t> PipelineExchange::next_receives(std::size_t turn) const {
  if (!other_order_) return receives_ahead(turns_, turn);
  std::vector<std::size_t> out;
  for (std::size_t next = turn + 1; next < turns_.size() && next <= turn + 2; ++next)
    out.push_back(next);
  return out;
}

/// A turn after which everything is exchanged: each of the warm-up and the cool-down, and each
/// backward between them.
bool PipelineExchange::ends_exchange(std::size_t turn) const {
  const std::size_t warm_up_turns = warm_up_of(turns_);
  const bool steady = turn >= warm_up_turns && turn + warm_up_turns < turns_.size();
  return !steady || turns_[turn].pass == Pass::backward;
}

/// Sends of the turns since the last exchange, receives for those up to the next, all waited for by
/// the host (v2.6 p2p_communication.py: every exchange of the interleaved schedule).
void PipelineExchange::exchange(std::size_t turn) {
  if (!ends_exchange(turn)) return;
  std::vector<Event> all;
  for (; exchanged_ <= turn; ++exchanged_)
    if (sends(exchanged_)) all.push_back(calls_.record(start_send(exchanged_)));
  for (std::size_t next = turn + 1; next < turns_.size(); ++next) {
    if (receives(next)) all.push_back(received_[next].emplace(start_receive(next)));
    if (ends_exchange(next)) break;
  }
  for (const Event event : all) calls_.host_wait(event);
}

void PipelineExchange::visit(WriterState& state, std::size_t next, std::size_t ahead) {
  state.event(sent_);
  state.value(exchanged_ == 0 ? 0 : static_cast<std::int64_t>(next - exchanged_));
  for (std::size_t turn = next; turn < next + ahead; ++turn) state.event(received_.at(turn));
}

void PipelineExchange::pass(std::size_t next, std::size_t turns) {
  if (exchanged_ > 0) exchanged_ += turns;
  for (std::size_t turn = next; turn < next + turns; ++turn)
    if (receives(turn)) ++arrived_[downwards(in_.plan, turns_[turn]) ? 0 : 1];
  // Receives that were posted ahead of `next` are now ahead of the turn that comes.
  for (std::size_t turn = received_.size(); turn-- > next + turns;)
    received_[turn] = std::exchange(received_[turn - turns], std::nullopt);
}

}  // namespace stepcast::workloads
