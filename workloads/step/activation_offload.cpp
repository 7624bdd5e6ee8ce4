#include "workloads/step/activation_offload.hpp"

#include "workloads/pieces/activation_memory.hpp"

namespace stepcast::workloads {

ActivationOffload::ActivationOffload(const StepInputs& in, KernelTable& table, Calls& calls,
                                     const StageParameters& parameters)
    : in_(in), table_(table), calls_(calls), parameters_(parameters) {}

std::uint32_t ActivationOffload::copy(const char* name, std::size_t unit, const UnitRange& units) {
  const std::size_t layer = unit - (parameters_.root.empty() ? 0 : 1);
  const ActivationMemory kept(in_, parameters_.kinds[parameters_.kind_of[layer]].kind);
  const auto place = static_cast<std::int64_t>(unit - units.begin);
  return table_.pass(name, KernelFamily::host_copy, in_.precision.compute,
                     kept.offloaded_bytes(place));
}

void ActivationOffload::before_forward() {
  if (!on() || out_.size() < 2) return;
  calls_.wait(compute, out_.front());
  out_.pop_front();
}

void ActivationOffload::after_forward(std::size_t unit, const UnitRange& units) {
  if (!on() || unit + 1 == units.end) return;
  calls_.after(to_host_lane, compute);
  calls_.kernel(to_host_lane, copy("activations.out", unit, units));
  out_.push_back(calls_.record(to_host_lane));
}

void ActivationOffload::bring_back(std::size_t unit, const UnitRange& units) {
  calls_.after(from_host_lane, compute);
  calls_.kernel(from_host_lane, copy("activations.back", unit, units));
  back_ = calls_.record(from_host_lane);
}

void ActivationOffload::start_backward(const UnitRange& units, bool at_once) {
  if (!on() || units.end - units.begin < 2) return;
  if (at_once) calls_.after(from_host_lane, to_host_lane);
  bring_back(units.end - 2, units);
}

void ActivationOffload::before_backward(std::size_t unit, const UnitRange& units) {
  if (!on() || unit + 1 == units.end) return;
  calls_.wait(compute, back_);
  if (unit > units.begin) bring_back(unit - 1, units);
}

}  // namespace stepcast::workloads
