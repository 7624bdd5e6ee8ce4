// What the trainer's launcher hears of a process that it has started: a rank or mpirun.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/processes/child.hpp"

namespace stepcast::validate {

/// In its environment: a launcher listens to it.
inline constexpr const char* launched_variable = "STEPCAST_TRAINER_LAUNCHED";
/// How its lines begin that are progress, a message for the user, and one that is passed on at
/// once.
inline constexpr const char* progress_mark = "progress: ";
inline constexpr const char* own_mark = "stepcast-trainer: ";
inline constexpr const char* warning_mark = "stepcast-trainer: warning: ";

/// What it is, before it is started.
struct ChildPlan {
  std::vector<std::string> words;  // program and arguments
  sim::Environment environment{};
  int socket = -1;  // that it inherits
};

/// It ends with the launcher, and Ctrl-C reaches the launcher alone, which then ends it in order.
class Child {
 public:
  explicit Child(ChildPlan plan);

  bool failed() const { return process.status().value_or(0) != 0; }
  /// Takes in what is there; false where it said nothing.
  bool listen(bool quiet);

  sim::Child process;
  std::deque<std::string> said;        // that was neither progress nor a message of ours
  std::vector<std::string> explained;  // messages of ours

 private:
  void take(const std::string& line, bool quiet);
};

}  // namespace stepcast::validate
