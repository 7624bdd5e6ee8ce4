// How a program of stepcast ends: one number and one meaning for all of them, printed by --help and
// in README.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

namespace stepcast::sim {

enum ExitCode : int {
  exit_ok = 0,
  exit_internal = 1,
  exit_usage = 2,
  exit_bad_input = 3,
  exit_no_feasible_plan = 4,
  exit_too_inaccurate = 5,
  exit_wrong_kernel = 5,
  exit_rank_lost = 6,
  exit_unwritten = 7,
  exit_slower = 8,
  exit_skipped = 77,
  exit_hung_up = 129,
  exit_interrupted = 130,
  exit_terminated = 143,
};

/// An end that is neither a mistake of the user's nor a bug, with a code of its own.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

struct ExitMeaning {
  ExitCode code;
  const char* text;
};

std::span<const ExitMeaning> exit_meanings();

/// One line per code: "exit codes\n    0  ok\n    1  ...".
std::string exit_codes_text();

}  // namespace stepcast::sim
