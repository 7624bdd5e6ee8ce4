#include "calibrate/host/ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::calibrate::host {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> command_line(std::int64_t count, const std::string& program) {
  std::vector<std::string> words{"mpirun",          "-n",        std::to_string(count),
                                 "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.push_back(program);
  return words;
}

/// The child: its own process group, so that the end of it is the end of all ranks.
[[noreturn]] void become(std::vector<std::string>& words, int in, int out) {
  setpgid(0, 0);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::string ranks_library() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen("mpirun --version 2>/dev/null", "r"),
                                                   pclose);
  std::array<char, 128> line{};
  if (!pipe || std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) == nullptr)
    return {};
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Ranks::Ranks(std::int64_t count, std::string program, Duration limit)
    : count_(count), limit_(limit) {
  if (program.empty()) program = sim::beside_program("stepcast-host-ranks");
  std::error_code error;
  if (!std::filesystem::exists(program, error))
    throw Unsupported("built without MPI: there is no " + program);
  std::vector<std::string> words = command_line(count, program);
  std::array<int, 2> down{}, up{};
  if (pipe2(down.data(), O_CLOEXEC) != 0 || pipe2(up.data(), O_CLOEXEC) != 0)
    throw Unsupported("no pipe for the ranks");
  process_ = fork();
  if (process_ == 0) become(words, down[0], up[1]);
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
  signal(SIGPIPE, SIG_IGN);  // ranks that are gone show in the answer
  try {
    ask("hello");
  } catch (...) {
    end();
    throw;
  }
}

Ranks::~Ranks() { end(); }

/// Closing their input ends them; who has not gone after two seconds is killed.
void Ranks::end() {
  if (process_ <= 0) return;
  close(to_);
  close(from_);
  for (int i = 0; i < 200 && waitpid(process_, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (waitpid(process_, nullptr, WNOHANG) == 0) {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  process_ = -1;
}

std::string Ranks::answer() {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds(limit_));
  for (;;) {
    for (auto end_of_line = unread_.find('\n'); end_of_line != std::string::npos;
         end_of_line = unread_.find('\n')) {
      const std::string line = unread_.substr(0, end_of_line);
      unread_.erase(0, end_of_line + 1);
      if (line.starts_with("= ")) return line.substr(2);
      said_ = said_.empty() ? line : said_ + " | " + line;
    }
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    pollfd ready{from_, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count()) + 1) == 0)
      throw Unsupported(fmt::format("{} ranks under mpirun did not answer in time", count_));
    std::array<char, 4096> buffer{};
    const ssize_t got = read(from_, buffer.data(), buffer.size());
    if (got <= 0)
      throw Unsupported("the ranks under mpirun ended" + (said_.empty() ? "" : ": " + said_));
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

double Ranks::ask(const std::string& question) {
  if (process_ <= 0) throw Unsupported("the ranks under mpirun ended");
  const std::string text = question + "\n";
  const ssize_t written = write(to_, text.data(), text.size());
  try {
    if (written != static_cast<ssize_t>(text.size())) throw Unsupported("the ranks do not listen");
    const std::string reply = answer();
    std::istringstream in(reply);
    double value = 0;
    if (!(in >> value)) throw Unsupported("the ranks under mpirun: " + reply);
    return value;
  } catch (...) {
    if (question == "hello") throw;
    end();
    throw;
  }
}

double Ranks::check(const CollectiveTask& task, std::uint64_t seed) {
  return ask(fmt::format("check {} {} {}", task.collective, task.bytes.value, seed));
}

Duration Ranks::time(const CollectiveTask& task, std::int64_t repetitions) {
  return to_duration(
      ask(fmt::format("time {} {} {}", task.collective, task.bytes.value, repetitions)));
}

}  // namespace stepcast::calibrate::host
