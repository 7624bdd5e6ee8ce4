#include "engine/path/step_calls.hpp"

#include "engine/check.hpp"

namespace stepcast::engine {

std::uint32_t StepCalls::last_place() const {
  const std::vector<std::uint32_t>& lane = lanes[compute_lane];
  expects(!lane.empty(), "a compute lane that does something");
  if (!marked) return static_cast<std::uint32_t>(lane.size()) - 1;
  return entry[compute_lane] - 1;
}

StepCalls step_calls(const System& system, std::uint32_t role) {
  const Program program = unrolled(system.roles[role]);
  StepCalls out;
  out.lanes.resize(program.num_lanes);
  out.entry.assign(program.num_lanes, 0);
  out.recorder.resize(program.num_events);
  Duration host{};
  for (const Instruction& i : program.instructions) {
    host += system.host_costs.at(i.host_cost);
    const auto call = static_cast<std::uint32_t>(out.calls.size());
    const auto epoch = static_cast<std::uint32_t>(out.host_waits.size());
    std::vector<std::uint32_t>& lane = out.lanes[i.op == Op::mark ? compute_lane : i.lane];
    out.calls.push_back({i, epoch, static_cast<std::uint32_t>(lane.size()), host});
    if (i.op == Op::record) out.recorder[i.arg] = call;
    if (i.op == Op::host_wait) {
      out.host_waits.push_back(call);
      host = Duration{};
    } else if (i.op != Op::host_work) {
      lane.push_back(call);
    }
    if (i.op != Op::mark) continue;
    out.marked = true;
    out.entry_epoch = epoch;
    for (std::size_t l = 0; l < out.lanes.size(); ++l)
      out.entry[l] = static_cast<std::uint32_t>(out.lanes[l].size());
  }
  out.last_epoch = host;
  return out;
}

}  // namespace stepcast::engine
