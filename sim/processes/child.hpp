// Programs that this one starts: with what streams and environment, watched, and ended. Knows not
// what they do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/processes/line_channel.hpp"

namespace stepcast::sim {

using Environment = std::map<std::string, std::string>;

/// Where a stream of a child leads.
enum class Stream { ours, nowhere, channel };

struct ChildPlan {
  std::vector<std::string> words;  // a program, looked for on PATH, and its arguments
  Environment environment{};       // on top of this process's
  Stream in = Stream::ours, out = Stream::ours, errors = Stream::ours;
  bool apart = false;             // a process group of its own: no Ctrl-C from the terminal
  bool ends_with_parent = false;  // with the thread that starts it, that is
  int socket = -1;                // one of ours that it inherits
};

class Child {
 public:
  /// Throws InputError where the program cannot be started.
  explicit Child(const ChildPlan& plan);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill_now(); }

  bool running();
  /// Waits until it has ended by itself.
  int wait();
  /// Of waitpid(), once it has ended by itself.
  std::optional<int> status() const { return status_; }
  void ask_to_end() const;
  /// With all that it has started, where it is apart.
  void kill_now();

  /// Both ways, as far as its streams lead there.
  LineChannel& channel() { return channel_; }
  const LineChannel& channel() const { return channel_; }

 private:
  bool ended(int options);

  LineChannel channel_;
  pid_t process_ = -1;
  bool apart_ = false;
  std::optional<int> status_;
};

/// The command line of that many processes of a program on this node, for whoever measures MPI.
std::vector<std::string> under_mpirun(std::int64_t count, const std::vector<std::string>& words);

/// What a program says first; empty where it cannot be started or says nothing in time.
std::string first_line_of(const std::vector<std::string>& words);

/// Goes on as another program; returns only where that fails, with the reason.
std::string become(std::vector<std::string> words);

/// This process is killed when its parent ends.
void end_with_parent();

}  // namespace stepcast::sim
