// The host thread of one role: each call with what it costs the host, and pieces replayed call by
// call with the collectives of the tensor group where the software puts them.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/program.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/step/step_program.hpp"
#include "workloads/step/writer_state.hpp"

namespace stepcast::workloads {

class Calls {
 public:
  /// Whether collectives of the tensor group and exchanges between experts overlap compute; of
  /// `host` what it waits for.
  explicit Calls(bool tensor_overlap, bool expert_overlap = false, const HostSoftware& host = {})
      : builder_(num_lanes),
        tensor_overlap_(tensor_overlap),
        expert_overlap_(expert_overlap),
        blocking_(host.launch_blocking),
        checked_(host.collective_checks) {}

  void kernel(Lane lane, std::uint32_t index) {
    builder_.work(lane, index, kernel_call);
    block(lane);
  }
  void forward_kernel(Lane lane, std::uint32_t index) {
    builder_.work(lane, index, forward_kernel_call);
    block(lane);
  }
  void graph_kernel(Lane lane, std::uint32_t index) { builder_.work(lane, index, graph_node_call); }
  void join(Lane lane, GroupKind group, std::uint32_t collective, bool receives = false,
            HostCost cost = collective_call) {
    const Meeting meeting = axis_of(group).meeting;
    // torch's wrapper of process groups lets messages of single ranks pass unchecked
    // (ProcessGroupWrapper.cpp, 2.1).
    if (checked_ && meeting == Meeting::all) host_work(check_call(group));
    builder_.join(lane, slot_of(group, receives), collective, cost);
    // Messages between stages are posted in batches, whose ends nobody waits for one by one.
    if (meeting != Meeting::pair) block(lane);
  }
  Event record(Lane lane) { return builder_.record(lane, event_call); }
  void wait(Lane lane, Event event) { builder_.wait(lane, event, event_call); }
  void host_wait(Event event) { builder_.host_wait(event, event_call); }
  void host_work(HostCost cost) { builder_.host_work(cost); }
  void mark() { builder_.mark(); }

  /// `later` goes on when `earlier` has done all that is launched on it so far.
  Event after(Lane later, Lane earlier) {
    const Event event = record(earlier);
    wait(later, event);
    return event;
  }

  /// A collective of the tensor group that compute waits for. The tensor communicator stays on one
  /// lane: the tensor lane when some of its collectives overlap, else the compute lane.
  void tensor_collective(std::uint32_t collective);
  /// `library`: launched from within a library's call, for what an event costs.
  void begin_tensor_collective(std::uint32_t collective, bool library = false);
  void begin_tensor_ring(std::uint32_t collective);
  void end_tensor_collective();

  /// The same of the expert group.
  void tokens(std::uint32_t collective);
  void begin_tokens(std::uint32_t collective);
  void end_tokens() { wait(compute, tokens_done_); }

  /// Each context rank sends to the next and receives from the one before, beside compute.
  void start_ring(std::uint32_t collective);
  void wait_ring();

  /// A piece, call by call; `gradient` is told each tensor whose gradient is complete.
  void replay(const Piece& piece, const std::function<void(std::uint32_t)>& gradient,
              Lane lane = compute);

  /// What was called since `first` is called `more` times again; `events` of it were recorded.
  void repeat(std::uint32_t first, std::uint32_t more, std::uint32_t events) {
    builder_.repeat(first, more, events);
  }
  const engine::ProgramBuilder& builder() const { return builder_; }
  void visit(WriterState& state) {
    state.event(tensor_done_);
    state.event(ring_done_);
    state.event(tokens_done_);
  }

  engine::Program take() { return builder_.take(); }

 private:
  /// CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel has ended.
  void block(Lane lane) {
    if (blocking_) builder_.host_wait(builder_.record(lane, free_call), free_call);
  }

  engine::ProgramBuilder builder_;
  bool tensor_overlap_, expert_overlap_, blocking_, checked_;
  Event tensor_done_ = 0;
  Event ring_done_ = 0;
  Event tokens_done_ = 0;
};

}  // namespace stepcast::workloads
