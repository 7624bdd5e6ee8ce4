#include "simgrid_actors.hpp"

#include <cmath>
#include <string>

#include "simgrid_talk.hpp"

namespace stepcast::peers {

namespace s4u = simgrid::s4u;
using s4u::Mailbox;

double simgrid_ring(const topology::Cluster& cluster, const sim::SteppedLayout& layout,
                    std::size_t steps, const Talk& talk) {
  Simulation simulation(cluster, layout, talk);
  const std::size_t n = layout.num_ranks(), channels = layout.num_channels();
  const double chunk = talk.bytes / static_cast<double>(n * channels);
  const double rate = simulation.rate(chunk * static_cast<double>(steps));
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto order = layout.ring(channel);
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t self = order[i], next = order[(i + 1) % n];
      simulation.machine->connect(self, next, channel, layout.ring_edge(channel, i));
      const auto name = [channel](std::int64_t gpu) {
        return "ring" + std::to_string(channel) + "." + std::to_string(gpu);
      };
      const double hop = simulation.hop(self, next);
      s4u::Actor::create(name(self), simulation.machine->host(self, channel), [=] {
        Mailbox* from = inbox(name(self));
        Outbox to(Mailbox::by_name(name(next)), chunk, rate);
        double arrived = 0.0;
        for (std::size_t s = 0; s < steps; ++s) {
          if (s > 0) arrived = receive(from);
          s4u::this_actor::sleep_until(arrived + hop);
          to.send();
        }
        receive(from);
        to.wait();
        from->set_receiver(nullptr);
      });
    }
  }
  simulation.machine->seal();
  return simulation.run();
}

double simgrid_all_to_all(const topology::Cluster& cluster, const sim::SteppedLayout& layout,
                          const Talk& talk) {
  Simulation simulation(cluster, layout, talk);
  const double chunk = talk.bytes / static_cast<double>(layout.num_ranks());
  const auto nodes = layout.num_nodes();
  for (std::size_t node = 0; node < nodes; ++node) {
    const auto own = layout.members(node);
    for (std::size_t place = 0; place < own.size(); ++place) {
      std::vector<std::int64_t> near, far;
      for (std::size_t shift = 0; shift < nodes; ++shift) {
        const auto there = layout.members((node + shift) % nodes);
        for (std::size_t i = 0; i < there.size(); ++i) {
          const std::int64_t peer = there[(place + i) % there.size()];
          if (peer != own[place]) (shift == 0 ? near : far).push_back(peer);
        }
      }
      for (const auto& peers : {near, far}) {
        if (peers.empty()) continue;
        for (const std::int64_t peer : peers)
          simulation.machine->connect(own[place], peer, 0, layout.between_peers(own[place], peer));
        const double rate = simulation.rate(chunk * static_cast<double>(peers.size()));
        const double hop = simulation.hop(own[place], peers.front());
        s4u::Host* self = simulation.machine->host(own[place], 0);
        std::vector<s4u::Host*> hosts;
        for (const std::int64_t peer : peers) hosts.push_back(simulation.machine->host(peer, 0));
        s4u::Actor::create("sender", self, [=] {
          s4u::this_actor::sleep_for(hop);
          for (s4u::Host* peer : hosts) {
            const auto message = s4u::Comm::sendto_init();
            if (rate > 0) message->set_rate(rate);  // SimGrid wants it before the ends
            message->set_source(self)->set_destination(peer);
            message->set_payload_size(static_cast<std::uint64_t>(chunk));
            message->start();
            message->wait();
          }
        });
      }
    }
  }
  simulation.machine->seal();
  return simulation.run();
}

namespace {

/// Lays the routes of the rings for the edges that its rings have.
class LeafSpine {
 public:
  LeafSpine(std::uint32_t hosts, std::uint32_t spines)
      : spines_(spines), zone_(s4u::create_full_zone("leaf-spine")) {
    for (std::uint32_t h = 0; h < hosts; ++h)
      hosts_.push_back(zone_->create_host("h" + std::to_string(h), 1e9)->seal());
  }
  s4u::Host* host(std::uint32_t h) const { return hosts_[h]; }
  void connect(std::uint32_t a, std::uint32_t b) {
    const auto text = [](std::uint32_t i) { return std::to_string(i); };
    std::vector<s4u::LinkInRoute> route{link("up" + text(a))};
    if (a / 32 != b / 32) {
      route.push_back(link("leaf" + text(a / 32) + "up" + text(b % spines_)));
      route.push_back(link("leaf" + text(b / 32) + "down" + text(b % spines_)));
    }
    route.push_back(link("down" + text(b)));
    zone_->add_route(host(a)->get_netpoint(), host(b)->get_netpoint(), nullptr, nullptr, route,
                     false);
  }
  void seal() { zone_->seal(); }

 private:
  s4u::LinkInRoute link(const std::string& name) {
    const s4u::Link*& found = links_[name];
    if (found == nullptr) found = zone_->create_link(name, 50e9)->set_latency(1e-6)->seal();
    return s4u::LinkInRoute(found);
  }
  std::uint32_t spines_;
  s4u::NetZone* zone_;
  std::vector<s4u::Host*> hosts_;
  std::map<std::string, const s4u::Link*> links_;
};

}  // namespace

double simgrid_concurrent_rings(std::uint32_t hosts, std::uint32_t spines) {
  s4u::Engine* engine = s4u::Engine::get_instance();
  configure(*engine);
  LeafSpine tree(hosts, spines);
  const std::uint32_t m = hosts / 64;
  for (std::uint32_t g = 0; g < 64; ++g) {
    const double size = 0x1p28 * (1 + 0.37 * (g * 2654435761U % 1000) / 1000);
    const auto bytes = static_cast<std::uint64_t>(std::floor(size * (m - 1) / m));
    std::vector<s4u::Host*> members;
    for (std::uint32_t k = 0; k < m; ++k) {
      members.push_back(tree.host(g + 64 * k));
      tree.connect(g + 64 * k, g + 64 * ((k + 1) % m));
    }
    s4u::Actor::create("ring" + std::to_string(g), members[0], [=] {
      for (int round = 0; round < 20; ++round) {
        std::vector<s4u::CommPtr> edges;
        for (std::uint32_t k = 0; k < m; ++k)
          edges.push_back(s4u::Comm::sendto_async(members[k], members[(k + 1) % m], bytes));
        for (const s4u::CommPtr& edge : edges) edge->wait();
      }
    });
  }
  tree.seal();
  engine->run();
  return s4u::Engine::get_clock();
}

}  // namespace stepcast::peers
