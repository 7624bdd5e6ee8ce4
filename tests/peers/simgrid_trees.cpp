#include <memory>
#include <optional>
#include <string>

#include "simgrid_talk.hpp"

namespace stepcast::peers {
namespace {

/// A member's two actors in one tree: sums go up, the whole sum comes down.
struct TreePlace {
  std::int64_t self = 0;
  std::optional<std::int64_t> parent;
  std::vector<std::int64_t> children;
};

/// In a node a chain behind its first member; between nodes the binary tree of first members.
std::vector<TreePlace> places(const sim::SteppedLayout& layout, std::size_t channel,
                              const std::vector<std::int64_t>& parents) {
  std::vector<TreePlace> out;
  std::map<std::int64_t, std::vector<std::int64_t>> children;
  for (std::size_t node = 0; node < layout.num_nodes(); ++node) {
    const auto members = layout.chain(node, channel);
    for (std::size_t j = 0; j < members.size(); ++j) {
      TreePlace place{members[j], std::nullopt, {}};
      if (j > 0) place.parent = members[j - 1];
      if (j == 0 && parents[node] >= 0)
        place.parent = layout.chain(static_cast<std::size_t>(parents[node]), channel).front();
      if (place.parent) children[*place.parent].push_back(place.self);
      out.push_back(place);
    }
  }
  for (TreePlace& place : out) place.children = children[place.self];
  return out;
}

/// Passes a message on to one neighbour once it is told when the data arrived.
struct Relay {
  static void start(const std::string& name, s4u::Host* host, double hop, Mailbox* to, double bytes,
                    double rate, std::uint32_t chunks, std::shared_ptr<std::vector<double>> arrived,
                    s4u::SemaphorePtr ready) {
    s4u::Actor::create(name, host, [=] {
      Outbox out(to, bytes, rate);
      for (std::uint32_t k = 0; k < chunks; ++k) {
        ready->acquire();
        s4u::this_actor::sleep_until((*arrived)[k] + hop);
        out.send();
      }
      out.wait();
    });
  }
};

void create_member(Simulation& simulation, std::size_t channel, const std::string& tree,
                   const TreePlace& place, double bytes, double rate, std::uint32_t chunks) {
  const auto up_box = [&](std::int64_t from, std::int64_t to) {
    return tree + "up" + std::to_string(from) + "." + std::to_string(to);
  };
  const auto down_box = [&](std::int64_t from, std::int64_t to) {
    return tree + "down" + std::to_string(from) + "." + std::to_string(to);
  };
  s4u::Host* host = simulation.machine->host(place.self, channel);
  const auto own = tree + std::to_string(place.self);
  auto summed = std::make_shared<std::vector<double>>();  // when a chunk's sum was complete here
  auto whole = std::make_shared<std::vector<double>>();   // when the whole sum was here
  const auto can_go_up = s4u::Semaphore::create(0);
  std::vector<s4u::SemaphorePtr> can_go_down;
  for (const std::int64_t child : place.children) {
    can_go_down.push_back(s4u::Semaphore::create(0));
    Relay::start(own + "to" + std::to_string(child), host, simulation.hop(place.self, child),
                 Mailbox::by_name(down_box(place.self, child)), bytes, rate, chunks, whole,
                 can_go_down.back());
  }
  const bool root = !place.parent;
  if (!root)
    Relay::start(own + "up", host, simulation.hop(place.self, *place.parent),
                 Mailbox::by_name(up_box(place.self, *place.parent)), bytes, rate, chunks, summed,
                 can_go_up);
  std::vector<std::string> from_children;
  for (const std::int64_t child : place.children)
    from_children.push_back(up_box(child, place.self));
  s4u::Actor::create(own + "sum", host, [=] {
    std::vector<Mailbox*> boxes;
    for (const std::string& name : from_children) boxes.push_back(inbox(name));
    for (std::uint32_t k = 0; k < chunks; ++k) {
      double last = 0.0;
      for (Mailbox* box : boxes) last = std::max(last, receive(box));
      summed->push_back(last);
      can_go_up->release();
      if (!root) continue;
      whole->push_back(last);
      for (const auto& child : can_go_down) child->release();
    }
  });
  if (root) return;
  const std::string from_parent = down_box(*place.parent, place.self);
  s4u::Actor::create(own + "copy", host, [=] {
    Mailbox* box = inbox(from_parent);
    for (std::uint32_t k = 0; k < chunks; ++k) {
      whole->push_back(receive(box));
      for (const auto& child : can_go_down) child->release();
    }
  });
}

}  // namespace

double simgrid_trees(const topology::Cluster& cluster, const sim::SteppedLayout& layout,
                     std::uint32_t chunks, const Talk& talk) {
  Simulation simulation(cluster, layout, talk);
  const auto nodes = static_cast<std::int64_t>(layout.num_nodes());
  // The parents as Sanders et al. have them for a power of two: node i's lowest bit moves up; the
  // second tree mirrors the first.
  std::vector<std::int64_t> first(layout.num_nodes(), -1), second(layout.num_nodes(), -1);
  for (std::int64_t node = 1; node < nodes; ++node) {
    std::int64_t span = 1;
    while (node % (2 * span) == 0) span *= 2;
    const std::int64_t middle = node - node % (4 * span) + 2 * span;
    const std::int64_t up = middle < nodes ? middle : node - span;
    first[static_cast<std::size_t>(node)] = up;
    second[static_cast<std::size_t>(nodes - 1 - node)] = nodes - 1 - up;
  }
  const double share = talk.bytes / 2 / static_cast<double>(layout.num_channels());
  for (std::size_t channel = 0; channel < layout.num_channels(); ++channel)
    for (const auto& [label, parents] : {std::pair("a", &first), std::pair("b", &second)})
      for (const TreePlace& place : places(layout, channel, *parents)) {
        if (place.parent) {
          const auto between = [&](std::int64_t a, std::int64_t b) {
            return layout.same_node(a, b) ? layout.inside(a, b)
                                          : layout.between_heads(a, b, channel);
          };
          const std::int64_t a = place.self, b = *place.parent;
          simulation.machine->connect(a, b, channel, between(a, b));
          simulation.machine->connect(b, a, channel, between(b, a));
        }
        create_member(simulation, channel, label + std::to_string(channel) + ".", place,
                      share / chunks, simulation.rate(share), chunks);
      }
  simulation.machine->seal();
  return simulation.run();
}

}  // namespace stepcast::peers
