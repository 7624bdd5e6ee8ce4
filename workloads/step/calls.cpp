#include "workloads/step/calls.hpp"

namespace stepcast::workloads {

void Calls::tensor_collective(std::uint32_t collective) {
  if (!tensor_overlap_) return join(compute, GroupKind::tensor, collective);
  begin_tensor_collective(collective);
  end_tensor_collective();
}

void Calls::begin_tensor_collective(std::uint32_t collective) {
  after(tensor_lane, compute);
  join(tensor_lane, GroupKind::tensor, collective);
  tensor_done_ = record(tensor_lane);
}

void Calls::tokens(std::uint32_t collective) {
  if (!expert_overlap_) return join(compute, GroupKind::expert, collective);
  begin_tokens(collective);
  end_tokens();
}

void Calls::begin_tokens(std::uint32_t collective) {
  after(expert_lane, compute);
  join(expert_lane, GroupKind::expert, collective);
  tokens_done_ = record(expert_lane);
}

void Calls::start_ring(std::uint32_t collective) {
  after(context_lane, compute);
  join(context_lane, GroupKind::context_ring, collective);
  ring_done_ = record(context_lane);
}

void Calls::wait_ring() { wait(compute, ring_done_); }

void Calls::end_tensor_collective() { wait(compute, tensor_done_); }

}  // namespace stepcast::workloads
