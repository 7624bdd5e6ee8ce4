// Two ranks of the trainer on one GPU. Each is this program again, with a place in its environment,
// where the first case does its deed.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "validate/trainer/device/gpu.hpp"
#include "validate/trainer/ranks/place.hpp"
#include "validate/trainer/ranks/process.hpp"
#include "validate/trainer/ranks/rendezvous.hpp"
#include "validate/trainer/ranks/sockets.hpp"

namespace stepcast::validate {
namespace {

using Floats = std::vector<float>;

constexpr const char* deed_variable = "STEPCAST_TEST_DEED";
const Duration patience = to_duration(60.0), brief = to_duration(10.0);

/// A rank with its GPU; fp16, which every GPU has.
class Rank {
 public:
  Rank(const RankPlace& place, Duration wait)
      : rendezvous_({.rank = place.rank,
                     .ranks = place.ranks,
                     .place = place.rendezvous,
                     .token = place.token,
                     .listening = place.listening,
                     .patience = patience}),
        session_(place.rank, std::move(rendezvous_.connections), wait),
        processes_(session_.world()),
        device_(gpu_makers(1).half(job(), *processes_, wait)) {}

  std::int64_t rank() const { return processes_->rank(); }
  Communicator& processes() { return *processes_; }
  Lanes& lanes() { return *device_.lanes; }
  Communicator& world() { return *device_.groups.world; }
  Communicator& stages() { return *device_.groups.pipeline; }
  Communicator& alone() { return *device_.groups.tensor; }

  Buffer<float> wide(const Floats& values) {
    Buffer<float> buffer = device_.kernels->allocate_wide(values.size());
    device_.kernels->upload(buffer.all(), values);
    return buffer;
  }
  Buffer<Half> narrow(const Floats& values) {
    const Buffer<float> from = wide(values);
    Buffer<Half> buffer = device_.kernels->allocate(values.size());
    device_.kernels->narrow(buffer.all(), from.all());
    lanes().synchronize();  // before `from` goes
    return buffer;
  }
  Floats values(const Buffer<float>& buffer) {
    Floats host(buffer.size());
    device_.kernels->download(host, buffer.all());
    return host;
  }
  Floats values(const Buffer<Half>& buffer) {
    Buffer<float> to = device_.kernels->allocate_wide(buffer.size());
    device_.kernels->widen(to.all(), buffer.all());
    return values(to);
  }
  const std::string& name() const { return device_.name; }

 private:
  /// A stage for each rank.
  static TrainerJob job() {
    TrainerJob job;
    job.plan.pipeline = 2;
    job.batch.sequence = 64;
    job.model.head_dim = 64;
    return job;
  }

  Rendezvous rendezvous_;
  SocketRanks session_;
  std::unique_ptr<Communicator> processes_;
  RankDevice<Half> device_;
};

/// Whole numbers below 16: sums of two are exact in 16 bits.
Floats numbers(std::int64_t rank, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % 16);
  return values;
}

Floats sum_of_both(std::size_t count) {
  const Floats first = numbers(0, count), second = numbers(1, count);
  Floats sum(count);
  for (std::size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
  return sum;
}

Floats part_of(const Floats& all, std::int64_t rank) {
  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  return {all.begin() + rank * half, all.begin() + (rank + 1) * half};
}

/// Every collective, of wide numbers or of 16 bits.
template <class Make>
void check_collectives(Rank& self, std::size_t count, Make make) {
  const std::int64_t rank = self.rank();
  const Floats mine = numbers(rank, count), sum = sum_of_both(count);

  auto values = make(mine);
  self.world().all_reduce(values.all());
  CHECK(self.values(values) == sum);

  auto largest = make(mine);
  self.world().all_reduce(largest.all(), Reduction::max);
  const Floats first = numbers(0, count), second = numbers(1, count);
  Floats wanted(count);
  for (std::size_t i = 0; i < count; ++i) wanted[i] = std::max(first[i], second[i]);
  CHECK(self.values(largest) == wanted);

  const auto all = make(mine);
  auto part = make(Floats(count / 2));
  self.world().reduce_scatter(all.all(), part.all());
  CHECK(self.values(part) == part_of(sum, rank));
  auto again = make(Floats(count));
  self.world().all_gather(part.all(), again.all());
  CHECK(self.values(again) == sum);

  auto told = make(mine);
  self.world().broadcast(told.all(), 1);
  CHECK(self.values(told) == numbers(1, count));

  auto copied = make(Floats(count));
  self.alone().reduce_scatter(all.all(), copied.all());
  CHECK(self.values(copied) == mine);
}

/// Both directions at once, on the lanes of a pipeline: the receivers' lanes first, so that nobody
/// can go on before the other has sent.
void check_messages(Rank& self) {
  const std::size_t count = 1 << 20;
  const std::int64_t rank = self.rank(), peer = 1 - rank;
  const auto mine = self.narrow(numbers(rank, count));
  auto first = self.narrow(Floats(count)), second = self.narrow(Floats(count));
  self.lanes().start();
  self.lanes().take(rank == 0 ? workloads::receive_next_lane : workloads::receive_previous_lane);
  self.stages().receive(first.all(), peer);
  self.stages().receive(second.all(), peer);
  const Lanes::Mark received = self.lanes().mark();
  self.lanes().take(rank == 0 ? workloads::send_next_lane : workloads::send_previous_lane);
  const Lanes::Mark begin = self.lanes().mark();
  self.stages().send(mine.all(), peer);
  self.stages().send(mine.all(), peer);
  const Lanes::Mark sent = self.lanes().mark();
  self.lanes().take(workloads::compute);
  self.lanes().wait(received);
  const Lanes::Mark waited = self.lanes().mark();
  self.lanes().synchronize();
  CHECK(self.lanes().time_of(sent) > self.lanes().time_of(begin));
  CHECK(self.lanes().time_of(waited) >= self.lanes().time_of(received));
  CHECK(self.values(first) == numbers(peer, count));
  CHECK(self.values(second) == numbers(peer, count));
}

/// What comes when the other rank ends, or stops, in the middle of its work.
void check_loss(Rank& self, const std::string& deed) {
  auto values = self.wide(numbers(self.rank(), 1 << 20));
  self.world().all_reduce(values.all());
  self.lanes().synchronize();
  self.processes().barrier();
  if (self.rank() == 1) {
    if (deed == "die") raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto go_on = [&] {
    self.lanes().start();
    for (int i = 0; i < 10; ++i) self.world().all_reduce(values.all());
    self.lanes().mark();
    self.lanes().synchronize();
  };
  CHECK_THROWS_AS(go_on(), PeerLost);
  const auto took = std::chrono::steady_clock::now() - start;
  CHECK(took < brief + std::chrono::seconds(10));
  if (deed == "die") CHECK(took < brief);  // noticed, not waited for
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

RankLaunch launch_of() {
  return {.ranks = 2,
          .program = own_program(),
          .arguments = {"a rank of the cases below"},
          .silence = to_duration(240.0)};
}

}  // namespace

TEST_CASE("a rank of the cases below", "[.]") {
  const auto place = own_place();
  const char* deed = std::getenv(deed_variable);
  if (!place || deed == nullptr) return;
  Rank self(*place, deed == std::string("talk") ? patience : brief);
  if (deed != std::string("talk")) return check_loss(self, deed);
  CHECK_THAT(self.name(), Catch::Contains("NCCL"));
  for (const std::size_t count : {2U, 6000U, 1U << 20U}) {
    check_collectives(self, count, [&](const Floats& values) { return self.wide(values); });
    check_collectives(self, count, [&](const Floats& values) { return self.narrow(values); });
  }
  check_messages(self);
}

TEST_CASE("two ranks of the trainer on one GPU compute every collective and message right") {
  setenv(deed_variable, "talk", 1);
  CHECK(run_as_processes(launch_of(),
                         {.first_rank = 0, .count = 2, .rendezvous = "", .token = ""}) == 0);
}

TEST_CASE("a rank whose peer dies or hangs on the GPU ends in time") {
  for (const char* deed : {"die", "hang"}) {
    INFO(deed);
    setenv(deed_variable, deed, 1);
    const std::string address = sim::Listener("127.0.0.1:0").address();
    const NodeShare first{.first_rank = 0, .count = 1, .rendezvous = address, .token = deed};
    NodeShare second = first;
    second.first_rank = 1;
    std::thread other([&] { run_as_processes(launch_of(), second); });
    const int code = run_as_processes(launch_of(), first);
    other.join();
    CHECK(code == 0);
  }
}

}  // namespace stepcast::validate
