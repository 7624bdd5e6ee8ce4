#include "simgrid_machine.hpp"

#include <xbt/log.h>

#include <stdexcept>
#include <string>

namespace stepcast::peers {

namespace s4u = simgrid::s4u;

void configure(s4u::Engine& engine) {
  xbt_log_control_set("xbt_cfg.thres:warning");
  engine.set_config("network/model:CM02");
  engine.set_config("network/crosstraffic:0");
  engine.set_config("network/TCP-gamma:1e30");  // its window never limits
  engine.set_config("contexts/stack-size:128");
}

SimGridMachine::SimGridMachine(const topology::Cluster& cluster, bool latencies)
    : cluster_(cluster), latencies_(latencies), zone_(s4u::create_full_zone("cluster")) {}

s4u::Host* SimGridMachine::host(std::int64_t gpu, std::size_t channel) {
  s4u::Host*& host = hosts_[{gpu, channel}];
  if (host == nullptr)
    host = zone_->create_host("gpu" + std::to_string(gpu) + "." + std::to_string(channel), 1e9)
               ->seal();
  return host;
}

const s4u::Link* SimGridMachine::make(const std::string& name, double bandwidth, Duration latency) {
  const s4u::Link*& link = links_[name];
  if (link == nullptr)
    link = zone_->create_link(name, bandwidth)
               ->set_latency(latencies_ ? seconds(latency) : 0.0)
               ->seal();
  return link;
}

const s4u::Link* SimGridMachine::link(const engine::LinkLoad& load) {
  const topology::Link& link = cluster_.links()[load.link];
  if (load.weight == 1.0)
    return make("link" + std::to_string(load.link), link.bandwidth.value, link.latency);
  // One of a GPU's NVLinks to its switches.
  if (link.kind != topology::LinkKind::nvlink)
    throw std::runtime_error("SimGrid's routes take their links whole");
  const bool out = cluster_.devices()[link.from].kind == topology::DeviceKind::gpu;
  const auto end = out ? link.from : link.to;
  double bandwidth = 0.0;
  for (const topology::Link& other : cluster_.links())
    if (other.kind == topology::LinkKind::nvlink && (out ? other.from : other.to) == end)
      bandwidth += other.bandwidth.value;
  return make((out ? "out" : "in") + std::to_string(end), bandwidth, link.latency);
}

void SimGridMachine::connect(std::int64_t a, std::int64_t b, std::size_t channel,
                             const sim::SteppedLayout::Loads& loads) {
  s4u::Host *from = host(a, channel), *to = host(b, channel);
  if (!routes_.insert({from, to}).second) return;
  std::vector<s4u::LinkInRoute> route;
  std::set<const s4u::Link*> taken;
  for (const engine::LinkLoad& load : loads)
    if (const s4u::Link* next = link(load); taken.insert(next).second) route.emplace_back(next);
  zone_->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
}

}  // namespace stepcast::peers
