#include "validate/trainer/ranks/mpi.hpp"

#include <mpi.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "validate/trainer/ranks/overdue.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace stepcast::validate {
namespace {

const Duration starting = to_duration(30.0);  // of processes on a busy machine

MPI_Datatype type_of(Scalar scalar) { return scalar == Scalar::float32 ? MPI_FLOAT : MPI_DOUBLE; }

/// Elements as MPI counts them.
int count_of(std::size_t bytes, std::size_t element = 1) {
  const std::size_t count = bytes / element;
  expects(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
          "a message below 2^31 elements");
  return static_cast<int>(count);
}

}  // namespace

class MpiSession::Watch {
 public:
  Watch(Duration limit, int exit_code) : overdue(limit, exit_code) {}

  template <class Call>
  void during(const char* what, Call&& call, Duration allowance = {}) {
    overdue.begin(what, allowance);
    call();
    overdue.end();
  }

  Overdue overdue;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MpiSession::Watch& watch, MPI_Comm comm, bool owned)
      : watch_(watch), comm_(comm), owned_(owned) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > 0) return;  // the peers may be gone: this process ends
    for (Sent& sent : sent_)
      watch_.during("send", [&] { MPI_Wait(&sent.request, MPI_STATUS_IGNORE); });
    if (owned_) watch_.during("the end of a group", [&] { MPI_Comm_free(&comm_); });
  }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }

  void barrier() override {
    watch_.during("barrier", [&] { MPI_Barrier(comm_); });
  }

  /// Its clock watches one call at a time.
  void allow_threads() override {
    throw InputError("--ranks mpi",
                     "one thread of a rank calls MPI, and collectives are to run "
                     "beside compute",
                     "--ranks processes");
  }

  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    MPI_Comm part = MPI_COMM_NULL;
    const int mine = color ? static_cast<int>(*color) : MPI_UNDEFINED;
    watch_.during("split", [&] { MPI_Comm_split(comm_, mine, rank_, &part); });
    if (part == MPI_COMM_NULL) return nullptr;
    return std::make_unique<MpiCommunicator>(watch_, part, true);
  }

 private:
  struct Sent {
    std::vector<std::byte> values;  // until the message has left
    MPI_Request request{};
  };

  /// One behind the other, as MPI counts them.
  struct Parts {
    explicit Parts(Counts bytes) {
      std::size_t at = 0;
      for (const std::size_t size : bytes) {
        sizes.push_back(count_of(size));
        starts.push_back(count_of(at));
        at += size;
      }
    }
    std::vector<int> sizes, starts;
  };

  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    const int count = count_of(values.size(), size_of(scalar));
    watch_.during("all-reduce", [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), count, type_of(scalar),
                    how == Reduction::sum ? MPI_SUM : MPI_MAX, comm_);
    });
  }

  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                    Scalar scalar) override {
    expects(all.size() == mine.size() * static_cast<std::size_t>(size_), "room for all parts");
    const int count = count_of(mine.size(), size_of(scalar));
    watch_.during("all-gather", [&] {
      MPI_Allgather(mine.data(), count, type_of(scalar), all.data(), count, type_of(scalar), comm_);
    });
  }

  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    expects(all.size() == mine.size() * static_cast<std::size_t>(size_), "one part for each rank");
    const int count = count_of(mine.size(), size_of(scalar));
    // MPI's buffers may not overlap; `mine` may be this rank's part of `all`.
    const bool apart = mine.data() < all.data() || mine.data() >= all.data() + all.size();
    std::vector<std::byte> summed(apart ? 0 : mine.size());
    watch_.during("reduce-scatter", [&] {
      MPI_Reduce_scatter_block(all.data(), apart ? mine.data() : summed.data(), count,
                               type_of(scalar), MPI_SUM, comm_);
    });
    std::ranges::copy(summed, mine.begin());
  }

  void exchange_bytes(std::span<const std::byte> mine, Counts to, std::span<std::byte> theirs,
                      Counts from) override {
    const Parts sent(to), received(from);
    watch_.during("all-to-all", [&] {
      MPI_Alltoallv(mine.data(), sent.sizes.data(), sent.starts.data(), MPI_BYTE, theirs.data(),
                    received.sizes.data(), received.starts.data(), MPI_BYTE, comm_);
    });
  }

  void broadcast_bytes(std::span<std::byte> values, std::int64_t root) override {
    watch_.during("broadcast", [&] {
      MPI_Bcast(values.data(), count_of(values.size()), MPI_BYTE, static_cast<int>(root), comm_);
    });
  }

  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    forget_delivered();
    Sent& sent = sent_.emplace_back();
    sent.values.assign(values.begin(), values.end());
    watch_.during("send", [&] {
      MPI_Isend(sent.values.data(), count_of(sent.values.size()), MPI_BYTE, static_cast<int>(peer),
                0, comm_, &sent.request);
    });
  }

  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    watch_.during("receive", [&] {
      MPI_Recv(values.data(), count_of(values.size()), MPI_BYTE, static_cast<int>(peer), 0, comm_,
               MPI_STATUS_IGNORE);
    });
    forget_delivered();
  }

  void forget_delivered() {
    for (int delivered = 1; !sent_.empty();) {
      MPI_Test(&sent_.front().request, &delivered, MPI_STATUS_IGNORE);
      if (delivered == 0) return;
      sent_.pop_front();
    }
  }

  MpiSession::Watch& watch_;
  MPI_Comm comm_;
  bool owned_;
  int rank_ = 0, size_ = 1;
  std::deque<Sent> sent_;  // its elements stay where they are: MPI reads from them
};

MpiSession::MpiSession(Duration limit, int exit_code)
    : watch_(std::make_unique<Watch>(limit, exit_code)) {
  int provided = 0;  // only this thread calls MPI; the watch just looks at a clock
  watch_->during(
      "MPI_Init", [&] { MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); },
      starting);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  watch_->overdue.rank = rank;
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() == 0) watch_->during("MPI_Finalize", [] { MPI_Finalize(); });
}

std::unique_ptr<Communicator> MpiSession::world() {
  return std::make_unique<MpiCommunicator>(*watch_, MPI_COMM_WORLD, false);
}

}  // namespace stepcast::validate
