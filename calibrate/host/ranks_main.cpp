// stepcast-host-ranks: one MPI process per rank that checks and times collectives of floats. Rank 0
// reads what to do from its standard input, a line at a time, and answers with "= VALUE":
//   hello | check COLLECTIVE BYTES SEED | time COLLECTIVE BYTES REPETITIONS
// The end of the input ends all. Started by ranks.cpp.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/arithmetic.hpp"

namespace {

using Floats = std::vector<float>;

struct Order {
  enum Verb : std::int64_t { quit, hello, check, time } verb = quit;
  std::int64_t collective = 0, bytes = 0, number = 0;  // number: seed or repetitions
};

const std::vector<std::string> collectives{"allreduce", "allgather", "reducescatter",
                                           "broadcast", "alltoall",  "sendrecv"};

/// The order of rank 0 to all. The others sleep between looks: a rank that spins would slow the
/// kernels that are measured meanwhile.
Order shared(Order order) {
  MPI_Request request{};
  MPI_Ibcast(&order, sizeof order, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return order;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class Runner {
 public:
  Runner() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const { return rank_; }

  /// Sizes as nccl-tests counts them: the whole buffer of all ranks for gather and scatter, what
  /// one rank sends for AlltoAll, the message for the rest.
  void prepare(const Order& order) {
    const bool whole = order.collective == 1 || order.collective == 2 || order.collective == 4;
    const auto n = static_cast<int>(std::max<std::int64_t>(order.bytes / 4, 1));
    part_ = whole ? std::max(n / size_, 1) : n;
    const auto total = static_cast<std::size_t>(part_) * static_cast<std::size_t>(size_);
    in_.assign(whole ? total : static_cast<std::size_t>(part_), 0.0F);
    out_.assign(in_.size(), 0.0F);
  }

  /// One collective from in_ to out_; AllReduce and Broadcast as trainers call them, in place.
  void run(std::int64_t collective, std::int64_t turn) {
    switch (collective) {
      case 0:
        MPI_Allreduce(MPI_IN_PLACE, in_.data(), part_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case 1:
        MPI_Allgather(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case 2:
        MPI_Reduce_scatter_block(in_.data(), out_.data(), part_, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
        break;
      case 3:
        MPI_Bcast(in_.data(), part_, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
      case 4:
        MPI_Alltoall(in_.data(), part_, MPI_FLOAT, out_.data(), part_, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      default: {  // one message, there and back in turn: one way at a time
        const int sender = static_cast<int>(turn % 2), receiver = 1 - sender;
        if (rank_ == sender)
          MPI_Send(in_.data(), part_, MPI_FLOAT, receiver, 0, MPI_COMM_WORLD);
        else if (rank_ == receiver)
          MPI_Recv(in_.data(), part_, MPI_FLOAT, sender, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  }

  /// Seconds of all repetitions by the slowest rank's median: where a rank lost its core to another
  /// program, that one call says nothing about the collective. Zeros: sums over many runs stay
  /// finite.
  double time(const Order& order) {
    prepare(order);
    run(order.collective, 0);
    run(order.collective, 1);
    std::vector<double> calls;
    MPI_Barrier(MPI_COMM_WORLD);
    double last = MPI_Wtime();
    for (std::int64_t i = 0; i < order.number; ++i) {
      run(order.collective, i);
      const double now = MPI_Wtime();
      calls.push_back(now - last);
      last = now;
    }
    const double typical = calls.empty() ? 0.0 : stepcast::upper_median(std::move(calls));
    double elapsed = typical * static_cast<double>(order.number), slowest = 0;
    MPI_Reduce(&elapsed, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
  }

  /// Largest difference over the largest reference, which every rank computes in double from what
  /// all ranks put in.
  double check(const Order& order) {
    prepare(order);
    const auto seed = static_cast<std::uint64_t>(order.number);
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = value(seed, rank_, i);
    run(order.collective, 0);
    const bool in_place = order.collective == 0 || order.collective == 3 || order.collective == 5;
    const Floats& result = in_place ? in_ : out_;
    const auto part = static_cast<std::size_t>(part_);
    const std::size_t length = order.collective == 2 ? part : result.size();
    double difference = 0, largest = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const double reference = expected(order.collective, seed, i, part);
      difference = std::max(difference, std::abs(static_cast<double>(result[i]) - reference));
      largest = std::max(largest, std::abs(reference));
    }
    double error = largest > 0 ? difference / largest : difference, worst = 0;
    MPI_Reduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return worst;
  }

 private:
  /// Element i of what rank r puts in: splitmix64 (Steele et al. 2014), in [-1, 1].
  static float value(std::uint64_t seed, int r, std::size_t i) {
    std::uint64_t z = seed * 1000003 + static_cast<std::uint64_t>(r) * 0x9e3779b97f4a7c15 + i;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return static_cast<float>((z ^ (z >> 31U)) >> 40U) * 0x1p-23F - 1.0F;
  }

  double expected(std::int64_t collective, std::uint64_t seed, std::size_t i,
                  std::size_t part) const {
    const auto of = [&](int r, std::size_t at) { return static_cast<double>(value(seed, r, at)); };
    const auto from = static_cast<int>(i / part);
    const auto mine = static_cast<std::size_t>(rank_) * part;
    double sum = 0;
    switch (collective) {
      case 0:
        for (int r = 0; r < size_; ++r) sum += of(r, i);
        return sum;
      case 1:
        return of(from, i % part);
      case 2:
        for (int r = 0; r < size_; ++r) sum += of(r, mine + i);
        return sum;
      case 4:
        return of(from, mine + i % part);
      case 3:
        return of(0, i);
      default:
        return of(rank_ < 2 ? 0 : rank_, i);  // the first turn goes from rank 0 to rank 1
    }
  }

  int rank_ = 0, size_ = 1, part_ = 0;
  Floats in_, out_;
};

/// The next line of the input; an unknown one is answered at once and the next is read.
Order next_order() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, collective;
    Order order;
    words >> verb;
    if (verb == "hello") return {Order::hello, 0, 0, 0};
    order.verb = verb == "time" ? Order::time : Order::check;
    const bool read = static_cast<bool>(words >> collective >> order.bytes >> order.number);
    const auto found = std::find(collectives.begin(), collectives.end(), collective);
    if (read && found != collectives.end() && order.bytes > 0 && order.bytes / 4 < INT32_MAX &&
        order.number >= 0) {
      order.collective = found - collectives.begin();
      return order;
    }
    std::cout << "= not understood: " << line << std::endl;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Runner runner;
  for (;;) {
    const Order order = shared(runner.rank() == 0 ? next_order() : Order{});
    if (order.verb == Order::quit) break;
    double value = 0;
    if (order.verb == Order::check) value = runner.check(order);
    if (order.verb == Order::time) value = runner.time(order);
    if (runner.rank() == 0) {
      std::printf("= %.17g\n", value);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
