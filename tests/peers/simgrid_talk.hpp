// What SimGrid's actors have in common: the platform under them, and how one sends to another.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "simgrid_actors.hpp"
#include "simgrid_machine.hpp"

namespace stepcast::peers {

namespace s4u = simgrid::s4u;
using s4u::Mailbox;

/// One SimGrid simulation of the members of a layout.
struct Simulation {
  Simulation(const topology::Cluster& cluster, const sim::SteppedLayout& members, const Talk& talk)
      : layout(members), words(talk), engine(s4u::Engine::get_instance()) {
    configure(*engine);
    machine.emplace(cluster, words.latencies);
  }
  /// Seconds before a received message leaves for `to`.
  double hop(std::int64_t from, std::int64_t to) const {
    return seconds(layout.same_node(from, to) ? words.hop_in_node : words.hop_between);
  }
  /// Bytes per second of an edge that carries `through` bytes in all; 0: what its links give.
  double rate(double through) const { return words.transfer > 0 ? through / words.transfer : 0.0; }
  double run() {
    engine->run();
    return s4u::Engine::get_clock();
  }

  const sim::SteppedLayout& layout;
  Talk words;
  s4u::Engine* engine;
  std::optional<SimGridMachine> machine;
};

/// The sending end of one edge: one message at a time.
class Outbox {
 public:
  Outbox(Mailbox* box, double bytes, double rate) : box_(box), bytes_(bytes), rate_(rate) {}
  void wait() {
    if (sent_) sent_->wait();
  }
  void send() {
    wait();
    sent_ = box_->put_init(&token_, static_cast<std::uint64_t>(bytes_));
    if (rate_ > 0) sent_->set_rate(rate_);
    sent_->start();
  }

 private:
  Mailbox* box_;
  double bytes_, rate_;
  int token_ = 0;
  s4u::CommPtr sent_;
};

/// When the next message has arrived, which may have been before we asked.
inline double receive(Mailbox* box) {
  int* token = nullptr;
  const s4u::CommPtr got = box->get_async<int>(&token);
  got->wait();
  const double finished = got->get_finish_time();
  return finished > 0 ? finished : s4u::Engine::get_clock();
}

inline Mailbox* inbox(const std::string& name) {
  Mailbox* box = Mailbox::by_name(name);
  box->set_receiver(s4u::Actor::self());  // messages set off without waiting for us
  return box;
}

}  // namespace stepcast::peers
