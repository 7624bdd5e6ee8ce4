// Ranks as threads of this process: run_ranks(). One lock and one condition for all, as the groups
// are small; a rank waits for its peers' arrival, then reads straight from their buffers.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace stepcast::validate {
namespace {

using Message = std::vector<std::byte>;

/// What the ranks of one group share. Guarded by World::mutex.
struct Team {
  explicit Team(std::size_t n) : size(n), shown(n), colors(n), messages(n * n) {}
  std::size_t size, arrived = 0;
  std::uint64_t generation = 0;
  std::vector<Message> shown;  // by each rank; kept here, so that a rank that fails leaves it whole
  std::vector<std::optional<std::int64_t>> colors;
  std::map<std::int64_t, Team*> parts;        // of the split under way
  std::vector<std::deque<Message>> messages;  // [from * size + to]
};

struct World {
  explicit World(Duration wait_limit) : limit(seconds(wait_limit)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::chrono::duration<double> limit;
  bool broken = false;
  std::exception_ptr cause;
  std::deque<Team> teams;

  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    if (!broken) cause = std::move(why);
    broken = true;
    changed.notify_all();
  }

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    const bool in_time = changed.wait_for(lock, limit, [&] { return broken || ready(); });
    if (ready()) return;
    throw PeerLost(in_time ? "another rank has ended" : "a peer did not come in time");
  }
};

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  expects(from.size() == to.size(), "ranks call a collective with equal lengths");
  std::ranges::copy(from, to.begin());
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(World& world, Team& team, std::size_t rank)
      : world_(world), team_(team), rank_(rank) {}

  std::int64_t rank() const override { return static_cast<std::int64_t>(rank_); }
  std::int64_t size() const override { return static_cast<std::int64_t>(team_.size); }

  void barrier() override {
    std::unique_lock lock(world_.mutex);
    if (++team_.arrived == team_.size) {
      team_.arrived = 0;
      ++team_.generation;
      world_.changed.notify_all();
      return;
    }
    world_.wait(lock, [this, now = team_.generation] { return team_.generation != now; });
  }

  void give_up(const std::exception_ptr& cause) override { world_.fail(cause); }

  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    {
      const std::lock_guard lock(world_.mutex);
      team_.colors[rank_] = color;
    }
    barrier();
    std::unique_ptr<Communicator> part;
    if (color) {
      const std::lock_guard lock(world_.mutex);
      const auto members = std::count(team_.colors.begin(), team_.colors.end(), color);
      const auto before = std::count(
          team_.colors.begin(), team_.colors.begin() + static_cast<std::ptrdiff_t>(rank_), color);
      Team*& made = team_.parts[*color];
      if (made == nullptr) made = &world_.teams.emplace_back(static_cast<std::size_t>(members));
      part = std::make_unique<ThreadCommunicator>(world_, *made, static_cast<std::size_t>(before));
    }
    barrier();
    if (rank_ == 0) {
      const std::lock_guard lock(world_.mutex);
      team_.parts.clear();
    }
    barrier();
    return part;
  }

 private:
  /// Shows `mine` to the others, lets `read` look at everybody's, and returns when all have looked.
  template <class Read>
  void meet(std::span<const std::byte> mine, Read read) {
    team_.shown[rank_].assign(mine.begin(), mine.end());
    barrier();
    read(team_.shown);
    barrier();
  }

  /// `into` = the ranks' bytes from `offset` on, combined in the order of ranks, so that all ranks
  /// hold the same bits.
  void reduce_shown(std::span<std::byte> into, std::size_t offset, Scalar scalar, Reduction how) {
    std::vector<std::span<const std::byte>> parts;
    for (const Message& shown : team_.shown)
      parts.push_back(std::span<const std::byte>(shown).subspan(offset, into.size()));
    reduce(parts, into, scalar, how);
  }

  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    meet(values, [&](const auto& all) {
      for (const auto& other : all) expects(other.size() == values.size(), "equal lengths");
      reduce_shown(values, 0, scalar, how);
    });
  }

  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Scalar) override {
    meet(mine, [&](const auto& parts) {
      expects(all.size() == mine.size() * team_.size, "room for all ranks' parts");
      for (std::size_t r = 0; r < parts.size(); ++r)
        copy(parts[r], all.subspan(r * mine.size(), mine.size()));
    });
  }

  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    meet(all, [&](const auto& parts) {
      for (const auto& part : parts)
        expects(part.size() == mine.size() * team_.size, "one part for each rank");
      reduce_shown(mine, rank_ * mine.size(), scalar, Reduction::sum);
    });
  }

  /// The others' parts are found in what they show by what they say of its sizes.
  void exchange_bytes(std::span<const std::byte> mine, Counts to, std::span<std::byte> theirs,
                      Counts from) override {
    expects(to.size() == team_.size && from.size() == team_.size, "a part for each rank");
    const std::size_t head = team_.size * sizeof(std::size_t);
    Message shown(head + mine.size());
    std::ranges::copy(std::as_bytes(to), shown.begin());
    std::ranges::copy(mine, shown.begin() + static_cast<std::ptrdiff_t>(head));
    meet(shown, [&](const auto& all) {
      std::size_t at = 0;
      for (std::size_t r = 0; r < all.size(); ++r) {
        std::vector<std::size_t> sizes(team_.size);
        std::memcpy(sizes.data(), all[r].data(), head);
        const std::size_t before = std::accumulate(
            sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank_), std::size_t{0});
        copy(std::span(all[r]).subspan(head + before, sizes[rank_]), theirs.subspan(at, from[r]));
        at += from[r];
      }
    });
  }

  void broadcast_bytes(std::span<std::byte> values, std::int64_t root) override {
    const auto from = static_cast<std::size_t>(root);
    meet(values, [&](const auto& all) { copy(all[from], values); });
  }

  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    const std::lock_guard lock(world_.mutex);
    team_.messages[rank_ * team_.size + static_cast<std::size_t>(peer)].emplace_back(values.begin(),
                                                                                     values.end());
    world_.changed.notify_all();
  }

  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    std::unique_lock lock(world_.mutex);
    auto& box = team_.messages[static_cast<std::size_t>(peer) * team_.size + rank_];
    world_.wait(lock, [&] { return !box.empty(); });
    const Message message = std::move(box.front());
    box.pop_front();
    lock.unlock();
    copy(message, values);
  }

  World& world_;
  Team& team_;
  std::size_t rank_;
};

}  // namespace

void run_ranks(std::int64_t count, const std::function<void(std::unique_ptr<Communicator>)>& body,
               Duration limit) {
  expects(count > 0, "at least one rank");
  World world(limit);
  Team& all = world.teams.emplace_back(static_cast<std::size_t>(count));
  const auto run_rank = [&](std::size_t rank) {
    try {
      body(std::make_unique<ThreadCommunicator>(world, all, rank));
    } catch (...) {
      world.fail(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t r = 1; r < all.size; ++r) threads.emplace_back(run_rank, r);
      run_rank(0);
    } catch (...) {  // a limit on threads or memory: those that began end with it
      world.fail(std::current_exception());
    }
  }
  if (world.cause) std::rethrow_exception(world.cause);
}

}  // namespace stepcast::validate
