#include "validate/cluster/box.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/exit_codes.hpp"

namespace stepcast::validate {
namespace {

// Bytes that one socket may have on its way: whole activations, so that a sender may go on at once;
// those of all other nodes at one port stay below its room
// (plan.cpp).
constexpr const char* most_window = "4096 2097152 2097152";

/// Of TCP in a namespace. reno: the algorithm that every kernel lets a namespace choose (cubic and
/// bbr are restricted where they are not the machine's own); without losses they are alike.
constexpr std::pair<const char*, const char*> settings[] = {
    {"tcp_congestion_control", "reno"},
    {"tcp_slow_start_after_idle", "0"},  // a link is idle while ranks compute
    {"tcp_no_metrics_save", "1"},
    {"tcp_wmem", most_window},
    {"tcp_rmem", most_window},
};

void run_lines(const std::string& tool, const std::vector<std::string>& lines,
               const std::string& scratch) {
  const std::string file = scratch + "/lines";
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  sim::write_whole(file, text);
  sim::Child child({.words = {tool, "-batch", file},
                    .in = sim::Stream::nowhere,
                    .out = sim::Stream::nowhere,
                    .errors = sim::Stream::channel,
                    .ends_with_parent = true});
  std::string said;
  try {
    while (true) said += child.channel().receive(sim::in_seconds(20)) + " ";
  } catch (const sim::ChannelBroken&) {
  }
  if (child.wait() != 0)
    throw sim::Failure(sim::exit_skipped, "no cluster in a box here: " + tool + ": " + said);
}

void set_up_tcp() {
  for (const auto& [name, value] : settings) {
    std::ofstream file(std::string("/proc/sys/net/ipv4/") + name);
    file << value;
  }
}

/// As bytes over a pipe: a length, then the numbers; a negative length, then a reason.
bool give(int to, const void* data, std::size_t size) {
  return write(to, data, size) == static_cast<ssize_t>(size);
}
bool take(int from, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(from, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

[[noreturn]] void run_task(const Box& box, const NodeTask& task, int to) {
  sim::end_with_parent();
  try {
    const Visit there(box.node(task.node));
    const std::vector<double> values = task.body();
    const auto count = static_cast<std::int64_t>(values.size());
    _exit(give(to, &count, sizeof(count)) && give(to, values.data(), values.size() * sizeof(double))
              ? 0
              : 1);
  } catch (const std::exception& error) {
    const std::string why = error.what();
    const auto count = -static_cast<std::int64_t>(why.size());
    _exit(give(to, &count, sizeof(count)) && give(to, why.data(), why.size()) ? 1 : 2);
  }
}

struct Running {
  pid_t process = -1;
  sim::Descriptor answer;
};

Running start(const Box& box, const NodeTask& task) {
  int ends[2];
  expects(pipe2(ends, 0) == 0, "a pipe");
  Running running{fork(), sim::Descriptor(ends[0])};
  sim::Descriptor to(ends[1]);
  expects(running.process >= 0, "a process");
  if (running.process == 0) run_task(box, task, to.number());
  return running;
}

[[noreturn]] void lost(const std::string& why) {
  throw sim::Failure(sim::exit_rank_lost, "in the box: " + why);
}

std::vector<double> answer_of(const Running& running) {
  std::int64_t count = 0;
  if (!take(running.answer.number(), &count, sizeof(count))) lost("a process ended early");
  if (count < 0) {
    std::string why(static_cast<std::size_t>(-count), ' ');
    take(running.answer.number(), why.data(), why.size());
    lost(why);
  }
  std::vector<double> values(static_cast<std::size_t>(count));
  if (!take(running.answer.number(), values.data(), values.size() * sizeof(double)))
    lost("a process ended early");
  return values;
}

}  // namespace

std::string missing_tools() {
  for (const char* tool : {"ip", "tc"})
    if (sim::first_line_of({tool, "-V"}).empty())
      return fmt::format("there is no `{}` on PATH (Debian: iproute2)", tool);
  return {};
}

Box::Box(BoxPlan plan, const std::string& scratch) : plan_(std::move(plan)) {
  std::vector<std::string> paths;
  for (std::int64_t n = 0; n < plan_.nodes; ++n) paths.push_back(nodes_.emplace_back().path());
  {
    const Visit here(switches_);
    run_lines("ip", switch_links(plan_, paths), scratch);
    run_lines("tc", switch_rates(plan_), scratch);
  }
  for (std::int64_t n = 0; n < plan_.nodes; ++n) {
    const Visit here(node(n));
    set_up_tcp();
    run_lines("ip", node_links(n), scratch);
    run_lines("tc", node_rates(plan_, n), scratch);
  }
}

std::vector<std::vector<double>> run_on_nodes(const Box& box, const std::vector<NodeTask>& tasks) {
  std::vector<Running> running;
  for (const NodeTask& task : tasks) running.push_back(start(box, task));
  std::vector<std::vector<double>> answers;
  std::string failed;
  for (Running& one : running) {
    try {
      if (failed.empty()) answers.push_back(answer_of(one));
    } catch (const sim::Failure& failure) {
      failed = failure.what();
    }
    if (!failed.empty()) kill(one.process, SIGKILL);
    waitpid(one.process, nullptr, 0);
  }
  if (!failed.empty()) throw sim::Failure(sim::exit_rank_lost, failed);
  return answers;
}

}  // namespace stepcast::validate
