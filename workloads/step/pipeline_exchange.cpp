#include "workloads/step/pipeline_exchange.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::workloads {
namespace {

/// Tensor ranks send a part of the hidden tensor each and gather it after (Megatron's
/// scatter-gather, arXiv 2104.04473); under sequence parallel it is cut anyway.
bool scatters(const StepInputs& in) {
  return in.software.pipeline.scatter_gather && in.plan.tensor > 1 && !in.plan.sequence_parallel;
}

GroupKind pair_of(Pass pass) {
  return pass == Pass::forward ? GroupKind::pipeline_forward : GroupKind::pipeline_backward;
}

/// Forwards before the first that a backward follows.
std::size_t warm_up_of(const std::vector<Turn>& turns) {
  const auto backward = std::find_if(turns.begin(), turns.end(),
                                     [](const Turn& t) { return t.pass == Pass::backward; });
  const auto forwards = static_cast<std::size_t>(backward - turns.begin());
  return 2 * forwards == turns.size() ? forwards : forwards - 1;
}

}  // namespace

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
      turns_(turns_of_stage(
          {in.plan.schedule, in.plan.pipeline, in.batch.micro_batches, in.plan.virtual_stages},
          stage)),
      received_(turns_.size()) {}

bool PipelineExchange::receives(std::size_t turn) const {
  const Turn& t = turns_[turn];
  return t.pass == Pass::forward ? !first_part(t) : !last_part(t);
}

bool PipelineExchange::sends(std::size_t turn) const {
  const Turn& t = turns_[turn];
  return t.pass == Pass::forward ? !last_part(t) : !first_part(t);
}

/// One hidden tensor A between parts, cut by t with sequence parallel (core_v0.12.0 schedules.py
/// get_tensor_shapes).
std::uint32_t PipelineExchange::message(Pass pass) const {
  const std::int64_t bytes = Sizes(in_).local_bytes();
  return table_.index_of(
      Collective{pass == Pass::forward ? "pipeline.forward" : "pipeline.backward",
                 CollectiveKind::send_receive, pair_of(pass), in_.precision.compute,
                 Bytes(scatters(in_) ? bytes / in_.plan.tensor : bytes)});
}

/// Posted when the host gets here: the lane starts where compute stands, as torch's irecv does.
Event PipelineExchange::start_receive(std::size_t turn) {
  const GroupKind pair = pair_of(turns_[turn].pass);
  const Lane lane = axis_of(pair).receiving_lane;
  calls_.after(lane, compute);
  calls_.join(lane, pair, message(turns_[turn].pass), true);
  return calls_.record(lane);
}

Lane PipelineExchange::start_send(std::size_t turn) {
  const GroupKind pair = pair_of(turns_[turn].pass);
  const Lane lane = axis_of(pair).lane;
  calls_.after(lane, compute);
  calls_.join(lane, pair, message(turns_[turn].pass));
  return lane;
}

void PipelineExchange::before(std::size_t turn) {
  if (!receives(turn)) return;
  if (!received_[turn]) received_[turn] = start_receive(turn);
  calls_.wait(compute, *received_[turn]);
  if (!interleaved() && in_.software.pipeline.sync) {
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
  if (interleaved() && !in_.software.pipeline.interleaved_overlap) return exchange(turn);
  if (sends(turn)) {
    const Lane lane = start_send(turn);
    if (!interleaved() && in_.software.pipeline.sync) sent_ = calls_.record(lane);
  }
  if (!interleaved()) return;
  for (const std::size_t next : receives_ahead(turns_, turn))
    if (receives(next) && !received_[next]) received_[next] = start_receive(next);
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
  // Receives that were posted ahead of `next` are now ahead of the turn that comes.
  for (std::size_t turn = received_.size(); turn-- > next + turns;)
    received_[turn] = std::exchange(received_[turn - turns], std::nullopt);
}

}  // namespace stepcast::workloads
