#include "validate/cluster/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <thread>

#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/interrupt.hpp"

namespace stepcast::validate {
namespace {

using sim::Descriptor;

[[noreturn]] void no_box(const std::string& why) {
  throw sim::Failure(sim::exit_skipped, "no cluster in a box here: " + why);
}

Descriptor own_network() {
  Descriptor own(open("/proc/self/ns/net", O_RDONLY));
  if (own.number() < 0) no_box(std::string("/proc/self/ns/net: ") + std::strerror(errno));
  return own;
}

bool wrote(const char* file, const std::string& text) {
  const Descriptor to(open(file, O_WRONLY | O_CLOEXEC));
  return to.number() >= 0 &&
         write(to.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// A user namespace makes anybody its root; where the kernel has none for this user, root needs
/// none. 0, or the reason.
int separate() {
  constexpr int parts = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS;
  const auto user = geteuid();
  const auto group = getegid();
  if (unshare(CLONE_NEWUSER | parts) != 0) {
    const int reason = errno;
    return user == 0 && unshare(parts) == 0 ? 0 : reason;
  }
  wrote("/proc/self/setgroups", "deny");
  const bool mapped = wrote("/proc/self/uid_map", fmt::format("0 {} 1", user)) &&
                      wrote("/proc/self/gid_map", fmt::format("0 {} 1", group));
  return mapped ? 0 : EPERM;
}

/// A folder that every Linux has, under memory of this namespace alone. Empty where it cannot be.
std::string own_memory() {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return {};
  for (const char* folder : {"/dev/shm", "/mnt", "/run"}) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error) &&
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, nullptr) == 0)
      return folder;
  }
  return {};
}

/// Ends this process with `other`, whose end of the pipe `alive` leads to.
void end_with(const Descriptor& alive) {
  sim::end_with_parent();
  pollfd gone{.fd = alive.number(), .events = POLLIN, .revents = 0};
  if (poll(&gone, 1, 0) != 0) _exit(sim::exit_internal);  // it has ended just now
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : sim::exit_rank_lost; }

/// Ctrl-C ends it at once: nothing of it is to be kept.
int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (sim::stop_requested()) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return code_of(status);
}

using Pipe = std::array<Descriptor, 2>;
Pipe open_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) no_box(std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Of the first process: what it throws is told here, as main() would.
int code_of_body(const std::function<int(const std::string&)>& body, const std::string& scratch) {
  try {
    return body(scratch);
  } catch (const sim::Failure& failure) {
    sim::tell(stderr, fmt::format("stepcast-validate: {}\n", failure.what()));
    return failure.code();
  } catch (const sim::OutputError& error) {
    sim::tell(stderr, std::string(error.what()) + "\n");
    return sim::exit_unwritten;
  } catch (const InputError& error) {
    sim::tell(stderr, std::string(error.what()) + "\n");
    return sim::exit_bad_input;
  } catch (const NoFeasiblePlan& error) {
    sim::tell(stderr, fmt::format("stepcast-validate: {}\n", error.what()));
    return sim::exit_no_feasible_plan;
  } catch (const std::exception& error) {
    sim::tell(stderr, fmt::format("stepcast-validate: {}\n", error.what()));
    return sim::exit_internal;
  }
}

/// In a child: separates itself, then its own first child is the first of its processes, with whose
/// end the kernel ends all others.
[[noreturn]] void live_apart(const std::function<int(const std::string&)>& body, Pipe& told,
                             const Descriptor& alive) {
  told[0] = Descriptor();
  int reason = separate();
  // After the credentials are changed, which would forget it.
  end_with(alive);
  Pipe mine = open_pipe();
  const pid_t first = reason == 0 ? fork() : 0;
  if (reason == 0 && first < 0) reason = errno;
  if (reason == 0 && first > 0) {
    told[1] = Descriptor();
    _exit(wait_for(first));
  }
  std::string scratch;
  if (reason == 0) {
    mine[1] = Descriptor();
    end_with(mine[0]);
    scratch = own_memory();
    if (scratch.empty()) reason = errno;
  }
  if (write(told[1].number(), &reason, sizeof(reason)) < 0 || reason != 0) _exit(sim::exit_skipped);
  told[1] = Descriptor();
  const int code = code_of_body(body, scratch);
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

int run_apart(const std::function<int(const std::string&)>& body) {
  sim::stop_requested();  // from here on Ctrl-C asks
  std::fflush(nullptr);
  Pipe told = open_pipe(), alive = open_pipe();
  const pid_t child = fork();
  if (child < 0) no_box(std::strerror(errno));
  if (child == 0) {
    alive[1] = Descriptor();
    live_apart(body, told, alive[0]);
  }
  told[1] = Descriptor();
  alive[0] = Descriptor();
  int reason = EPERM;
  if (read(told[0].number(), &reason, sizeof(reason)) != sizeof(reason)) reason = EPERM;
  const int code = wait_for(child);
  if (sim::stop_requested()) return sim::stop_code();
  if (reason != 0)
    no_box(fmt::format("the kernel lets this user make no namespaces ({})", std::strerror(reason)));
  return code;
}

NetworkNamespace::NetworkNamespace() {
  const Descriptor home = own_network();
  if (unshare(CLONE_NEWNET) != 0)
    no_box(std::string("no network namespace: ") + std::strerror(errno));
  held_ = own_network();
  ensures(setns(home.number(), CLONE_NEWNET) == 0, "the way back is open");
}

std::string NetworkNamespace::path() const { return fmt::format("/proc/self/fd/{}", number()); }

Visit::Visit(const NetworkNamespace& to) : home_(own_network()) {
  ensures(setns(to.number(), CLONE_NEWNET) == 0, "a network namespace that is held");
}

Visit::~Visit() { setns(home_.number(), CLONE_NEWNET); }

}  // namespace stepcast::validate
