// Who a rank of the trainer talks to: collectives and messages of one group of ranks, over threads
// of this process (threads.cpp), MPI (mpi.hpp), sockets (sockets.hpp) or
// NCCL (validate/trainer/device/nccl.hpp). Calls in program order; all but NCCL's are done on
// return. Knows no model and no plan but the groups it cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/units.hpp"
#include "sim/program/exit_codes.hpp"
#include "validate/trainer/ranks/numbers.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

enum class Reduction : std::uint8_t { sum, max };
enum class Scalar : std::uint8_t { float32, float64, bfloat16, float16 };

template <class Real>
inline constexpr Scalar scalar_of = Scalar::float32;
template <>
inline constexpr Scalar scalar_of<double> = Scalar::float64;
template <>
inline constexpr Scalar scalar_of<Bfloat16> = Scalar::bfloat16;
template <>
inline constexpr Scalar scalar_of<Half> = Scalar::float16;

/// A peer is gone, or did not answer in time: the step cannot go on, and this rank is to end.
struct PeerLost : sim::Failure {
  explicit PeerLost(const std::string& what) : Failure(sim::exit_rank_lost, what) {}
};

/// All ranks of a group call the same collectives in the same order with equal lengths. Values are
/// spans or vectors of numbers, in the memory of the ranks' device; on a GPU a call goes onto the
/// lane at hand (validate/trainer/device/lanes.hpp) and needs not be done on return.
class Communicator {
 public:
  using Counts = std::span<const std::size_t>;

  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// In place, over all ranks.
  template <class Values>
  void all_reduce(Values&& values, Reduction how = Reduction::sum) {
    reduce_bytes(written(values), scalar(values), how);
  }
  /// all = the ranks' `mine`, by rank: all.size() == size() * mine.size(). They may not overlap.
  template <class Mine, class All>
  void all_gather(const Mine& mine, All&& all) {
    static_assert(std::is_same_v<Number<Mine>, Number<All>>);
    gather_bytes(read(mine), written(all), scalar(mine));
  }
  /// mine = this rank's part of the sum over ranks of `all`: apart from it, or its place in it.
  template <class All, class Mine>
  void reduce_scatter(const All& all, Mine&& mine) {
    static_assert(std::is_same_v<Number<Mine>, Number<All>>);
    scatter_bytes(read(all), written(mine), scalar(all));
  }
  /// Each rank's own part for each: of `mine` the first to[0] values go to rank 0, the next to[1]
  /// to rank 1; `theirs` likewise has from[r] values of rank r, what it sends to this rank. They
  /// may not overlap.
  template <class Mine, class Theirs>
  void all_to_all(const Mine& mine, Counts to, Theirs&& theirs, Counts from) {
    static_assert(std::is_same_v<Number<Mine>, Number<Theirs>>);
    exchange_bytes(read(mine), in_bytes<Number<Mine>>(to), written(theirs),
                   in_bytes<Number<Mine>>(from));
  }
  template <class Values>
  void broadcast(Values&& values, std::int64_t root) {
    broadcast_bytes(written(values), root);
  }
  /// `values` may be changed once the lane at hand is done; where there are no lanes, on return:
  /// the message travels behind, so that two stages that send to each other do not wait for each
  /// other. Messages between two ranks keep their order.
  template <class Values>
  void send(const Values& values, std::int64_t peer) {
    send_bytes(read(values), peer);
  }
  template <class Values>
  void receive(Values&& values, std::int64_t peer) {
    receive_bytes(written(values), peer);
  }
  virtual void barrier() = 0;
  /// Throws PeerLost where a peer is known to be gone; does not wait.
  virtual void check_peers() {}

  /// From here on groups of the same ranks are used by several threads, each group by one at a
  /// time, and its messages by one for each direction. Throws InputError where they cannot be.
  virtual void allow_threads() {}
  /// This rank is to end for `cause`: its calls that wait for peers throw.
  virtual void give_up(const std::exception_ptr& /*cause*/) {}

  /// Before the first send() or receive(): collective over the group, whose neighbours by rank are
  /// those that will talk to each other; in a ring the last and the first as well.
  virtual void connect_neighbours(bool /*ring*/) {}

  /// The ranks of this group that give the same color, in the order of this group; null for a rank
  /// without one. A collective call of the whole group.
  virtual std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) = 0;

 private:
  template <class Values>
  using Number =
      std::remove_const_t<std::remove_reference_t<decltype(*std::data(std::declval<Values&>()))>>;
  template <class Values>
  static std::span<const std::byte> read(const Values& values) {
    return std::as_bytes(std::span(values));
  }
  template <class Values>
  static std::span<std::byte> written(Values& values) {
    return std::as_writable_bytes(std::span(values));
  }
  template <class Values>
  static Scalar scalar(const Values&) {
    return scalar_of<Number<Values>>;
  }
  template <class Value>
  static std::vector<std::size_t> in_bytes(Counts counts) {
    std::vector<std::size_t> bytes(counts.begin(), counts.end());
    for (std::size_t& count : bytes) count *= sizeof(Value);
    return bytes;
  }

  virtual void reduce_bytes(std::span<std::byte> values, Scalar, Reduction) = 0;
  virtual void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Scalar) = 0;
  virtual void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine, Scalar) = 0;
  /// A GPU's ranks have none: their trainer knows no experts.
  virtual void exchange_bytes(std::span<const std::byte> mine, Counts to,
                              std::span<std::byte> theirs, Counts from);
  virtual void broadcast_bytes(std::span<std::byte> values, std::int64_t root) = 0;
  virtual void send_bytes(std::span<const std::byte> values, std::int64_t peer) = 0;
  virtual void receive_bytes(std::span<std::byte> values, std::int64_t peer) = 0;
};

/// The groups of one rank under a plan (workloads::groups). Groups of one rank exist as well: their
/// collectives copy. shard, replica: of hsdp, else null. pipeline: all stages of this rank's
/// column, rank in it = stage; its send and receive serve both directions. With virtual stages two
/// stages may be each other's next: then pipeline_backward, else null, has what goes back.
/// embedding: first and last stage, null on the others and where pipeline is 1. expert: the ranks
/// that share a layer's experts, expert_data: those with the same ones; of a model of experts.
struct Groups {
  std::unique_ptr<Communicator> world, tensor, data, shard, replica, pipeline, pipeline_backward,
      embedding, expert, expert_data;
};

/// Cuts the plan's groups out of `world`, whose size must be plan.ranks(); with `experts` theirs as
/// well. Collective.
Groups make_groups(std::unique_ptr<Communicator> world, const workloads::ParallelPlan& plan,
                   bool experts = false);

/// Runs `body` on `count` threads, each with its own communicator of all of them. A rank that
/// throws wakes all others with PeerLost, and so does one that lets a peer wait longer than
/// `limit`; the first cause is thrown to the caller once all have ended.
void run_ranks(std::int64_t count, const std::function<void(std::unique_ptr<Communicator>)>& body,
               Duration limit = to_duration(60.0));

}  // namespace stepcast::validate
