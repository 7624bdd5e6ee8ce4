#include "workloads/step/calls.hpp"

namespace stepcast::workloads {

void Calls::tensor_collective(std::uint32_t collective) {
  if (!tensor_overlap_) return join(compute, GroupKind::tensor, collective);
  begin_tensor_collective(collective);
  end_tensor_collective();
}

void Calls::begin_tensor_collective(std::uint32_t collective, bool library) {
  after(tensor_lane, compute);
  join(tensor_lane, GroupKind::tensor, collective, false, library ? event_call : collective_call);
  tensor_done_ = record(tensor_lane);
}

void Calls::begin_tensor_ring(std::uint32_t collective) {
  after(tensor_lane, compute);
  join(tensor_lane, GroupKind::tensor_ring, collective, false, event_call);
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

void Calls::replay(const Piece& piece, const std::function<void(std::uint32_t)>& gradient,
                   Lane lane) {
  for (const Action& action : piece) switch (action.kind) {
      case Action::Kind::kernel:
        kernel(lane, action.index);
        break;
      case Action::Kind::forward_kernel:
        forward_kernel(lane, action.index);
        break;
      case Action::Kind::graph:
        host_work(graph_call);
        break;
      case Action::Kind::graph_kernel:
        graph_kernel(lane, action.index);
        break;
      case Action::Kind::module:
        host_work(module_call);
        break;
      case Action::Kind::collective:
        tensor_collective(action.index);
        break;
      case Action::Kind::begin:
        begin_tensor_collective(action.index, action.library);
        break;
      case Action::Kind::tensor_ring:
        begin_tensor_ring(action.index);
        break;
      case Action::Kind::end:
        end_tensor_collective();
        break;
      case Action::Kind::ring_start:
        start_ring(action.index);
        break;
      case Action::Kind::ring_wait:
        wait_ring();
        break;
      case Action::Kind::context:
        join(compute, GroupKind::context, action.index);
        break;
      case Action::Kind::tokens:
        tokens(action.index);
        break;
      case Action::Kind::begin_tokens:
        begin_tokens(action.index);
        break;
      case Action::Kind::end_tokens:
        end_tokens();
        break;
      case Action::Kind::expert_tensor:
        join(compute, GroupKind::expert_tensor, action.index);
        break;
      case Action::Kind::host_wait:
        host_wait(record(compute));
        break;
      case Action::Kind::host_call:
        host_work(static_cast<HostCost>(action.index));
        break;
      case Action::Kind::gradient:
        gradient(action.index);
        break;
    }
}

}  // namespace stepcast::workloads
