// How the processes of a run find each other: rank 0 listens at an address, or writes into a file
// where it does; the others come, and each gets a connection to every other. Strangers, ranks of
// another run and files of a past one are told apart by the run's token. Ends in time in any case.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/processes/meeting.hpp"

namespace stepcast::validate {

/// What all ranks of a run must have alike, such as the scenario: neither text is empty or has a
/// space.
struct Term {
  std::string name, value;
};

struct Meeting {
  std::int64_t rank = 0, ranks = 1;
  std::string place{};  // "host:port", or a file that all ranks can read
  std::string token{};  // of the run; empty, where a file tells it: rank 0 makes one up
  int listening = -1;   // of rank 0: a socket of its parent's that listens at `place` already
  Duration patience{};
  std::vector<Term> terms{};
};

class Rendezvous {
 public:
  /// Returns when all ranks are connected. Throws PeerLost where they are not within the patience,
  /// saying who is missing or why rank 0 was not found; InputError where that cannot come right:
  /// the place cannot be had, or rank 0 of the same token refuses this rank, which has other terms.
  explicit Rendezvous(const Meeting& meeting);

  /// By rank; that of this rank is none.
  std::vector<sim::Descriptor> connections;

 private:
  std::unique_ptr<sim::RendezvousFile> file_;  // of rank 0, kept until the run ends
};

}  // namespace stepcast::validate
