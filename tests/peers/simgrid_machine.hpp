// A stepcast cluster as a SimGrid platform: a host for every GPU and channel (a pair of hosts has
// one route, a pair of GPUs one for each channel), a link for every directed link, routes as laid
// out. All NVLinks of a GPU to its switches are one link per direction, because a SimGrid route
// takes each of its links whole.
#pragma once

#include <simgrid/s4u.hpp>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/network/stepped/layout.hpp"

namespace stepcast::peers {

/// The sharing model of our fluid: no TCP window, no cross traffic, rates by max-min.
void configure(simgrid::s4u::Engine&);

class SimGridMachine {
 public:
  /// With `latencies` every link keeps its own, else links have none.
  SimGridMachine(const topology::Cluster&, bool latencies);

  simgrid::s4u::Host* host(std::int64_t gpu, std::size_t channel);
  /// Lays the route for messages from a to b in this channel, once.
  void connect(std::int64_t a, std::int64_t b, std::size_t channel,
               const sim::SteppedLayout::Loads& loads);
  void seal() { zone_->seal(); }

 private:
  const simgrid::s4u::Link* link(const engine::LinkLoad&);
  const simgrid::s4u::Link* make(const std::string& name, double bandwidth, Duration latency);

  const topology::Cluster& cluster_;
  bool latencies_;
  simgrid::s4u::NetZone* zone_;
  std::map<std::pair<std::int64_t, std::size_t>, simgrid::s4u::Host*> hosts_;
  std::map<std::string, const simgrid::s4u::Link*> links_;
  std::set<std::pair<simgrid::s4u::Host*, simgrid::s4u::Host*>> routes_;
};

}  // namespace stepcast::peers
