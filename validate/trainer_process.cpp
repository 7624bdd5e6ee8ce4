#include "validate/trainer_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>

#include "engine/check.hpp"
#include "sim/command_line.hpp"
#include "sim/interrupt.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* launched_variable = "STEPCAST_TRAINER_LAUNCHED";
constexpr const char* progress_mark = "progress: ";
constexpr const char* own_mark = "stepcast-trainer: ";
constexpr auto look_again = std::chrono::milliseconds(100);
constexpr auto grace = std::chrono::seconds(2);  // between asking and killing

/// As calibrate starts its ranks (calibrate/host_ranks.cpp), so that both measure the same MPI.
std::vector<std::string> command_line(const RankLaunch& launch) {
  std::vector<std::string> words{"mpirun",          "-n",        std::to_string(launch.ranks),
                                 "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(launch.program);
  words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
  return words;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The child: a process group of its own, so that Ctrl-C reaches the launcher alone, which then
/// ends the ranks in order.
[[noreturn]] void become(std::vector<std::string>& words, int errors) {
  setpgid(0, 0);
  end_with_parent();
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(errors, STDERR_FILENO);
  setenv(launched_variable, "1", 1);
  const std::vector<char*> arguments = pointers_to(words);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

/// mpirun and what it says.
class Ranks {
 public:
  explicit Ranks(const RankLaunch& launch) : launch_(launch) {
    std::vector<std::string> words = command_line(launch);
    std::array<int, 2> errors{};
    if (pipe2(errors.data(), O_CLOEXEC) != 0)
      throw InputError("mpirun", std::string("no pipe: ") + std::strerror(errno));
    process_ = fork();
    if (process_ == 0) become(words, errors[1]);
    close(errors[1]);
    from_ = errors[0];
    if (process_ < 0)
      throw InputError("mpirun", std::string("no process: ") + std::strerror(errno));
    last_word_ = Clock::now();
  }
  ~Ranks() {
    end();
    close(from_);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Until they have ended or must be ended; the exit code.
  int wait() {
    const auto silence = std::chrono::duration<double>(seconds(launch_.silence));
    for (;;) {
      listen();
      if (stop_) {
        end();
        return sim::exit_interrupted;
      }
      if (const std::optional<int> status = ended()) return code_of(*status);
      if (Clock::now() - last_word_ > silence) {
        end();
        for (const std::string& line : said_) std::fprintf(stderr, "%s\n", line.c_str());
        complain(
            fmt::format("the ranks said nothing for {:.0f} s and were ended", silence.count()));
        return exit_rank_lost;
      }
    }
  }

 private:
  std::optional<int> ended() {
    int status = 0;
    if (process_ <= 0 || waitpid(process_, &status, WNOHANG) == 0) return std::nullopt;
    process_ = -1;
    while (listen()) {
    }
    return status;
  }

  /// Asks mpirun to end its ranks, then kills it; the ranks die with it (end_with_parent).
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    for (const auto deadline = Clock::now() + grace; Clock::now() < deadline;) {
      if (waitpid(process_, nullptr, WNOHANG) != 0) {
        process_ = -1;
        return;
      }
      std::this_thread::sleep_for(look_again / 10);
    }
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  /// Reads what they say for a moment; false at the end of it.
  bool listen() {
    pollfd ready{from_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(look_again.count())) <= 0) return false;
    std::array<char, 4096> buffer{};
    const ssize_t got = read(from_, buffer.data(), buffer.size());
    if (got <= 0) {
      std::this_thread::sleep_for(look_again / 10);  // closed, but not ended yet
      return false;
    }
    last_word_ = Clock::now();
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
      take(unread_.substr(0, end));
      unread_.erase(0, end + 1);
    }
    return true;
  }

  void take(const std::string& line) {
    if (line.starts_with(progress_mark)) {
      if (!launch_.quiet) std::fprintf(stderr, "%s\n", line.c_str() + std::strlen(progress_mark));
      return;
    }
    if (line.starts_with(own_mark)) {
      if (std::ranges::find(explained_, line) == explained_.end())  // said by many ranks alike
        std::fprintf(stderr, "%s\n", line.c_str());
      explained_.push_back(line);
      return;
    }
    said_.push_back(line);
    if (said_.size() > 40) said_.pop_front();
  }

  /// "mpirun noticed that process rank 1 with PID 4711 on node x exited on signal 9 (Killed)."
  bool explain_signal() {
    for (const std::string& line : said_) {
      int rank = 0, signal = 0;
      const auto at = line.find("process rank "), on = line.find("exited on signal ");
      if (at == std::string::npos || on == std::string::npos) continue;
      if (std::sscanf(line.c_str() + at, "process rank %d", &rank) != 1 ||
          std::sscanf(line.c_str() + on, "exited on signal %d", &signal) != 1)
        continue;
      complain(fmt::format("rank {} was ended by signal {} ({}); the others were ended with it",
                           rank, signal, strsignal(signal)));
      return true;
    }
    return false;
  }

  int code_of(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return sim::exit_ok;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
      throw InputError("mpirun", "cannot be started: it is not on PATH", "or take --ranks threads");
    if (explain_signal()) return exit_rank_lost;
    if (explained_.empty()) {
      for (const std::string& line : said_) std::fprintf(stderr, "%s\n", line.c_str());
      complain("the ranks ended without a reason");
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : exit_rank_lost;
    return code <= exit_rank_lost ? code : exit_rank_lost;
  }

  static void complain(const std::string& what) {
    std::fprintf(stderr, "%s%s\n", own_mark, what.c_str());
  }

  const RankLaunch& launch_;
  const std::atomic<bool>& stop_ = sim::stop_requested();  // Ctrl-C
  pid_t process_ = -1;
  int from_ = -1;
  std::string unread_;
  std::deque<std::string> said_;        // that was neither progress nor a message of ours
  std::vector<std::string> explained_;  // messages of ours
  Clock::time_point last_word_;
};

}  // namespace

int run_under_mpi(const RankLaunch& launch) { return Ranks(launch).wait(); }

int run_program(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> pointers = pointers_to(words);
  const pid_t process = fork();
  if (process < 0) throw InputError(program, std::string("no process: ") + std::strerror(errno));
  if (process == 0) {
    end_with_parent();
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;  // Ctrl-C reaches the program as well, which ends in its own way
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "%s was ended by signal %d (%s)\n", program.c_str(), WTERMSIG(status),
               strsignal(WTERMSIG(status)));
  return exit_rank_lost;
}

bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

bool started_by_launcher() { return std::getenv(launched_variable) != nullptr; }

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

void say_progress(const std::string& line) {
  std::fprintf(stderr, "%s%s\n", progress_mark, line.c_str());
}

}  // namespace stepcast::validate
