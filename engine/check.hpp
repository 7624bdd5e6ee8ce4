// Two ways to fail: the user made a mistake (InputError), or stepcast broke its own promise
// (BrokenPromise, through expects/ensures, which stay on in every build).
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace stepcast {

/// A mistake of the user: where it stands ("file:line" or "--option"), what is wrong, what to do.
/// Printed by main as "where: what, hint" with exit code 3.
class InputError : public std::runtime_error {
 public:
  InputError(std::string where, std::string what, std::string hint = {})
      : std::runtime_error(where + ": " + what + (hint.empty() ? "" : ", " + hint)),
        where_(std::move(where)),
        what_(std::move(what)),
        hint_(std::move(hint)) {}

  const std::string& where() const { return where_; }
  const std::string& problem() const { return what_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string where_, what_, hint_;
};

/// A plan that cannot run on this cluster (it does not fit in memory): exit code 4.
class NoFeasiblePlan : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A time that the clock of the model cannot hold: a rate far too low, a size or latency far too
/// large. Whoever knows the scenario says where; exit code 3.
class BeyondClock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of stepcast itself: exit code 1.
class BrokenPromise : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn, gnu::noinline, gnu::cold]] inline void break_promise(const char* what,
                                                                 std::source_location at) {
  throw BrokenPromise(std::string(at.file_name()) + ":" + std::to_string(at.line()) +
                      ": broken promise: " + what);
}

/// Throws BrokenPromise naming the caller's line unless `condition` holds. Inlined: the event
/// loop checks several promises an event.
[[gnu::always_inline]] inline void expects(
    bool condition, const char* what = "precondition",
    std::source_location at = std::source_location::current()) {
  if (!condition) [[unlikely]]
    break_promise(what, at);
}

[[gnu::always_inline]] inline void ensures(
    bool condition, const char* what = "postcondition",
    std::source_location at = std::source_location::current()) {
  expects(condition, what, at);
}

}  // namespace stepcast
