// The trainer's lanes and NCCL groups over emulated CUDA and NCCL: ranks are threads.
#include "validate/trainer/device/nccl.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "tests/validate/nccl/emulated_runtime.hpp"

namespace stepcast::validate {
namespace {

using Floats = std::vector<float>;
using workloads::Lane;

/// A rank with its lanes and the world over NCCL; its processes are the threads of run_ranks().
struct Rank {
  Rank(std::unique_ptr<Communicator> all, Duration patience)
      : processes(std::move(all)),
        lanes(std::make_unique<CudaLanes>(processes->rank(), patience)),
        ranks(std::make_shared<NcclRanks>(*processes, patience)) {
    lanes->set_watch([ranks = ranks] { ranks->check(); }, [ranks = ranks] { ranks->give_up(); });
    world = make_nccl_world(ranks, *lanes, *processes);
  }
  std::int64_t rank() const { return processes->rank(); }

  std::unique_ptr<Communicator> processes;
  std::unique_ptr<Communicator> world;
  std::unique_ptr<CudaLanes> lanes;  // gone before the groups, as in a rank's device
  std::shared_ptr<NcclRanks> ranks;
};

/// What every rank answers, by rank, once its lanes are empty.
template <class Answer>
std::vector<Answer> answers(std::int64_t size, const std::function<Answer(Rank&)>& body) {
  std::vector<Answer> all(static_cast<std::size_t>(size));
  run_ranks(size, [&](std::unique_ptr<Communicator> processes) {
    Rank self(std::move(processes), to_duration(20.0));
    Answer answer = body(self);
    self.lanes->synchronize();
    all[static_cast<std::size_t>(self.rank())] = std::move(answer);
  });
  return all;
}

template <class Real>
std::vector<Real> numbers(std::int64_t rank, std::size_t count) {
  std::vector<Real> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % 16);
    if constexpr (is_mixed<Real>)
      values[i] = rounded<Real>(value);
    else
      values[i] = static_cast<Real>(value);
  }
  return values;
}

template <class Real>
Floats floats(const std::vector<Real>& values) {
  Floats all;
  for (const Real value : values)
    if constexpr (is_mixed<Real>)
      all.push_back(to_float(value));
    else
      all.push_back(static_cast<float>(value));
  return all;
}

Floats sum_over(std::int64_t ranks, std::size_t count) {
  Floats sum(count);
  for (std::int64_t r = 0; r < ranks; ++r) {
    const Floats more = numbers<float>(r, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += more[i];
  }
  return sum;
}

Floats part_of(const Floats& all, std::size_t rank, std::size_t ranks) {
  const std::size_t size = all.size() / ranks;
  return {all.begin() + static_cast<std::ptrdiff_t>(rank * size),
          all.begin() + static_cast<std::ptrdiff_t>((rank + 1) * size)};
}

}  // namespace

TEMPLATE_TEST_CASE("NCCL's groups do every collective in every type", "", float, double, Bfloat16,
                   Half) {
  using Values = std::vector<TestType>;
  for (const std::int64_t size : {1, 2, 3}) {
    const std::size_t part = 8, count = part * static_cast<std::size_t>(size);
    struct Results {
      Values sum, largest, part, again, told;
    };
    std::vector<Results> all(static_cast<std::size_t>(size));
    run_ranks(size, [&](std::unique_ptr<Communicator> processes) {
      Rank self(std::move(processes), to_duration(20.0));
      const Values mine = numbers<TestType>(self.rank(), count);
      Results r{mine, mine, Values(part), Values(count), mine};
      self.world->all_reduce(r.sum);
      self.world->all_reduce(r.largest, Reduction::max);
      self.world->reduce_scatter(mine, r.part);
      self.world->all_gather(r.part, r.again);
      self.world->broadcast(r.told, size - 1);
      self.lanes->synchronize();
      all[static_cast<std::size_t>(self.rank())] = r;
    });
    const Floats sum = sum_over(size, count);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      CHECK(floats(all[rank].sum) == sum);
      CHECK(floats(all[rank].part) == part_of(sum, rank, all.size()));
      CHECK(floats(all[rank].again) == sum);
      CHECK(floats(all[rank].told) == numbers<float>(size - 1, count));
      Floats most(count);
      for (std::int64_t r = 0; r < size; ++r) {
        const Floats one = numbers<float>(r, count);
        for (std::size_t i = 0; i < count; ++i) most[i] = std::max(most[i], one[i]);
      }
      CHECK(floats(all[rank].largest) == most);
    }
  }
}

TEST_CASE("a plan's groups over NCCL are those over threads") {
  workloads::ParallelPlan plan;
  plan.data_degree = 2;
  plan.tensor = 2;
  plan.pipeline = 3;
  const auto sums = [&](std::unique_ptr<Communicator> world, Lanes* lanes) {
    const auto rank = static_cast<float>(world->rank());
    const Groups groups = make_groups(std::move(world), plan);
    std::vector<Floats> all;
    for (Communicator* group :
         {groups.tensor.get(), groups.data.get(), groups.pipeline.get(), groups.embedding.get()}) {
      all.push_back({rank, group == nullptr ? -1.0F : static_cast<float>(group->rank())});
      if (group != nullptr) group->all_reduce(std::span(all.back().data(), 1));
    }
    if (lanes != nullptr) lanes->synchronize();
    return all;
  };
  std::vector<std::vector<Floats>> by_threads(12);
  run_ranks(12, [&](std::unique_ptr<Communicator> world) {
    const auto rank = static_cast<std::size_t>(world->rank());
    by_threads[rank] = sums(std::move(world), nullptr);
  });
  const auto by_nccl = answers<std::vector<Floats>>(
      12, [&](Rank& self) { return sums(std::move(self.world), self.lanes.get()); });
  CHECK(by_nccl == by_threads);
}

TEST_CASE("in a ring of stages the last one's next is the first") {
  for (const std::int64_t stages : {2, 4}) {
    const auto got = answers<Floats>(stages, [](Rank& self) {
      Communicator& world = *self.world;
      world.connect_neighbours(true);
      self.lanes->start();  // as every step does: the connections' own messages are through
      const std::int64_t size = world.size(), rank = world.rank();
      const Floats mine{static_cast<float>(rank)};
      Floats from_previous(1);
      self.lanes->take(workloads::send_next_lane);
      world.send(mine, (rank + 1) % size);
      self.lanes->take(workloads::receive_previous_lane);
      world.receive(from_previous, (rank + size - 1) % size);
      self.lanes->synchronize();
      return from_previous;
    });
    for (std::int64_t rank = 0; rank < stages; ++rank)
      CHECK(got[static_cast<std::size_t>(rank)] ==
            Floats{static_cast<float>((rank + stages - 1) % stages)});
  }
}

/// Stages that hand activations forward and gradients back, one forward and one backward at a time,
/// each on its lane: all receive before they send.
TEST_CASE("messages both ways through a pipeline never wait for each other") {
  constexpr std::int64_t stages = 4, micro_batches = 6;
  const auto ends = answers<Floats>(stages, [](Rank& self) {
    Communicator& world = *self.world;
    CudaLanes& lanes = *self.lanes;
    world.connect_neighbours(false);
    const std::int64_t stage = world.rank();
    const bool first = stage == 0, last = stage == stages - 1;
    std::vector<Floats> forward(micro_batches, Floats(1000)), backward = forward;
    std::vector<Lanes::Mark> came(micro_batches), went(micro_batches);
    const auto send = [&](Lane lane, const Floats& values, std::int64_t peer) {
      lanes.take(workloads::compute);
      const Lanes::Mark ready = lanes.mark();
      lanes.take(lane);
      lanes.wait(ready);
      world.send(values, peer);
    };
    lanes.start();
    for (std::int64_t m = 0; m < micro_batches; ++m) {  // posted long before they are needed
      const auto i = static_cast<std::size_t>(m);
      if (!last) {
        lanes.take(workloads::receive_next_lane);
        world.receive(backward[i], stage + 1);
        went[i] = lanes.mark();
      }
      if (!first) {
        lanes.take(workloads::receive_previous_lane);
        world.receive(forward[i], stage - 1);
        came[i] = lanes.mark();
      } else {
        forward[i].assign(1000, static_cast<float>(m));
      }
      lanes.take(workloads::compute);
      if (!first) lanes.wait(came[i]);
      if (!last) send(workloads::send_next_lane, forward[i], stage + 1);
      if (last) send(workloads::send_previous_lane, forward[i], stage - 1);
      if (first || last) continue;
      lanes.take(workloads::compute);
      lanes.wait(went[i]);
      send(workloads::send_previous_lane, backward[i], stage - 1);
    }
    lanes.synchronize();
    Floats got;
    for (const Floats& one : first ? backward : forward) got.push_back(one.back());
    return got;
  });
  for (const Floats& end : ends) CHECK(end == Floats{0, 1, 2, 3, 4, 5});
}

TEST_CASE("a lane waits for a mark of another, and marks have times") {
  answers<bool>(1, [](Rank& self) {
    CudaLanes& lanes = *self.lanes;
    lanes.start();
    lanes.take(workloads::data_lane);
    const Lanes::Mark begin = lanes.mark();
    Floats from(1 << 22, 3.0F), to(from.size()), last(from.size());
    self.world->all_gather(from, to);  // copies: a group of one
    const Lanes::Mark copied = lanes.mark();
    lanes.take(workloads::compute);
    lanes.wait(copied);
    self.world->all_gather(to, last);
    const Lanes::Mark end = lanes.mark();
    lanes.synchronize();
    CHECK(last == from);
    CHECK(lanes.time_of(begin) >= Duration(0));
    CHECK(lanes.time_of(copied) > lanes.time_of(begin));
    CHECK(lanes.time_of(end) > lanes.time_of(copied));
    CHECK(lanes.timing_costs());
    lanes.start();
    CHECK(lanes.mark() == begin);  // forgotten
    return true;
  });
}

TEST_CASE("an event may be destroyed before its stream has passed it") {
  CudaLanes lanes(0, to_duration(20.0));
  on_stream(lanes.stream(), [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaEventRecord(event, lanes.stream());
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  cudaEventDestroy(event);
  lanes.synchronize();
  CHECK(cudaStreamQuery(lanes.stream()) == cudaSuccess);
}

namespace {

/// What rank 0 meets where rank 1 does as told, and how long it took; nothing is left running.
std::pair<std::string, double> loss_of(const std::function<void(Rank&)>& other, Duration patience) {
  std::string met;
  double took = 0;
  run_ranks(
      2,
      [&](std::unique_ptr<Communicator> processes) {
        Rank self(std::move(processes), patience);
        Floats values(1000);
        self.world->all_reduce(values);
        self.lanes->synchronize();
        if (self.rank() == 1) return other(self);
        const auto start = std::chrono::steady_clock::now();
        try {
          self.lanes->start();
          self.world->all_reduce(values);
          self.lanes->mark();
          self.lanes->synchronize();
        } catch (const PeerLost& error) {
          met = error.what();
        }
        took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      },
      to_duration(2.0));
  return {met, took};
}

}  // namespace

TEST_CASE("a peer that does not come to a collective is given up after the patience") {
  const auto [met, took] = loss_of(
      [](Rank&) { std::this_thread::sleep_for(std::chrono::seconds(3)); }, to_duration(0.3));
  CHECK_THAT(met, Catch::Contains("rank 0 waited 0 s for its peers on its GPU"));
  CHECK(took >= 0.3);
}

TEST_CASE("a peer that does not come to the start is given up after the patience") {
  const auto absent = [](std::unique_ptr<Communicator> processes) {
    NcclRanks ranks(*processes, to_duration(0.3));
    if (processes->rank() == 0) {
      CHECK_THROWS_WITH(ranks.join(*processes),
                        Catch::Contains("waited 0 s for its peers in ncclCommInitRankConfig"));
    } else {
      std::vector<char> id(sizeof(ncclUniqueId));  // takes it, and does not join
      processes->broadcast(id, 0);
    }
  };
  run_ranks(2, absent);
}

TEST_CASE("what the processes know of a lost peer ends the work on the GPU at once") {
  std::vector<std::string> met(2);
  run_ranks(
      2,
      [&](std::unique_ptr<Communicator> processes) {
        const std::int64_t rank = processes->rank();
        CudaLanes lanes(rank, to_duration(20.0));
        const auto ranks = std::make_shared<NcclRanks>(*processes, to_duration(20.0));
        bool told = false;
        lanes.set_watch(
            [&] {
              if (told) throw PeerLost("the other process has ended");
              ranks->check();
            },
            [] {});
        const auto world = make_nccl_world(ranks, lanes, *processes);
        Floats values(10);
        world->all_reduce(values);
        lanes.synchronize();
        if (rank == 1) return;
        world->all_reduce(values);
        told = true;
        CHECK_THROWS_WITH(lanes.synchronize(), Catch::Contains("has ended"));
        ranks->give_up();  // whoever throws PeerLost has called it
      },
      to_duration(1.0));
}

TEST_CASE("messages go to connected neighbours alone") {
  const auto refuses = [](Rank& self, std::int64_t peer) {
    Floats value(1);
    try {
      self.world->send(value, peer);
      return false;
    } catch (const BrokenPromise&) {
      return true;
    }
  };
  const auto all = answers<std::vector<int>>(3, [&](Rank& self) {
    std::vector<int> refused{refuses(self, (self.rank() + 1) % 3)};
    self.world->connect_neighbours(false);
    if (self.rank() != 1) refused.push_back(refuses(self, 2 - self.rank()));
    return refused;
  });
  CHECK(all == std::vector<std::vector<int>>{{1, 1}, {1}, {1, 1}});
}

}  // namespace stepcast::validate
