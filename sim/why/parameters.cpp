#include "sim/why/parameters.hpp"

#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/network/ablation.hpp"

namespace stepcast::sim {
namespace {

using workloads::KernelFamily;

BytesPerSecond cable(const Scenario& s) {
  return s.fabric.link.value > 0 ? s.fabric.link : s.node.nic;
}

std::string gigabits(BytesPerSecond rate) {
  return rate.value > 0 ? three_digits(rate.value * 8e-9) + " Gbit/s" : "";
}
std::string gigabytes(BytesPerSecond rate) {
  return rate.value > 0 ? three_digits(rate.value * 1e-9) + " GB/s" : "";
}
std::string time_text(Duration d) { return d > Duration{} ? to_text(d) : ""; }
Duration times(Duration d, double factor) { return to_duration(seconds(d) * factor); }

bool has_network(const Scenario& s) { return s.nodes > 1; }

/// Kernels of these families take `factor` of their time.
template <class Is>
void scale_works(const LoggedStep& step, engine::System& system, double factor, Is is) {
  const std::vector<workloads::Kernel>& kernels = step.bound().program.kernels;
  for (std::size_t k = 0; k < kernels.size(); ++k)
    if (is(kernels[k].family)) system.works[k].duration = times(system.works[k].duration, factor);
}

bool is_product(KernelFamily family) {
  return family == KernelFamily::gemm || family == KernelFamily::grouped_gemm;
}
bool is_attention(KernelFamily family) {
  return workloads::mixes_forward(family) || workloads::mixes_backward(family);
}

bool casts(KernelFamily family) { return family == KernelFamily::quantize; }

/// Tokens on their way to experts and back take `factor` of their time.
void scale_exchange(const LoggedStep& step, engine::System& system, double factor) {
  const std::vector<workloads::Collective>& all = step.bound().program.collectives;
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (all[c].group != workloads::GroupKind::expert) continue;
    for (std::size_t p = 0; p < system.num_patterns; ++p)
      system.transfers[c * system.num_patterns + p].bytes *= factor;
  }
}

/// How tokens travel; empty where every rank has all experts.
std::string exchange_now(const Scenario& s) {
  if (s.model.experts.count == 0 || s.plan.expert.degree == 1) return "";
  return std::string(name_of(s.plan.expert.dispatcher));
}

std::string casts_now(const Scenario& s) {
  const workloads::Recipe recipe = s.precision.recipe;
  return recipe == workloads::Recipe::none ? "" : std::string(name_of(recipe));
}

/// The part of every collective's time in which no byte moves: starts, hops, filling.
void scale_latency(const LoggedStep& step, engine::System& system, double factor) {
  const BoundStep& bound = step.bound();
  const Layout& layout = *bound.step.layout;
  const AblatedNetwork network(*bound.network->model, step.scenario().run.without);
  for (std::size_t c = 0; c < bound.program.collectives.size(); ++c) {
    const workloads::Collective& collective = bound.program.collectives[c];
    for (const std::uint32_t p : layout.patterns_of(collective.group)) {
      const CollectiveTime time = network.time_of(collective, layout.shapes()[p]);
      const double before = seconds(time.duration);
      const double after = factor * seconds(time.latency) + seconds(time.transfer);
      engine::Transfer& transfer = system.transfers[c * system.num_patterns + p];
      if (after > 0) transfer.cap = transfer.cap * (before / after);
    }
  }
}

void scale_launch(const LoggedStep&, engine::System& system, double factor) {
  const Duration more = times(system.host_costs[workloads::kernel_call], factor) -
                        system.host_costs[workloads::kernel_call];
  for (const auto call : {workloads::kernel_call, workloads::forward_kernel_call})
    system.host_costs[call] += more;
}

const Parameter all_parameters[] = {
    {"GEMM rate", true, [](const Scenario&) { return std::string("of every GEMM"); }, nullptr,
     [](const LoggedStep& step, engine::System& system, double factor) {
       scale_works(step, system, 1 / factor, is_product);
     }},
    {"attention rate", true, [](const Scenario&) { return std::string("of its kernels"); }, nullptr,
     [](const LoggedStep& step, engine::System& system, double factor) {
       scale_works(step, system, 1 / factor, is_attention);
     }},
    {"HBM bandwidth", true,
     [](const Scenario& s) { return gigabytes(s.node.gpu.memory_bandwidth); },
     [](Scenario& s, double factor) {
       s.node.gpu.memory_bandwidth = s.node.gpu.memory_bandwidth * factor;
     }},
    {"cast rate", true, casts_now, nullptr,
     [](const LoggedStep& step, engine::System& system, double factor) {
       scale_works(step, system, 1 / factor, casts);
     }},
    {"expert exchange", true, exchange_now, nullptr,
     [](const LoggedStep& step, engine::System& system, double factor) {
       scale_exchange(step, system, 1 / factor);
     }},
    {"NVLink bandwidth", true, [](const Scenario& s) { return gigabytes(s.node.gpu.nvlink); },
     [](Scenario& s, double factor) {
       s.node.gpu.nvlink = s.node.gpu.nvlink * factor;
       s.node.nvlink_per_link = s.node.nvlink_per_link * factor;
     }},
    {"PCIe bandwidth", true, [](const Scenario& s) { return gigabytes(s.node.pcie); },
     [](Scenario& s, double factor) { s.node.pcie = s.node.pcie * factor; }},
    {"socket bandwidth", true, [](const Scenario& s) { return gigabytes(s.node.socket); },
     [](Scenario& s, double factor) { s.node.socket = s.node.socket * factor; }},
    {"NIC bandwidth", true,
     [](const Scenario& s) { return has_network(s) ? gigabits(s.node.nic) : std::string(); },
     [](Scenario& s, double factor) {
       s.fabric.link = cable(s);
       s.node.nic = s.node.nic * factor;
     }},
    {"cable bandwidth", true,
     [](const Scenario& s) { return has_network(s) ? gigabits(cable(s)) : std::string(); },
     [](Scenario& s, double factor) { s.fabric.link = cable(s) * factor; }},
    {"NIC and cables", true,
     [](const Scenario& s) { return has_network(s) ? gigabits(s.node.nic) : std::string(); },
     [](Scenario& s, double factor) {
       s.fabric.link = cable(s) * factor;
       s.node.nic = s.node.nic * factor;
     }},
    {"uplinks of a leaf", true,
     [](const Scenario& s) {
       return has_network(s) ? fmt::format("{:g}:1", s.fabric.oversubscription) : std::string();
     },
     [](Scenario& s, double factor) { s.fabric.oversubscription /= factor; }},
    {"collective latency", false,
     [](const Scenario&) { return std::string("of every collective"); }, nullptr, scale_latency},
    {"NVLink latency", false, [](const Scenario& s) { return time_text(s.node.nvlink_latency); },
     [](Scenario& s, double factor) {
       s.node.nvlink_latency = times(s.node.nvlink_latency, factor);
     }},
    {"NIC latency", false,
     [](const Scenario& s) {
       return has_network(s) ? time_text(s.node.nic_latency) : std::string();
     },
     [](Scenario& s, double factor) { s.node.nic_latency = times(s.node.nic_latency, factor); }},
    {"switch latency", false,
     [](const Scenario& s) {
       return has_network(s) ? time_text(s.fabric.switch_latency) : std::string();
     },
     [](Scenario& s, double factor) {
       s.fabric.switch_latency = times(s.fabric.switch_latency, factor);
     }},
    {"kernel floor", false, [](const Scenario&) { return std::string("of every kernel"); },
     [](Scenario& s, double factor) { s.node.gpu.kernel_floor *= factor; }},
    {"kernel launch", false,
     [](const Scenario& s) { return time_text(s.software.host.launch_kernel); }, nullptr,
     scale_launch},
    {"host, all of it", false, [](const Scenario&) { return std::string("every call"); }, nullptr,
     [](const LoggedStep&, engine::System& system, double factor) {
       for (Duration& cost : system.host_costs) cost = times(cost, factor);
     }},
};

}  // namespace

std::span<const Parameter> parameters() { return all_parameters; }

}  // namespace stepcast::sim
