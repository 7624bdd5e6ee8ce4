#include "validate/trainer/ranks/process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/processes/line_channel.hpp"
#include "sim/processes/meeting.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/interrupt.hpp"
#include "validate/trainer/ranks/child.hpp"
#include "validate/trainer/ranks/place.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto look_again = std::chrono::milliseconds(100);
constexpr auto grace = std::chrono::seconds(2);            // between asking and killing
constexpr auto settling = std::chrono::milliseconds(500);  // until all have noticed a failure

std::vector<std::string> words_of(const std::string& program,
                                  const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void complain(const std::string& what) { sim::tell(stderr, own_mark + what + "\n"); }

/// The ranks of this node, or mpirun.
class Ranks {
 public:
  Ranks(const RankLaunch& launch, std::vector<ChildPlan> plans, std::int64_t first_rank,
        bool by_mpirun)
      : launch_(launch), first_rank_(first_rank), by_mpirun_(by_mpirun) {
    for (ChildPlan& plan : plans) children_.emplace_back(std::move(plan));
    last_word_ = Clock::now();
  }
  ~Ranks() { end(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Until they have ended or must be ended; the exit code.
  int wait() {
    const auto silence = std::chrono::duration<double>(seconds(launch_.silence));
    for (;;) {
      listen(look_again);
      const std::size_t left = num_running();
      if (stop_) {
        end();
        return sim::stop_code();
      }
      if (std::ranges::any_of(children_, &Child::failed)) return failure();
      if (left == 0) return drain(), sim::exit_ok;
      if (Clock::now() - last_word_ > silence) {
        end();
        for (const Child& child : children_) print_said(child);
        complain(
            fmt::format("the ranks said nothing for {:.0f} s and were ended", silence.count()));
        return sim::exit_rank_lost;
      }
    }
  }

 private:
  std::size_t num_running() {
    return static_cast<std::size_t>(
        std::ranges::count_if(children_, [](Child& child) { return child.process.running(); }));
  }

  /// Reads what they say for a moment.
  void listen(std::chrono::milliseconds moment) {
    std::vector<int> waiting;
    for (const Child& child : children_) waiting.push_back(child.process.channel().number());
    if (std::ranges::count(waiting, -1) == std::ssize(waiting))
      std::this_thread::sleep_for(look_again / 10);  // all closed, but not ended yet
    else
      sim::wait_readable(waiting, Clock::now() + moment);
    drain();
  }

  /// What they have said since.
  void drain() {
    for (Child& child : children_)
      if (child.listen(launch_.quiet)) last_word_ = Clock::now();
  }

  /// Asks them to end, then kills them; mpirun's ranks die with it (end_with_parent).
  void end() {
    for (const Child& child : children_) child.process.ask_to_end();
    for (const auto deadline = Clock::now() + grace; num_running() > 0;) {
      if (Clock::now() >= deadline) break;
      std::this_thread::sleep_for(look_again / 10);
    }
    for (Child& child : children_) child.process.kill_now();
  }

  /// One has failed. Its peers may have noticed before this process did: who failed of himself is
  /// the cause, and speaks for all.
  int failure() {
    for (const auto until = Clock::now() + settling; num_running() > 0 && Clock::now() < until;)
      listen(look_again / 10);
    std::vector<Child*> failed;
    for (Child& child : children_)
      if (child.failed()) failed.push_back(&child);
    end();
    drain();
    const auto cause = std::ranges::min_element(failed, {}, [](const Child* child) {
      const int status = *child->process.status();
      return WIFSIGNALED(status) ? 0 : WEXITSTATUS(status) != sim::exit_rank_lost ? 1 : 2;
    });
    return code_of(**cause);
  }

  /// "mpirun noticed that process rank 1 with PID 4711 on node x exited on signal 9 (Killed)."
  static bool explain_mpirun_signal(const Child& child) {
    for (const std::string& line : child.said) {
      int rank = 0, signal = 0;
      const auto at = line.find("process rank "), on = line.find("exited on signal ");
      if (at == std::string::npos || on == std::string::npos) continue;
      if (std::sscanf(line.c_str() + at, "process rank %d", &rank) != 1 ||
          std::sscanf(line.c_str() + on, "exited on signal %d", &signal) != 1)
        continue;
      complain_of_signal(rank, signal);
      return true;
    }
    return false;
  }

  static void complain_of_signal(std::int64_t rank, int signal) {
    complain(fmt::format("rank {} was ended by signal {} ({}); the others were ended with it", rank,
                         signal, strsignal(signal)));
  }

  static void print_said(const Child& child) {
    for (const std::string& line : child.said) sim::tell(stderr, line + "\n");
  }

  int code_of(const Child& child) const {
    const int status = *child.process.status();
    if (by_mpirun_ && explain_mpirun_signal(child)) return sim::exit_rank_lost;
    for (const std::string& line : child.explained) sim::tell(stderr, line + "\n");
    if (!by_mpirun_ && WIFSIGNALED(status)) {
      print_said(child);
      complain_of_signal(first_rank_ + (&child - children_.data()), WTERMSIG(status));
      return sim::exit_rank_lost;
    }
    if (child.explained.empty()) {
      print_said(child);
      complain("the ranks ended without a reason");
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : sim::exit_rank_lost;
    return code <= sim::exit_unwritten ? code : sim::exit_rank_lost;
  }

  const RankLaunch& launch_;
  const std::int64_t first_rank_;
  const bool by_mpirun_;
  const std::atomic<bool>& stop_ = sim::stop_requested();  // Ctrl-C
  std::vector<Child> children_;
  Clock::time_point last_word_;
};

/// One for each rank of this node. Those of a run on one node meet where this process listens
/// already, so that no port is ever somebody else's.
std::vector<ChildPlan> plans_of(const RankLaunch& launch, const NodeShare& share,
                                const sim::Listener* listener) {
  std::vector<ChildPlan> plans;
  const bool all_are_ours = share.count == launch.ranks;
  const std::string token = share.token.empty() && all_are_ours ? sim::make_token() : share.token;
  for (std::int64_t i = 0; i < share.count; ++i) {
    RankPlace place{.rank = share.first_rank + i,
                    .ranks = launch.ranks,
                    .rendezvous = listener != nullptr ? listener->address() : share.rendezvous,
                    .token = token};
    if (listener != nullptr && place.rank == 0) place.listening = listener->number();
    plans.push_back({.words = words_of(launch.program, launch.arguments),
                     .environment = environment_of(place),
                     .socket = place.listening});
  }
  return plans;
}

}  // namespace

int run_under_mpi(const RankLaunch& launch) {
  const auto words = sim::under_mpirun(launch.ranks, words_of(launch.program, launch.arguments));
  try {
    return Ranks(launch, {{.words = words}}, 0, true).wait();
  } catch (const InputError& error) {
    throw InputError(error.where(), error.problem(), "or take --ranks processes");
  }
}

int run_as_processes(const RankLaunch& launch, const NodeShare& share) {
  std::optional<sim::Listener> listener;
  if (share.rendezvous.empty()) listener.emplace("127.0.0.1:0");
  Ranks ranks(launch, plans_of(launch, share, listener ? &*listener : nullptr), share.first_rank,
              false);
  listener.reset();  // it is rank 0's now
  return ranks.wait();
}

void become_program(const std::string& program, const std::vector<std::string>& arguments) {
  throw InputError(program, "cannot be started: " + sim::become(words_of(program, arguments)));
}

int run_program(const std::string& program, const std::vector<std::string>& arguments) {
  sim::Child child({.words = words_of(program, arguments),
                    .in = sim::Stream::nowhere,
                    .out = sim::Stream::nowhere,
                    .ends_with_parent = true});
  const std::atomic<bool>& stop = sim::stop_requested();
  for (bool asked = false; child.running(); std::this_thread::sleep_for(look_again / 20)) {
    if (stop && !std::exchange(asked, true)) child.ask_to_end();
  }
  if (stop) return sim::stop_code();
  const int status = *child.status();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  sim::tell(stderr, fmt::format("{} was ended by signal {} ({})\n", program, WTERMSIG(status),
                                strsignal(WTERMSIG(status))));
  return sim::exit_rank_lost;
}

bool started_by_launcher() { return std::getenv(launched_variable) != nullptr; }

}  // namespace stepcast::validate
