#include "validate/diagnose/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "engine/check.hpp"
#include "engine/run.hpp"
#include "sim/network/nccl/variables.hpp"
#include "sim/run/measured_machine.hpp"
#include "sim/scenario/noise.hpp"
#include "validate/diagnose/recorded_traces.hpp"
#include "validate/trace/records/kernels.hpp"

namespace stepcast::validate {
namespace {

/// Uniform, the same with any library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  double share() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * share(); }
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(share() * static_cast<double>(count));
  }

 private:
  std::mt19937_64 engine_;
};

/// The scenario's step on a cluster of its own.
sim::BoundStep bound_on(sim::Scenario s, topology::Cluster cluster, sim::Session& session) {
  sim::use_measurements(s, *session.rows_for(s));
  auto network = std::make_shared<sim::Network>(
      sim::make_network(s, std::make_shared<sim::Wiring>(std::move(cluster)),
                        session.catalogue().nccl(s.nccl, s.origin), *session.rows_for(s)));
  return sim::bind_step(
      s, workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software),
      std::move(network), *session.kernels(s));
}

std::uint8_t host_cost(engine::System& system, double seconds) {
  system.host_costs.push_back(to_duration(seconds));
  return static_cast<std::uint8_t>(system.host_costs.size() - 1);
}

/// The host is busy that long before the instruction at this share of the program.
void pause(engine::Program& role, double where, std::uint8_t cost) {
  const auto at =
      static_cast<std::ptrdiff_t>(where * static_cast<double>(role.instructions.size()));
  role.instructions.insert(role.instructions.begin() + at,
                           engine::Instruction{engine::Op::host_work, 0, cost, 0, 0});
}

/// A kernel of `seconds` behind every n-th one of the compute lane.
void add_kernels(sim::BoundStep& bound, workloads::KernelFamily family, double seconds,
                 std::int64_t every) {
  engine::System& system = bound.step.system;
  workloads::Kernel kernel;
  kernel.name = "a kernel that nobody asked for";
  kernel.family = family;
  bound.program.kernels.push_back(kernel);
  const auto work = static_cast<std::uint32_t>(system.works.size());
  system.works.push_back({to_duration(seconds), system.works.front().profile, engine::own_work});
  for (engine::Program& role : system.roles) {
    std::vector<engine::Instruction> out;
    std::int64_t kernels = 0;
    for (const engine::Instruction& i : role.instructions) {
      out.push_back(i);
      if (i.op == engine::Op::work && i.lane == engine::compute_lane && ++kernels % every == 0)
        out.push_back({engine::Op::work, engine::compute_lane, workloads::kernel_call, work, 0});
    }
    role.instructions = std::move(out);
  }
}

/// Such kernels that add 10 to 30 % of a step.
void add_drawn_kernels(sim::BoundStep& bound, workloads::KernelFamily family, double healthy,
                       Draws& draws) {
  const std::int64_t every = 4 + draws.below(8);
  double kernels = 0;
  for (const engine::Instruction& i : bound.program.roles.front().instructions)
    kernels += i.op == engine::Op::work ? 1 : 0;
  add_kernels(bound, family,
              draws.between(0.1, 0.3) * healthy / kernels * static_cast<double>(every), every);
}

using Families = bool (*)(workloads::KernelFamily);
bool is_product_family(workloads::KernelFamily family) {
  return kind_of(family) == TraceKind::gemm;
}
bool is_attention_family(workloads::KernelFamily family) {
  return workloads::mixes_forward(family) || workloads::mixes_backward(family);
}
bool is_computed_family(workloads::KernelFamily family) {
  return is_product_family(family) || is_attention_family(family);
}
bool is_small_family(workloads::KernelFamily family) {
  return kind_of(family) == TraceKind::norm || kind_of(family) == TraceKind::pointwise;
}

/// On all ranks.
void slow_down(sim::BoundStep& bound, Families which, double factor) {
  for (std::size_t k = 0; k < bound.program.kernels.size(); ++k)
    if (which(bound.program.kernels[k].family))
      bound.step.system.works[k].duration =
          to_duration(factor * seconds(bound.step.system.works[k].duration));
}

/// Products of experts on one rank, which gets a program of its own.
void slow_experts(sim::BoundStep& bound, std::int64_t rank, double factor) {
  engine::System& system = bound.step.system;
  std::uint32_t& role = system.role_of_rank[static_cast<std::size_t>(rank)];
  engine::Program own = system.roles[role];
  std::map<std::uint32_t, std::uint32_t> slower;
  for (engine::Instruction& i : own.instructions) {
    if (i.op != engine::Op::work) continue;
    const workloads::Kernel kernel = bound.program.kernels[i.arg];
    if (kernel.family != workloads::KernelFamily::grouped_gemm) continue;
    auto [at, fresh] = slower.try_emplace(i.arg, static_cast<std::uint32_t>(system.works.size()));
    if (fresh) {
      engine::Work work = system.works[i.arg];
      work.duration = to_duration(factor * seconds(work.duration));
      system.works.push_back(work);
      bound.program.kernels.push_back(kernel);
    }
    i.arg = at->second;
  }
  role = static_cast<std::uint32_t>(system.roles.size());
  system.roles.push_back(std::move(own));
}

/// Takes layers from every stage but one, which gets them.
void unbalance(sim::Scenario& s, Draws& draws) {
  std::vector<std::int64_t> layers = s.plan.stage_layers;
  const auto stages = static_cast<std::size_t>(s.plan.pipeline);
  if (layers.empty()) layers.assign(stages, s.model.layers / static_cast<std::int64_t>(stages));
  const auto to = static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(stages)));
  const std::size_t from =
      (to + 1 + static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(stages) - 1))) %
      stages;
  const std::int64_t moved = std::max<std::int64_t>(1, layers[from] / 2);
  layers[from] -= moved;
  layers[to] += moved;
  s.plan.stage_layers = s.stage_layers = layers;
}

void set_protocol(sim::Scenario& s) {
  s.nccl_variables.push_back({"NCCL_PROTO", "LL", "the fault"});
  s.nccl_overrides = sim::nccl_overrides(s.nccl_variables);
}

struct SlowFamilies {
  Fault fault;
  Families which;
  double low, high;  // of the factor
};
constexpr SlowFamilies slow_families[] = {
    {Fault::slow_attention, is_attention_family, 2, 4},
    {Fault::fp32_products, is_product_family, 4, 8},
    {Fault::slow_kernels, is_small_family, 2, 4},
    {Fault::clocks, is_computed_family, 1.15, 1.5},
};

/// One step under noise; its traces where `traces` is given.
double run_step(sim::BoundStep bound, const sim::Scenario& s, std::vector<RankTrace>* traces) {
  engine::System& system = bound.step.system;
  sim::add_noise(s.noise, s.run.seed, s.node.gpus, system);
  TraceRecorder recorder(bound.program, system);
  const engine::RunOptions options{.measured = static_cast<int>(s.noise.steps)};
  const engine::RunResult result =
      engine::run(system, options, traces == nullptr ? nullptr : &recorder);
  const Duration last = result.measured.empty() ? result.step : result.measured.back();
  if (traces != nullptr) *traces = recorder.take(last);
  return seconds(last);
}

}  // namespace

std::string_view word_of(Fault fault) {
  constexpr std::string_view all[] = {
      "none",         "slow GPU",        "slow NIC",        "host pause",      "data stall",
      "extra copies", "protocol",        "imbalance",       "launch blocking", "host-bound",
      "recompute",    "unfused kernels", "slow attention",  "fp32 products",   "slow small kernels",
      "low clocks",   "experts' tokens", "stalls of a log", "drift of a log"};
  static_assert(std::size(all) == num_faults);
  return all[static_cast<std::size_t>(fault)];
}

bool is_of_log(Fault fault) { return fault == Fault::stalls || fault == Fault::drift; }

FaultyRun run_with_fault(const FaultCase& one, sim::Session& session) {
  Draws draws(one.seed);
  sim::Scenario s = one.scenario;
  s.run.seed = one.seed;
  // Kernels of a GPU differ by 1 to 2 % from step to step, GPUs of a batch by 0.5 to 1 %: what
  // healthy machines show in published sweeps (DESIGN.md, noise).
  s.noise.kernel_sigma = draws.between(0.005, 0.02);
  s.noise.gpu_sigma = draws.between(0.002, 0.008);
  s.noise.steps = 2;
  const double healthy = run_step(session.bound_step(s), s, nullptr);
  FaultyRun out;
  const auto finish = [&](sim::BoundStep bound) {
    out.step = run_step(std::move(bound), s, &out.traces);
    out.lengthened = out.step - healthy;
  };
  const std::int64_t rank = draws.below(s.gpus);
  switch (one.fault) {
    case Fault::none:
      finish(session.bound_step(s));
      break;
    case Fault::slow_gpu:
      out.rank = rank;
      s.noise.stragglers.push_back({false, rank, draws.between(1.1, 1.5)});
      finish(session.bound_step(s));
      break;
    case Fault::slow_nic: {
      const auto cluster = topology::Cluster::build(s.node, s.nodes, s.fabric, s.origin);
      finish(
          bound_on(s, cluster.with_slow_cables(rank / s.node.gpus, draws.between(4, 16)), session));
      break;
    }
    case Fault::host_pause: {
      out.rank = rank;
      sim::BoundStep bound = session.bound_step(s);
      engine::System& system = bound.step.system;
      const auto place = static_cast<std::size_t>(rank);
      system.roles.push_back(system.roles[system.role_of_rank[place]]);
      system.role_of_rank[place] = static_cast<std::uint32_t>(system.roles.size() - 1);
      pause(system.roles.back(), draws.between(0.2, 0.8),
            host_cost(system, draws.between(0.3, 0.8) * healthy));
      finish(std::move(bound));
      break;
    }
    case Fault::data_stall: {
      sim::BoundStep bound = session.bound_step(s);
      const std::uint8_t cost = host_cost(bound.step.system, draws.between(0.2, 0.6) * healthy);
      for (engine::Program& role : bound.step.system.roles) pause(role, 0, cost);
      finish(std::move(bound));
      break;
    }
    case Fault::copies:
    case Fault::unfused: {
      sim::BoundStep bound = session.bound_step(s);
      const bool copies = one.fault == Fault::copies;
      add_drawn_kernels(bound,
                        copies ? workloads::KernelFamily::copy : workloads::KernelFamily::pointwise,
                        healthy, draws);
      finish(std::move(bound));
      break;
    }
    case Fault::protocol:
      set_protocol(s);
      finish(session.bound_step(s));
      break;
    case Fault::imbalance:
      unbalance(s, draws);
      finish(session.bound_step(s));
      break;
    case Fault::launch_blocking:
      s.software.host.launch_blocking = true;
      finish(session.bound_step(s));
      break;
    case Fault::host_bound: {
      sim::BoundStep bound = session.bound_step(s);
      const double factor = draws.between(4, 16);
      for (Duration& cost : bound.step.system.host_costs)
        cost = to_duration(factor * seconds(cost));
      finish(std::move(bound));
      break;
    }
    case Fault::recompute:
      s.plan.recompute = workloads::Recompute::full;
      finish(session.bound_step(s));
      break;
    case Fault::slow_attention:
    case Fault::fp32_products:
    case Fault::slow_kernels:
    case Fault::clocks: {
      sim::BoundStep bound = session.bound_step(s);
      for (const SlowFamilies& slow : slow_families)
        if (slow.fault == one.fault)
          slow_down(bound, slow.which, draws.between(slow.low, slow.high));
      finish(std::move(bound));
      break;
    }
    case Fault::experts: {
      out.rank = rank;
      sim::BoundStep bound = session.bound_step(s);
      slow_experts(bound, rank, draws.between(1.3, 2));
      finish(std::move(bound));
      break;
    }
    case Fault::stalls:
    case Fault::drift:
      break_promise("a log's fault", std::source_location::current());
  }
  return out;
}

FaultyLog log_with_fault(const FaultCase& one, sim::Session& session) {
  constexpr std::size_t steps = 120;
  constexpr double noise = 0.01;
  Draws draws(one.seed);
  FaultyLog out;
  out.expected = seconds(session.step(one.scenario).step_time);
  const auto every = static_cast<std::size_t>(5 + draws.below(20));
  const double longer = draws.between(2, 6), growth = draws.between(0.15, 0.6);
  for (std::size_t i = 0; i < steps; ++i) {
    double more = 0;
    if (one.fault == Fault::stalls && (i + 1) % every == 0) more = longer - 1;
    if (one.fault == Fault::drift)
      more = growth * static_cast<double>(i) / static_cast<double>(steps - 1);
    const double step = out.expected * (1 + noise * draws.between(-1, 1));
    out.step_s.push_back(step + more * out.expected);
    out.step += out.step_s.back() / steps;
    out.lengthened += more * out.expected / steps;
  }
  return out;
}

}  // namespace stepcast::validate
