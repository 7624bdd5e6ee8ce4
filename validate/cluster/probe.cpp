#include "validate/cluster/probe.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "validate/trainer/ranks/rendezvous.hpp"
#include "validate/trainer/ranks/sockets.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;
using workloads::CollectiveKind;

constexpr int first_port = 41000;  // in namespaces of our own every port is free
constexpr double patience_s = 30.0;
constexpr int pings = 100;
// All flows begin at one instant, after their pings; bytes are counted between two later ones, so
// that all of them are under way and none drains.
constexpr double ping_s = 1.0, settle_s = 0.3, counted_s = 0.5, flow_s = 1.0;
// Repetitions: as many as fit, so that a median of a loaded machine is one.
constexpr double budget_s = 0.3;
constexpr std::int64_t least_calls = 5, most_calls = 40;
// Other programs only add time: of several medians, apart in time, the least is nearest to alone.
constexpr int rounds = 3;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void broken() {
  throw PeerLost(std::string("a probe lost its connection: ") + std::strerror(errno));
}

void send_all(int socket, const std::vector<char>& data) {
  for (std::size_t sent = 0; sent < data.size();) {
    const ssize_t n = send(socket, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) broken();
    sent += static_cast<std::size_t>(n);
  }
}

void without_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// Answers pings, then sends from `begin` until its time is over.
std::vector<double> serve(const std::string& address, Clock::time_point begin) {
  sim::Listener listener(address);
  const sim::Descriptor peer = listener.accept(sim::in_seconds(patience_s)).release();
  without_delay(peer.number());
  std::vector<char> byte(1), block(1 << 16);
  for (int i = 0; i < pings; ++i) {
    if (recv(peer.number(), byte.data(), 1, MSG_WAITALL) != 1) broken();
    send_all(peer.number(), byte);
  }
  std::this_thread::sleep_until(begin);
  while (since(begin) < flow_s) send_all(peer.number(), block);
  return {};
}

/// Rate and latency of one path: this end's clock alone.
std::vector<double> visit(const std::string& address, Clock::time_point begin) {
  const sim::Descriptor peer = sim::connect_to(address, sim::in_seconds(patience_s)).release();
  without_delay(peer.number());
  std::vector<char> byte(1), block(1 << 18);
  std::vector<double> there_and_back;
  for (int i = 0; i < pings; ++i) {
    const auto sent = Clock::now();
    send_all(peer.number(), byte);
    if (recv(peer.number(), byte.data(), 1, MSG_WAITALL) != 1) broken();
    there_and_back.push_back(since(sent));
  }
  double counted = 0;
  for (;;) {
    const ssize_t n = recv(peer.number(), block.data(), block.size(), 0);
    if (n < 0) broken();
    if (n == 0) break;
    const double at = since(begin);
    if (at >= settle_s && at < settle_s + counted_s) counted += static_cast<double>(n);
  }
  return {counted / counted_s, median(there_and_back) / 2};
}

/// Memory of one rank for one collective.
class Call {
 public:
  Call(const calibrate::CollectiveTask& task, std::int64_t ranks)
      : kind_(*sim::collective_named(task.collective)), ranks_(static_cast<std::size_t>(ranks)) {
    const std::size_t count = static_cast<std::size_t>(task.bytes.value) / sizeof(float);
    all_.resize(count);
    part_.resize(count / ranks_);
    if (kind_ == CollectiveKind::all_to_all) {
      counts_.assign(ranks_, part_.size());
      theirs_.resize(part_.size() * ranks_);
    }
  }
  void run(Communicator& world) {
    switch (kind_) {
      case CollectiveKind::all_reduce:
        return world.all_reduce(all_);
      case CollectiveKind::all_gather:
        return world.all_gather(part_, std::span(all_).first(part_.size() * ranks_));
      case CollectiveKind::reduce_scatter:
        return world.reduce_scatter(std::span(all_).first(part_.size() * ranks_), part_);
      case CollectiveKind::all_to_all:
        return world.all_to_all(std::span(all_).first(theirs_.size()), counts_, theirs_, counts_);
      case CollectiveKind::send_receive:
        if (world.rank() == 0) world.send(all_, 1);
        if (world.rank() == 1) world.receive(all_, 0);
        return;
      default:
        throw BrokenPromise("a collective that the trainer calls");
    }
  }

 private:
  CollectiveKind kind_;
  std::size_t ranks_;
  std::vector<float> all_, part_, theirs_;
  std::vector<std::size_t> counts_;
};

/// Seconds of one call, by the slowest rank. Those who are done wait for the others before the next
/// one, so that what a sender has on its way is through.
double timed(Call& call, Communicator& world) {
  world.barrier();
  const auto begin = Clock::now();
  call.run(world);
  std::vector<double> slowest{since(begin)};
  world.all_reduce(slowest, Reduction::max);
  return slowest.front();
}

/// The median of some calls, the same on all ranks.
double typical(const calibrate::CollectiveTask& task, Communicator& world) {
  Call call(task, world.size());
  const double first = timed(call, world);
  const std::int64_t calls = std::clamp(static_cast<std::int64_t>(budget_s / std::max(first, 1e-6)),
                                        least_calls, most_calls);
  std::vector<double> times;
  for (std::int64_t i = 0; i < calls; ++i) times.push_back(timed(call, world));
  return median(std::move(times));
}

std::vector<double> rank_of(const std::vector<std::int64_t>& nodes, std::int64_t rank,
                            const std::vector<calibrate::CollectiveTask>& tasks) {
  const auto ranks = static_cast<std::int64_t>(nodes.size());
  Rendezvous rendezvous({.rank = rank,
                         .ranks = ranks,
                         .place = fmt::format("{}:{}", address_of(nodes.front()), first_port),
                         .token = "collectives",
                         .patience = to_duration(patience_s)});
  SocketRanks sockets(rank, std::move(rendezvous.connections), to_duration(patience_s));
  const auto world = sockets.world();
  std::vector<double> least(tasks.size(), std::numeric_limits<double>::max());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t t = 0; t < tasks.size(); ++t)
      least[t] = std::min(least[t], typical(tasks[t], *world));
  return least;
}

}  // namespace

std::vector<PathSpeed> measure_paths(
    const Box& box, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  const auto begin = Clock::now() + std::chrono::milliseconds(static_cast<int>(1e3 * ping_s));
  std::vector<NodeTask> tasks;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [from, to] = pairs[i];
    const std::string address =
        fmt::format("{}:{}", address_of(from), first_port + static_cast<int>(i));
    tasks.push_back({from, [address, begin] { return serve(address, begin); }});
    tasks.push_back({to, [address, begin] { return visit(address, begin); }});
  }
  const auto answers = run_on_nodes(box, tasks);
  std::vector<PathSpeed> speeds;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<double>& answer = answers[2 * i + 1];
    speeds.push_back(
        {pairs[i].first, pairs[i].second, BytesPerSecond(answer[0]), to_duration(answer[1])});
  }
  return speeds;
}

std::vector<Duration> measure_collectives(const Box& box, const std::vector<std::int64_t>& nodes,
                                          const std::vector<calibrate::CollectiveTask>& tasks) {
  std::vector<NodeTask> ranks;
  for (std::size_t r = 0; r < nodes.size(); ++r)
    ranks.push_back({nodes[r], [&nodes, &tasks, r] {
                       return rank_of(nodes, static_cast<std::int64_t>(r), tasks);
                     }});
  const auto answers = run_on_nodes(box, ranks);
  std::vector<Duration> times;
  for (const double t : answers.front()) times.push_back(to_duration(t));
  return times;
}

}  // namespace stepcast::validate
