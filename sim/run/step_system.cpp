#include "sim/run/step_system.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "sim/run/host_costs.hpp"
#include "sim/run/step_parts.hpp"
#include "sim/scenario/noise.hpp"

namespace stepcast::sim {
namespace {

bool on_tensor_cores(const workloads::Kernel& kernel) {
  using enum workloads::KernelFamily;
  return kernel.family == gemm || kernel.family == grouped_gemm ||
         workloads::mixes_forward(kernel.family) || workloads::mixes_backward(kernel.family);
}

/// HBM traffic of a copy beside the compute lane: copies run at their achieved bandwidth.
BytesPerSecond side_traffic(const topology::GpuSpec& gpu,
                            const std::vector<workloads::Kernel>& kernels,
                            const std::vector<KernelTime>& times) {
  BytesPerSecond most{};
  for (std::size_t k = 0; k < kernels.size(); ++k)
    if (kernels[k].family == workloads::KernelFamily::copy ||
        kernels[k].family == workloads::KernelFamily::host_copy)
      most = std::max(most, gpu.memory_bandwidth * times[k].memory_fraction);
  return most;
}

/// How much longer a kernel takes in each state of the engine, beside what the classes hold. States
/// that hold as much of the GPU are asked for once: few plans use all classes.
void add_stretches(const KernelTime& time, const Scenario& scenario, const ClassLoads& classes,
                   std::vector<double>& out) {
  const std::size_t alone = out.size();
  if (scenario.run.without.interference) {
    out.resize(alone + engine::num_states, 1.0);
    return;
  }
  out.resize(alone + engine::num_states);
  out[alone] = 1.0;
  std::array<ClassLoad, engine::num_states> held{};
  std::size_t states = 1;  // of the classes before
  for (const ClassLoad& c : classes) {
    for (std::size_t s = 0; s < states; ++s) {
      const std::size_t resident = states + s, moving = resident + states;
      held[resident] = {held[s].ctas + c.ctas, held[s].memory};
      held[moving] = {held[resident].ctas, held[s].memory + c.memory};
      const auto stretched = [&](std::size_t state) {
        return stretch(time, scenario.node.gpu, held[state].ctas, held[state].memory);
      };
      out[alone + resident] = c.ctas == 0 && s > 0 ? out[alone + s] : stretched(resident);
      out[alone + moving] = c.memory.value == 0 ? out[alone + resident] : stretched(moving);
    }
    states *= 3;
  }
}

/// Of kernels that follow the machine's pace: [noise] may make it slower.
double slower_by_pace(const Scenario& scenario) {
  const Noise& noise = scenario.noise;
  return noise.pace_sigma > 0.0 && !scenario.run.without.jitter
             ? pace(noise, scenario.gpus, scenario.node.gpu.architecture)
             : 1.0;
}

std::vector<KernelTime> kernel_times(const Scenario& scenario,
                                     const std::vector<workloads::Kernel>& kernels,
                                     const KernelModel& model) {
  const double slower = slower_by_pace(scenario);
  std::vector<KernelTime> out;
  for (const workloads::Kernel& kernel : kernels) {
    KernelTime& time = out.emplace_back(model.time_of(kernel));
    if (slower != 1.0 && on_tensor_cores(kernel))
      time.duration = to_duration(seconds(time.duration) * slower);
  }
  return out;
}

/// How long what is launched waits for a kernel that has just begun: all of it, or, from a stream
/// of high priority, its blocks under way; those of kernels that only move bytes are short.
/// Exchanges have such a stream where all experts are one kernel (Megatron-Bridge:
/// use_transformer_engine_ op_fuser with overlap sets high_priority_a2a_comm_stream, read 2026-11).
double until_it_leaves(const KernelTime& kernel, const Scenario& scenario) {
  const double t = seconds(kernel.duration);
  if (scenario.software.experts.products != workloads::GroupedProducts::one_launch) return t;
  if (kernel.tiles == 0) return 0.0;
  return t / static_cast<double>(ceil_div(kernel.tiles, scenario.node.gpu.sms));
}

/// How long a kernel of a collective waits for its SMs where another micro-batch's kernels run. Its
/// blocks share an SM with none of theirs (NVIDIA/nccl#689) and are placed after all blocks of the
/// kernel launched before (NVIDIA/nccl#1431; Transformer Engine's grouped products even go first,
/// util/multi_stream.cpp): it waits for what is left of that kernel. A launch at any instant of
/// [0, T) finds t^2 / 2 T left of a kernel that takes t: the mean residual life. T is the longer of
/// the two lanes, so that a compute lane that waits for the exchange does not hold it up.
Duration wait_for_sms(const Scenario& scenario, const workloads::StepProgram& program,
                      const std::vector<KernelTime>& times, const StepTransfers& transfers) {
  double left = 0.0, instants = 0.0;
  for (const engine::Program& role : program.roles) {
    double compute = 0.0, exchange = 0.0;
    engine::each_call(role, [&](const engine::Instruction& i, std::int64_t calls) {
      const auto n = static_cast<double>(calls);
      if (i.op == engine::Op::work && i.lane == workloads::compute) {
        const double t = seconds(times[i.arg].duration);
        compute += n * t;
        left += n * t * until_it_leaves(times[i.arg], scenario) / 2;
      }
      if (i.op == engine::Op::work && i.lane == workloads::expert_lane)
        exchange += n * seconds(times[i.arg].duration);
      if (i.op == engine::Op::join && i.lane == workloads::expert_lane)
        exchange += n * seconds(transfers.time_of(i.arg).duration);
    });
    instants += std::max(compute, exchange);
  }
  return instants > 0.0 ? to_duration(left / instants) : Duration{};
}

RoleLoad load_of(const RoleCalls& calls, const std::vector<workloads::Kernel>& kernels,
                 const std::vector<KernelTime>& times, const StepTransfers& transfers) {
  RoleLoad load;
  load.compute_seconds.assign(num_provenances, 0.0);
  load.network_seconds.assign(num_provenances, 0.0);
  for (std::size_t w = 0; w < calls.works.size(); ++w) {
    const KernelTime& time = times[w];
    const double t = calls.works[w] * seconds(time.duration);
    if (!workloads::on_host(kernels[w].family))
      load.compute_seconds[static_cast<std::size_t>(time.provenance)] += t;
    if (time.tensor_fraction > 0.0) load.tensor_seconds += t;
    load.memory_seconds += t * time.memory_fraction;
  }
  for (std::size_t c = 0; c < calls.joins.size(); ++c) {
    const CollectiveTime& time = transfers.time_of(c);
    load.network_seconds[static_cast<std::size_t>(time.provenance)] +=
        calls.joins[c] * seconds(time.duration);
  }
  return load;
}

}  // namespace

std::vector<Duration> host_costs_of(const workloads::Software& w) {
  // A graph's launch, and what each of its kernels costs the device's queue in the place of the
  // host: 10 us and 0.5 to 1 us, their middle (recalled, 2026).
  constexpr Duration graph_launch = 10_us, graph_node = 750_ns;
  std::vector<Duration> costs(workloads::num_host_costs);
  costs[workloads::graph_call] = graph_launch;
  costs[workloads::graph_node_call] = graph_node;
  if (w.host.graphs == workloads::Graphs::iteration) {
    costs[workloads::kernel_call] = costs[workloads::forward_kernel_call] = graph_node;
    costs[workloads::collective_call] = graph_node;
    costs[workloads::step_call] = w.host.step_overhead + graph_launch;
    return costs;
  }
  const auto in_a_step = [&](Duration hot) {
    return w.host.factor == 1.0 ? hot : to_duration(w.host.factor * seconds(hot));
  };
  costs[workloads::kernel_call] = in_a_step(w.host.launch_kernel);
  costs[workloads::forward_kernel_call] = in_a_step(w.host.launch_kernel + w.host.forward_call);
  costs[workloads::module_call] = in_a_step(w.host.module_call);
  costs[workloads::rng_call] = in_a_step(w.host.rng_fork);
  costs[workloads::hook_call] = in_a_step(w.host.gradient_hook);
  costs[workloads::collective_call] = in_a_step(w.host.launch_collective);
  costs[workloads::event_call] = in_a_step(w.host.event_call);
  costs[workloads::unit_call] = w.host.unit_overhead;
  costs[workloads::step_call] = w.host.step_overhead;
  return costs;
}

StepParts::StepParts(const Scenario& scenario, const workloads::StepProgram& program,
                     const KernelModel& kernels, StepTransfers& transfers)
    : scenario_(scenario),
      program_(program),
      transfers_(transfers),
      calls_(calls_of(program)),
      times_(kernel_times(scenario, program.kernels, kernels)) {
  if (scenario.plan.expert.overlap && !scenario.run.without.interference)
    transfers.wait_for_sms(wait_for_sms(scenario, program, times_, transfers));
}

void StepParts::finish(StepSystem& out) const {
  engine::System& s = out.system;
  s.roles = program_.roles;
  s.host_costs = host_costs_of(scenario_);
  out.choices = transfers_.choices(calls_);
  ClassLoads classes = transfers_.class_loads();
  BytesPerSecond& beside = classes[engine::side_work_class].memory;
  beside = std::max(beside, side_traffic(scenario_.node.gpu, program_.kernels, times_));
  for (std::size_t k = 0; k < times_.size(); ++k) {
    const bool host = workloads::on_host(program_.kernels[k].family);
    s.works.push_back(
        {times_[k].duration, static_cast<std::uint32_t>(k),
         host ? static_cast<std::uint8_t>(engine::Traffic::offload) : engine::own_work});
    add_stretches(times_[k], scenario_, classes, s.stretch);
    out.hbm.push_back(times_[k].memory_fraction);
  }
  for (const RoleCalls& role : calls_)
    out.loads.push_back(load_of(role, program_.kernels, times_, transfers_));
}

StepSystem make_step_system(const Scenario& scenario, const workloads::StepProgram& program,
                            const Layouts& layouts, const KernelModel& kernels,
                            const NetworkModel& network) {
  StepSystem out;
  out.layout = layouts.of(layout_key(scenario.plan, program));
  out.system = out.layout->groups();
  StepTransfers transfers(program, *out.layout, network);
  const StepParts parts(scenario, program, kernels, transfers);
  out.links = transfers.put_on(out.system, parts.calls());
  parts.finish(out);
  return out;
}

}  // namespace stepcast::sim
