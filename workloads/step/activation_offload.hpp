// Activations that lie in the host's memory from a layer's forward to its backward: copied out on a
// stream of their own behind the layer that made them, copied back one layer ahead of the backward
// that needs them (Megatron core's and Transformer Engine's CPU offloading; recalled, 2026).
//
// Room for the offloaded part of two layers stays on the GPU: a layer begins once what the layer
// before the last left is out. Each part's last layer is kept, as its backward comes first; where
// it comes at once, copies back wait for the last copy out. With F, B and C the times of a forward,
// a backward and a copy of one of n layers, alone on their lanes:
//   forward  n F, or with C > F, 2 F + (n - 2) C;   backward  B + (n - 1) max(B, C).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "workloads/pieces/kernel_table.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/sharded_units.hpp"

namespace stepcast::workloads {

class ActivationOffload {
 public:
  ActivationOffload(const StepInputs&, KernelTable&, Calls&, const StageParameters&);

  /// Of a chunk's layers `units`.
  void before_forward();
  void after_forward(std::size_t unit, const UnitRange& units);
  /// `at_once`: the forward of the same micro-batch and chunk was the turn before.
  void start_backward(const UnitRange& units, bool at_once);
  void before_backward(std::size_t unit, const UnitRange& units);
  void visit(WriterState& state) {
    state.all(out_);
    state.event(back_);
  }

 private:
  std::uint32_t copy(const char* name, std::size_t unit, const UnitRange& units);
  void bring_back(std::size_t unit, const UnitRange& units);
  bool on() const { return in_.plan.offload.activations > 0.0; }

  const StepInputs& in_;
  KernelTable& table_;
  Calls& calls_;
  const StageParameters& parameters_;
  std::deque<Event> out_;  // copies of the last two layers
  Event back_ = 0;         // of the layer that comes next
};

}  // namespace stepcast::workloads
