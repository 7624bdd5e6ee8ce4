#include "validate/trainer/ranks/sockets.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using sim::Descriptor;
using Floats = std::vector<float>;

/// [rank][peer], over pairs of sockets of this machine.
std::vector<std::vector<Descriptor>> all_connected(std::size_t ranks) {
  std::vector<std::vector<Descriptor>> all(ranks);
  for (auto& row : all) row.resize(ranks);
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = a + 1; b < ranks; ++b) {
      int pair[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
      all[a][b] = Descriptor(pair[0]);
      all[b][a] = Descriptor(pair[1]);
    }
  return all;
}

/// What every rank answers, by rank; each is a thread with sockets of its own.
template <class Answer>
std::vector<Answer> answers(std::size_t ranks, const std::function<Answer(Communicator&)>& body) {
  auto connections = all_connected(ranks);
  std::vector<Answer> all(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      SocketRanks session(static_cast<std::int64_t>(r), std::move(connections[r]),
                          to_duration(20.0));
      all[r] = body(*session.world());
    });
  for (auto& thread : threads) thread.join();
  return all;
}

/// A process that is rank 1 of 2 and does `body`; this process is rank 0.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void(Communicator&)>& body) {
    auto connections = all_connected(2);
    process_ = fork();
    if (process_ == 0) {
      connections[0].clear();  // the parent's ends
      SocketRanks session(1, std::move(connections[1]), to_duration(20.0));
      body(*session.world());
      _exit(0);
    }
    connections[1].clear();
    mine_ = std::move(connections[0]);
  }
  ~OtherProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }
  std::vector<Descriptor> mine() { return std::move(mine_); }

 private:
  pid_t process_ = 0;
  std::vector<Descriptor> mine_;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What threads compute: the sum in the order of ranks.
template <class Real>
std::vector<Real> numbers_of(std::int64_t rank, std::size_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 7);
  std::vector<Real> values(count);
  for (Real& value : values)
    value = static_cast<Real>(static_cast<double>(random() % 20001) / 777.0 - 12.0);
  return values;
}

template <class Real>
void check_sums(std::size_t ranks, std::size_t count, Reduction how) {
  std::vector<std::vector<Real>> by_threads(ranks);
  run_ranks(static_cast<std::int64_t>(ranks), [&](std::unique_ptr<Communicator> comm) {
    auto values = numbers_of<Real>(comm->rank(), count);
    comm->all_reduce(values, how);
    by_threads[static_cast<std::size_t>(comm->rank())] = values;
  });
  const auto by_sockets = answers<std::vector<Real>>(ranks, [&](Communicator& comm) {
    auto values = numbers_of<Real>(comm.rank(), count);
    comm.all_reduce(values, how);
    return values;
  });
  CHECK(by_sockets == by_threads);  // the same bits
}

}  // namespace

TEST_CASE("processes reduce to the same bits as threads, short messages and long ones") {
  for (const std::size_t ranks : {1U, 2U, 3U, 5U})
    for (const std::size_t count : {1U, 2U, 1000U, 100003U}) {
      check_sums<float>(ranks, count, Reduction::sum);
      check_sums<double>(ranks, count, Reduction::sum);
      check_sums<float>(ranks, count, Reduction::max);
    }
}

TEST_CASE("numbers of 16 bits are summed in fp32 and rounded once") {
  // In bfloat16 1 + 2^-8 rounds to 1 each time, 1 + 2^-7 holds; in fp16 2048 + 1 rounds to 2048.
  const auto sums = answers<std::vector<float>>(3, [](Communicator& comm) {
    const float mine = comm.rank() == 0 ? 1.0F : 0.00390625F;
    std::vector<Bfloat16> brain{rounded<Bfloat16>(mine)};
    std::vector<Half> half{rounded<Half>(comm.rank() == 0 ? 2048.0F : 1.0F)};
    comm.all_reduce(brain);
    comm.all_reduce(half);
    return Floats{to_float(brain[0]), to_float(half[0])};
  });
  for (const auto& sum : sums) CHECK(sum == Floats{1.0078125F, 2050.0F});
}

TEST_CASE("processes exchange parts of their own, of any length") {
  const auto all = answers<Floats>(3, [](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::size_t part = rank == 0 ? 1 : rank == 1 ? 0 : 100000;
    const std::vector<std::size_t> to{rank, 0, 100000 * rank}, from{0, part, 2 * part};
    const Floats mine(to[0] + to[2], static_cast<float>(rank));
    Floats theirs(from[0] + from[1] + from[2]);
    comm.all_to_all(mine, to, theirs, from);
    return theirs;
  });
  CHECK(all[0] == Floats{1.0F, 2.0F, 2.0F});
  CHECK(all[1].empty());
  Floats last(100000, 1.0F);
  last.insert(last.end(), 200000, 2.0F);
  CHECK(all[2] == last);
}

TEST_CASE("gathering what was scattered of a sum is the sum, over processes") {
  for (const std::size_t part : {2U, 40000U}) {
    const auto all = answers<Floats>(4, [&](Communicator& comm) {
      Floats whole(4 * part), mine(part), again(4 * part);
      std::iota(whole.begin(), whole.end(), static_cast<float>(comm.rank()));
      comm.reduce_scatter(whole, mine);
      comm.all_gather(mine, again);
      return again;
    });
    Floats sum(4 * part);  // over r of (i + r) = 4 i + 6
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = 4.0F * static_cast<float>(i) + 6.0F;
    for (const auto& values : all) CHECK(values == sum);
  }
}

TEST_CASE("a broadcast over processes gives everybody the root's values") {
  for (const auto& values : answers<Floats>(3, [](Communicator& comm) {
         Floats mine{static_cast<float>(comm.rank()) + 1};
         comm.broadcast(mine, 1);
         comm.barrier();
         return mine;
       }))
    CHECK(values == Floats{2.0F});
}

TEST_CASE("messages travel behind, beside collectives, and keep their order") {
  const auto all = answers<Floats>(2, [](Communicator& comm) {
    const std::int64_t peer = 1 - comm.rank();
    Floats first(3000000, static_cast<float>(comm.rank())), second{7.0F}, got(3000000), more(1);
    comm.send(first, peer);
    comm.send(second, peer);
    first.assign(first.size(), -1.0F);  // the message has left
    Floats sum{1.0F};
    comm.all_reduce(sum);  // not mistaken for the messages
    comm.receive(got, peer);
    comm.receive(more, peer);
    return Floats{got.front(), got.back(), more[0], sum[0]};
  });
  CHECK(all[0] == Floats{1.0F, 1.0F, 7.0F, 2.0F});
  CHECK(all[1] == Floats{0.0F, 0.0F, 7.0F, 2.0F});
}

TEST_CASE("groups of processes do not hear each other's messages") {
  using Place = std::vector<std::int64_t>;
  const auto all = answers<Place>(5, [](Communicator& comm) {
    const auto row = comm.rank() == 4 ? comm.split(std::nullopt) : comm.split(comm.rank() / 2);
    const auto column = comm.split(comm.rank() % 2);
    const auto again = row ? row->split(0) : nullptr;
    Floats value{static_cast<float>(comm.rank())};
    if (row) again->send(value, 1 - row->rank());
    column->all_reduce(value);
    Floats from{-1.0F};
    if (row) again->receive(from, 1 - row->rank());
    return Place{column->size(), static_cast<std::int64_t>(value[0]),
                 static_cast<std::int64_t>(from[0])};
  });
  CHECK(all == std::vector<Place>{{3, 6, 1}, {2, 4, 0}, {3, 6, 3}, {2, 4, 2}, {3, 6, -1}});
}

TEST_CASE("a plan's groups over processes are those over threads") {
  workloads::ParallelPlan plan;
  plan.data_degree = 2;
  plan.tensor = 2;
  plan.pipeline = 2;
  const auto sums = [&](std::unique_ptr<Communicator> world) {
    const auto rank = static_cast<float>(world->rank());
    const Groups groups = make_groups(std::move(world), plan);
    Floats all;
    for (Communicator* group :
         {groups.tensor.get(), groups.data.get(), groups.pipeline.get(), groups.embedding.get()}) {
      Floats value{rank};
      if (group != nullptr) group->all_reduce(value);
      all.push_back(value[0]);
    }
    return all;
  };
  std::vector<Floats> by_threads(8), by_sockets(8);
  run_ranks(8, [&](std::unique_ptr<Communicator> world) {
    const auto rank = static_cast<std::size_t>(world->rank());
    by_threads[rank] = sums(std::move(world));
  });
  auto connections = all_connected(8);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 8; ++r)
    threads.emplace_back([&, r] {
      SocketRanks session(static_cast<std::int64_t>(r), std::move(connections[r]),
                          to_duration(20.0));
      by_sockets[r] = sums(session.world());
    });
  for (auto& thread : threads) thread.join();
  CHECK(by_sockets == by_threads);
}

TEST_CASE("a process that dies is noticed at once by whoever waits for it") {
  OtherProcess other([](Communicator& comm) {
    comm.barrier();
    pause();
  });
  const double took = seconds_of([&] {
    try {
      SocketRanks session(0, other.mine(), to_duration(60.0));
      const auto world = session.world();
      world->barrier();
      kill(other.process(), SIGKILL);
      world->barrier();
      FAIL("the other is dead");
    } catch (const PeerLost& error) {
      CHECK_THAT(error.what(), Catch::Contains("lost rank 1 in barrier"));
    }
  });
  CHECK(took < 60.0);  // of its patience
}

TEST_CASE("a peer that is known to be gone is told without waiting for it") {
  OtherProcess other([](Communicator&) { _exit(1); });
  SocketRanks session(0, other.mine(), to_duration(60.0));
  const auto world = session.world();
  const auto ends = [&] {
    for (int i = 0; i < 500; ++i) {
      world->check_peers();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  CHECK_THROWS_AS(ends(), PeerLost);
}

TEST_CASE("a process that hangs is given up after the patience, not before") {
  OtherProcess other([](Communicator& comm) {
    comm.barrier();
    pause();
  });
  const double took = seconds_of([&] {
    try {
      SocketRanks session(0, other.mine(), to_duration(2.0));
      const auto world = session.world();
      world->barrier();
      Floats values(4);
      world->all_reduce(values);
      FAIL("nobody answers");
    } catch (const PeerLost& error) {
      CHECK_THAT(error.what(), Catch::Contains("waited") && Catch::Contains("in all-reduce"));
    }
  });
  CHECK(took >= 2.0);
}

TEST_CASE("a rank that ends its run early leaves the others their last messages") {
  const auto all = answers<Floats>(3, [](Communicator& comm) {
    Floats value{static_cast<float>(comm.rank())}, from(1);
    if (comm.rank() == 0) {
      comm.send(value, 1);
      comm.send(value, 2);
      return value;  // and is gone
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    comm.receive(from, 0);
    comm.send(value, 3 - comm.rank());
    comm.receive(from, 3 - comm.rank());
    return from;
  });
  CHECK(all == std::vector<Floats>{{0.0F}, {2.0F}, {1.0F}});
}

TEST_CASE("threads of a rank talk in groups of their own, each beside the others") {
  constexpr int rounds = 200;
  constexpr std::size_t large = 100'000;
  const auto right = answers<char>(3, [](Communicator& world) {
    world.allow_threads();
    const auto data = world.split(0), messages = world.split(0);
    bool sums = true, arrived = true;
    std::thread collectives([&] {
      for (int i = 0; i < rounds; ++i) {
        Floats values(i % 2 == 0 ? large : 3, static_cast<float>(world.rank() + i));
        data->all_reduce(values);
        sums = sums && values.front() == static_cast<float>(3 + 3 * i) &&
               values.back() == values.front();
      }
    });
    std::thread sender([&] {
      for (int i = 0; i < rounds; ++i)
        messages->send(Floats(large / 2, static_cast<float>(i)), (world.rank() + 1) % 3);
    });
    Floats message(large / 2);
    for (int i = 0; i < rounds; ++i) {
      messages->receive(message, (world.rank() + 2) % 3);
      arrived =
          arrived && message.front() == static_cast<float>(i) && message.back() == message.front();
    }
    collectives.join();
    sender.join();
    world.barrier();
    return static_cast<char>(sums && arrived);
  });
  CHECK(right == std::vector<char>{1, 1, 1});
}

TEST_CASE("a message of a thread that does something else by now travels on") {
  // More than a connection holds; the sender calls nothing until the receiver has it.
  std::promise<void> received;
  const auto got = answers<float>(2, [&](Communicator& world) {
    world.allow_threads();
    Floats message(4'000'000, 7.0F);
    if (world.rank() == 1) {
      message.assign(message.size(), 0.0F);
      world.receive(message, 0);
      received.set_value();
      return message.back();
    }
    world.send(message, 1);
    return received.get_future().wait_for(std::chrono::seconds(120)) == std::future_status::ready
               ? 7.0F
               : 0.0F;
  });
  CHECK(got == Floats{7.0F, 7.0F});
}

TEST_CASE("a rank that gives up wakes its threads") {
  const auto ended = answers<char>(2, [](Communicator& world) {
    world.allow_threads();
    if (world.rank() == 1) return char{1};  // says goodbye and waits
    bool woken = false;
    std::thread waits([&] {
      Floats never(1);
      try {
        world.receive(never, 1);
      } catch (const PeerLost&) {
        woken = true;
      }
    });
    world.give_up({});
    waits.join();
    return static_cast<char>(woken);
  });
  CHECK(ended == std::vector<char>{1, 1});
}

/// What rank 0 says of a peer that is no rank but sends `pieces`, one every 0.1 s.
std::string said_of(const std::vector<std::vector<std::byte>>& pieces, double patience_s) {
  auto connections = all_connected(2);
  std::atomic<bool> over = false;
  std::thread peer([&] {
    for (std::size_t i = 0; !over && i < pieces.size(); ++i) {
      send(connections[1][0].number(), pieces[i].data(), pieces[i].size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  std::string said = "nothing";
  try {
    SocketRanks session(0, std::move(connections[0]), to_duration(patience_s));
    Floats values(1);
    session.world()->receive(values, 1);
  } catch (const PeerLost& error) {
    said = error.what();
  }
  over = true;
  peer.join();
  return said;
}

/// The head of a message in `channel`, as sockets.cpp has it.
std::vector<std::byte> header_of(std::uint64_t size, std::uint32_t channel,
                                 std::uint32_t reserved = 0) {
  std::vector<std::byte> bytes(16);
  std::memcpy(bytes.data(), &size, 8);
  std::memcpy(bytes.data() + 8, &channel, 4);
  std::memcpy(bytes.data() + 12, &reserved, 4);
  return bytes;
}

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST_CASE("a length that no message has is refused before it costs memory") {
  const char* const garbled = "sent what is no message";
  CHECK_THAT(said_of({header_of(std::uint64_t{1} << 62U, 1)}, 60.0), Catch::Contains(garbled));
  CHECK_THAT(said_of({header_of(~std::uint64_t{0}, 1)}, 60.0), Catch::Contains(garbled));
  CHECK_THAT(said_of({header_of(4, 1, 1)}, 60.0), Catch::Contains(garbled));
}

TEST_CASE(
    "a message that is shorter or longer than what is called for ends the run as a lost rank") {
  CHECK(said_of({header_of(0, 1)}, 60.0) ==
        "rank 1 sent 0 bytes to rank 0 in receive instead of 4");
  CHECK(said_of({header_of(8, 1), std::vector<std::byte>(8)}, 60.0) ==
        "rank 1 sent 8 bytes to rank 0 in receive instead of 4");
}

TEST_CASE("what is announced and does not come costs little memory, and the patience ends it") {
  const std::int64_t before = resident_bytes();
  std::atomic<std::int64_t> largest = 0;
  std::atomic<bool> over = false;
  std::thread watch([&] {
    while (!over) {
      largest = std::max<std::int64_t>(largest, resident_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const std::string said = said_of({header_of(std::uint64_t{4} << 30U, 1)}, 0.5);
  over = true;
  watch.join();
  CHECK_THAT(said, Catch::Contains("rank 1 is silent"));
  CHECK(largest - before < 200'000'000);
}

TEST_CASE("a peer that sends a byte now and then does not hold the run up") {
  std::vector<std::vector<std::byte>> drops(200, std::vector<std::byte>(1));
  drops.insert(drops.begin(), header_of(1000, 1));
  CHECK_THAT(said_of(drops, 2.0), Catch::Contains("rank 1 is too slow"));  // of 20 s of drops
}

}  // namespace stepcast::validate
