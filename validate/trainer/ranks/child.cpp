#include "validate/trainer/ranks/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/check.hpp"
#include "sim/program/exit_codes.hpp"
#include "validate/trainer/ranks/process.hpp"

namespace stepcast::validate {
namespace {

/// The child: a process group of its own, so that Ctrl-C reaches the launcher alone, which then
/// ends the ranks in order.
[[noreturn]] void become(ChildPlan& plan, int errors, pid_t parent) {
  setpgid(0, 0);
  end_with_parent();
  if (getppid() != parent) _exit(sim::exit_rank_lost);  // it has ended just now
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(errors, STDERR_FILENO);
  if (plan.socket >= 0) fcntl(plan.socket, F_SETFD, 0);
  setenv(launched_variable, "1", 1);
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  const std::vector<char*> arguments = pointers_to(plan.words);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Child::Child(ChildPlan plan) {
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0)
    throw InputError(plan.words[0], std::string("no pipe: ") + std::strerror(errno));
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become(plan, errors[1], parent);
  close(errors[1]);
  from_ = calibrate::Descriptor(errors[0]);
  if (process_ < 0)
    throw InputError(plan.words[0], std::string("no process: ") + std::strerror(errno));
}

Child::Child(Child&& other) noexcept
    : from_(std::move(other.from_)), process_(std::exchange(other.process_, -1)) {}

Child::~Child() {
  if (running()) kill_now();
}

bool Child::running() {
  if (process_ <= 0) return false;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) == 0) return true;
  process_ = -1;
  status_ = status;
  return false;
}

void Child::ask_to_end() const {
  if (process_ > 0) kill(process_, SIGTERM);
}

void Child::kill_now() {
  if (process_ <= 0) return;
  kill(-process_, SIGKILL);  // with what it has started
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

bool Child::listen(bool quiet) {
  std::array<char, 4096> buffer{};
  const ssize_t got = from() < 0 ? 0 : read(from(), buffer.data(), buffer.size());
  if (got <= 0) {
    from_ = calibrate::Descriptor();
    return false;
  }
  unread_.append(buffer.data(), static_cast<std::size_t>(got));
  for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    take(unread_.substr(0, end), quiet);
    unread_.erase(0, end + 1);
  }
  return true;
}

void Child::take(const std::string& line, bool quiet) {
  if (line.starts_with(progress_mark)) {
    if (!quiet) std::fprintf(stderr, "%s\n", line.c_str() + std::strlen(progress_mark));
  } else if (line.starts_with(warning_mark)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  } else if (line.starts_with(own_mark)) {
    if (std::ranges::find(explained, line) == explained.end())  // said by many ranks alike
      explained.push_back(line);
  } else {
    said.push_back(line);
    if (said.size() > 40) said.pop_front();
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace stepcast::validate
