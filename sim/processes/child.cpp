#include "sim/processes/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

constexpr double patience_s = 20;  // for the first line of a program that says its version

/// This process's environment with `more` on top, as "NAME=value".
std::vector<std::string> environment_with(const Environment& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

/// As exec takes them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Made before fork(): nothing may be allocated between that and exec.
struct Start {
  std::vector<std::string> words, environment;
  std::vector<char*> arguments, variables;
  std::array<Stream, 3> streams;
  bool apart, ends_with_parent;
  int socket;
  pid_t parent = getpid();

  explicit Start(const ChildPlan& plan)
      : words(plan.words),
        environment(environment_with(plan.environment)),
        arguments(pointers_to(words)),
        variables(pointers_to(environment)),
        streams{plan.in, plan.out, plan.errors},
        apart(plan.apart),
        ends_with_parent(plan.ends_with_parent),
        socket(plan.socket) {}

  /// The child, until it is another program; why it is not goes into `failure`.
  [[noreturn]] void become(int channel, int failure) {
    if (apart) setpgid(0, 0);
    if (ends_with_parent) {
      end_with_parent();
      if (getppid() != parent) _exit(1);  // it has ended just now
    }
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; ++i)
      if (streams[static_cast<std::size_t>(i)] != Stream::ours)
        dup2(streams[static_cast<std::size_t>(i)] == Stream::channel ? channel : nowhere, i);
    if (socket >= 0) fcntl(socket, F_SETFD, 0);
    execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    if (write(failure, &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
  }
};

using Ends = std::array<Descriptor, 2>;

template <class Make>
Ends made(const std::string& program, const char* what, Make make) {
  std::array<int, 2> ends{-1, -1};
  if (make(ends.data()) != 0)
    throw InputError(program, std::string("no ") + what + ": " + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

Child::Child(const ChildPlan& plan) : channel_(Descriptor()), apart_(plan.apart) {
  const std::string& program = plan.words.at(0);
  Ends talk = made(program, "channel", [](int* ends) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  });
  Ends failure = made(program, "pipe", [](int* ends) { return pipe2(ends, O_CLOEXEC); });
  Start start(plan);
  process_ = fork();
  if (process_ == 0) start.become(talk[1].number(), failure[1].number());
  int error = process_ < 0 ? errno : 0;
  talk[1] = Descriptor();
  failure[1] = Descriptor();  // closed on exec, so that reading ends there
  while (process_ > 0 && read(failure[0].number(), &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  if (error != 0) {
    kill_now();
    const bool no_path = error == ENOENT && program.find('/') == std::string::npos;
    throw InputError(program, std::string("cannot be started: ") +
                                  (no_path ? "it is not on PATH" : std::strerror(error)));
  }
  channel_ = LineChannel(std::move(talk[0]));
}

Child::Child(Child&& other) noexcept
    : channel_(std::move(other.channel_)),
      process_(std::exchange(other.process_, -1)),
      apart_(other.apart_),
      status_(other.status_) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(channel_, other.channel_);
  std::swap(process_, other.process_);
  std::swap(apart_, other.apart_);
  std::swap(status_, other.status_);
  return *this;
}

bool Child::ended(int options) {
  int status = 0;
  pid_t told = 0;
  while ((told = waitpid(process_, &status, options)) < 0 && errno == EINTR) {
  }
  if (told == 0) return false;
  process_ = -1;
  status_ = status;
  return true;
}

bool Child::running() { return process_ > 0 && !ended(WNOHANG); }

int Child::wait() {
  if (process_ > 0) ended(0);
  return status_.value_or(0);
}

void Child::ask_to_end() const {
  if (process_ > 0) kill(process_, SIGTERM);
}

void Child::kill_now() {
  if (process_ <= 0) return;
  if (apart_) kill(-process_, SIGKILL);
  kill(process_, SIGKILL);
  waitpid(std::exchange(process_, -1), nullptr, 0);
}

std::vector<std::string> under_mpirun(std::int64_t count, const std::vector<std::string>& words) {
  std::vector<std::string> all{"mpirun",          "-n",        std::to_string(count),
                               "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) all.emplace_back("--allow-run-as-root");
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string first_line_of(const std::vector<std::string>& words) {
  try {
    Child child(
        {.words = words, .in = Stream::nowhere, .out = Stream::channel, .errors = Stream::nowhere});
    return child.channel().receive(in_seconds(patience_s));
  } catch (const InputError&) {
  } catch (const ChannelBroken&) {
  }
  return {};
}

std::string become(std::vector<std::string> words) {
  execvp(words.at(0).c_str(), pointers_to(words).data());
  return std::strerror(errno);
}

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace stepcast::sim
