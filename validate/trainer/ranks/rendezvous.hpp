// How the processes of a run find each other: rank 0 listens at an address, or writes into a file
// where it does; the others come, and each gets a connection to every other. Strangers, ranks of
// another run and files of a past one are told apart by the run's token. Ends in time in any case.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/processes/line_channel.hpp"

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

/// Throws InputError where ranks without a token are to meet at an address: whoever knocked there
/// would be let in.
void check_token(const std::string& place, const std::string& token);

/// A word that no other run has.
std::string make_token();

/// The file that tells where rank 0 listens, of one run at a time. It is locked while the run
/// lives, so that one left behind by a run that was killed is known as such.
class RendezvousFile {
 public:
  /// What it says: who listens where.
  struct Words {
    std::string address, token;
    std::int64_t ranks = 0;
  };

  /// Throws InputError where a living run has the file, where it is something else, and where it
  /// cannot be written.
  RendezvousFile(std::string file, const Words& words);
  /// Deletes it.
  ~RendezvousFile();
  RendezvousFile(const RendezvousFile&) = delete;
  RendezvousFile& operator=(const RendezvousFile&) = delete;

 private:
  std::string file_;
  sim::Descriptor locked_;
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
  std::unique_ptr<RendezvousFile> file_;  // of rank 0, kept until the run ends
};

}  // namespace stepcast::validate
