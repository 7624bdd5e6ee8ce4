// A process that the trainer's launcher has started: a rank or mpirun. It ends with the launcher.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/processes/line_channel.hpp"

namespace stepcast::validate {

/// What it is, before it is started.
struct ChildPlan {
  std::vector<std::string> words;  // program and arguments
  std::map<std::string, std::string> environment{};
  int socket = -1;  // that it inherits
};

/// In its environment: a launcher listens to it.
inline constexpr const char* launched_variable = "STEPCAST_TRAINER_LAUNCHED";
/// How its lines begin that are progress, a message for the user, and one that is passed on at
/// once.
inline constexpr const char* progress_mark = "progress: ";
inline constexpr const char* own_mark = "stepcast-trainer: ";
inline constexpr const char* warning_mark = "stepcast-trainer: warning: ";

class Child {
 public:
  explicit Child(ChildPlan plan);
  Child(Child&& other) noexcept;
  ~Child();

  /// Where it says something; -1 when it has closed that.
  int from() const { return from_.number(); }
  bool running();
  /// Of waitpid(), once it has ended by itself.
  std::optional<int> status() const { return status_; }
  bool failed() const { return status_ && *status_ != 0; }

  void ask_to_end() const;
  void kill_now();

  /// Reads what is there; false where there is nothing, or no more.
  bool listen(bool quiet);

  std::deque<std::string> said;        // that was neither progress nor a message of ours
  std::vector<std::string> explained;  // messages of ours

 private:
  void take(const std::string& line, bool quiet);

  calibrate::Descriptor from_;
  pid_t process_ = -1;
  std::optional<int> status_;
  std::string unread_;
};

/// As execvp() takes them.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace stepcast::validate
