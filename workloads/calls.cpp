#include "workloads/calls.hpp"

namespace stepcast::workloads {

void Calls::tensor_collective(std::uint32_t collective) {
  if (!tensor_overlap_) return join(compute, tensor_slot, collective);
  begin_tensor_collective(collective);
  end_tensor_collective();
}

void Calls::begin_tensor_collective(std::uint32_t collective) {
  after(tensor_lane, compute);
  join(tensor_lane, tensor_slot, collective);
  tensor_done_ = record(tensor_lane);
}

void Calls::start_ring(std::uint32_t collective) {
  const Event ready = record(compute);
  wait(context_send_lane, ready);
  wait(context_receive_lane, ready);
  join(context_send_lane, context_send_slot, collective);
  join(context_receive_lane, context_receive_slot, collective);
  ring_sent_ = record(context_send_lane);
  ring_received_ = record(context_receive_lane);
}

void Calls::wait_ring() {
  wait(compute, ring_sent_);
  wait(compute, ring_received_);
}

void Calls::end_tensor_collective() { wait(compute, tensor_done_); }

}  // namespace stepcast::workloads
