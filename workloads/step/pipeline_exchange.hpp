// Activations and their gradients between the parts of a pipelined model, as one stage's host
// thread sends and receives them (Megatron, p2p_communication.py).
//
//   1f1b                  receive where it is needed, send when it is there
//   interleaved, overlap  after a turn: send its output, receive for the next turn of its pass
//   interleaved, else     all sends and receives of a forward and a backward at once, host waits
//   other orders          after a turn: send its output, receive for the next two, each neighbour's
//                         messages in the order in which it sends them (torch's pipelining/
//                         schedules.py, _add_send_recv; recalled, 2026)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/pieces/kernel_table.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/pipeline.hpp"
#include "workloads/step/calls.hpp"

namespace stepcast::workloads {

/// Interleaved, overlapping: the turns whose receives are posted when `turn` is done, if they
/// receive at all and are not posted yet.
std::vector<std::size_t> receives_ahead(const std::vector<Turn>& turns, std::size_t turn);

/// What neighbouring stages send: one hidden tensor, cut by tensor ranks with sequence parallel
/// (core_v0.12.0 schedules.py get_tensor_shapes) or where they scatter it.
Collective stage_message(const StepInputs&, Pass, GroupKind link);

class PipelineExchange {
 public:
  PipelineExchange(const StepInputs&, KernelTable&, Calls&, std::int64_t stage);

  const std::vector<Turn>& turns() const { return turns_; }
  /// Makes compute wait for the input of a turn.
  void before(std::size_t turn);
  /// Hands on its output.
  void after(std::size_t turn);

  /// The state before turn `next`, as far as `ahead` turns behind it.
  void visit(WriterState& state, std::size_t next, std::size_t ahead);
  /// Turns [next, next + turns) are done as those before; `next` + turns is the next one.
  void pass(std::size_t next, std::size_t turns);

  bool first_part(const Turn& turn) const { return part_of(turn) == 0; }
  bool last_part(const Turn& turn) const { return part_of(turn) == in_.plan.parts() - 1; }

 private:
  std::int64_t part_of(const Turn& turn) const { return in_.plan.part_of(stage_, turn.chunk); }
  bool turns_round(const Turn& turn, bool from_first_chunk) const;
  bool receives(std::size_t turn) const;
  bool sends(std::size_t turn) const;
  bool interleaved() const { return in_.plan.virtual_stages > 1; }
  bool ahead() const { return interleaved() || other_order_; }
  std::vector<std::size_t> next_receives(std::size_t turn) const;
  void find_arrivals();
  bool ends_exchange(std::size_t turn) const;

  GroupKind link_of(const Turn& turn) const;
  std::uint32_t message(const Turn& turn) const;
  Event start_receive(std::size_t turn);
  void receive(std::size_t turn);
  Lane start_send(std::size_t turn);
  void exchange(std::size_t turn);

  const StepInputs in_;
  KernelTable& table_;
  Calls& calls_;
  std::int64_t stage_;
  std::vector<Turn> turns_;
  bool other_order_;  // than GPipe's, 1F1B's or interleaved 1F1B's
  // Where neighbours' orders may differ: turns in the order in which their inputs are sent, from
  // the stage before and from that after, and how many of them were received.
  std::array<std::vector<std::size_t>, 2> arrivals_;
  std::array<std::size_t, 2> arrived_{0, 0};
  std::vector<std::optional<Event>> received_;  // by turn: under way or done
  std::optional<Event> sent_;  // pipeline_sync: the host waits for it after the next receive
  std::size_t exchanged_ = 0;  // turns before it have sent their outputs
};

}  // namespace stepcast::workloads
