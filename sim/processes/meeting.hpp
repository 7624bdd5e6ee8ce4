// Where processes of one run meet, also those of other nodes: at an address, or by a file that says
// it. A run has a token that strangers lack: they are turned away, and nobody waits for them. Knows
// not what is said once the processes are in.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/processes/child.hpp"
#include "sim/processes/line_channel.hpp"

namespace stepcast::sim {

/// By which a user names a run that is started on several nodes.
inline constexpr const char* token_variable = "STEPCAST_TRAINER_TOKEN";
/// Without spaces; "" where there is none.
std::string token_in_environment();
Environment environment_with_token(const std::string& token);

/// A word that no other run has.
std::string make_token();

/// Throws InputError where processes without a token are to meet at an address: whoever knocked
/// there would be let in.
void check_token(const std::string& place, const std::string& token);

/// What a file or a first line begins with. Others are not understood.
struct Greeting {
  std::string_view program, version;
};

/// The file that tells where a run's first process listens, of one run at a time. It is locked
/// while the run lives, so that one left behind by a run that was killed is known as such.
class RendezvousFile {
 public:
  /// What it says: who listens where.
  struct Words {
    std::string address, token;
    std::int64_t ranks = 0;
  };

  /// Throws InputError where a living run has the file, where it is something else, and where it
  /// cannot be written.
  RendezvousFile(std::string file, Greeting greeting, const Words& words);
  /// Deletes it.
  ~RendezvousFile();
  RendezvousFile(const RendezvousFile&) = delete;
  RendezvousFile& operator=(const RendezvousFile&) = delete;

 private:
  std::string file_;
  Descriptor locked_;
};

/// What a rendezvous file says; none where it is not there, or not (yet) one.
std::optional<RendezvousFile::Words> words_in(const std::string& file, Greeting greeting);
/// The address in it as this machine reaches it: a host need not know its own name.
std::string reached_here(const std::string& address);

/// "10.0.0.4" of the other end.
std::string host_of(const Descriptor& socket);

/// Who has come: some say nothing, or rubbish.
class Guest {
 public:
  explicit Guest(Descriptor socket);

  LineChannel channel;

  /// What came of the line so far, as far as it can be printed.
  std::string heard() const;
  /// Too long without a line.
  bool is_overdue() const;

 private:
  Deadline until_;
};

/// Those who knock until all who are wanted have come in; strangers are sent away.
class Door {
 public:
  /// Who is let in is `wanted`, "a rank"; `program` warns once of somebody else.
  Door(Listener& listener, std::string program, std::string wanted);

  /// Of who said a line: "" where the connection was taken, else why not; none: a stranger.
  using Answer = std::optional<std::string>;
  using Enter = std::function<Answer(const std::string& line, Guest& guest)>;
  /// Waits a moment for whoever comes next, or for one of the `others`, and gives each first line
  /// to `enter`.
  void open(Deadline deadline, const std::vector<int>& others, const Enter& enter);

 private:
  void hear(Guest& guest, const std::string& line, const Enter& enter);
  void wonder(const std::string& said);

  Listener& listener_;
  std::string program_, wanted_;
  std::list<Guest> guests_;
  bool wondered_ = false;
};

}  // namespace stepcast::sim
