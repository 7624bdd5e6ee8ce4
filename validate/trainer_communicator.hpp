// Who a rank of the trainer talks to: collectives and messages of one group of ranks, over threads
// of this process (trainer_threads.hpp) or MPI (trainer_mpi.hpp). Blocking calls in program order,
// as a processor core has no streams. Knows no model and no plan but the groups it cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "engine/units.hpp"
#include "workloads/plan.hpp"

namespace stepcast::validate {

enum class Reduction : std::uint8_t { sum, max };
enum class Scalar : std::uint8_t { float32, float64 };

/// A peer is gone, or did not answer in time: the step cannot go on, and this rank is to end.
struct PeerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All ranks of a group call the same collectives in the same order with equal lengths. Overloads
/// for double serve the float64 checks.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// In place, over all ranks.
  void all_reduce(std::span<float> values, Reduction how = Reduction::sum) {
    reduce_bytes(std::as_writable_bytes(values), Scalar::float32, how);
  }
  void all_reduce(std::span<double> values, Reduction how = Reduction::sum) {
    reduce_bytes(std::as_writable_bytes(values), Scalar::float64, how);
  }
  /// all = the ranks' `mine`, by rank: all.size() == size() * mine.size(). They may not overlap.
  void all_gather(std::span<const float> mine, std::span<float> all) {
    gather_bytes(std::as_bytes(mine), std::as_writable_bytes(all), Scalar::float32);
  }
  void all_gather(std::span<const double> mine, std::span<double> all) {
    gather_bytes(std::as_bytes(mine), std::as_writable_bytes(all), Scalar::float64);
  }
  /// mine = this rank's part of the sum over ranks of `all`. They may not overlap.
  void reduce_scatter(std::span<const float> all, std::span<float> mine) {
    scatter_bytes(std::as_bytes(all), std::as_writable_bytes(mine), Scalar::float32);
  }
  void reduce_scatter(std::span<const double> all, std::span<double> mine) {
    scatter_bytes(std::as_bytes(all), std::as_writable_bytes(mine), Scalar::float64);
  }
  void broadcast(std::span<float> values, std::int64_t root) {
    broadcast_bytes(std::as_writable_bytes(values), root);
  }
  void broadcast(std::span<double> values, std::int64_t root) {
    broadcast_bytes(std::as_writable_bytes(values), root);
  }
  /// Returns as soon as `values` may be changed; the message travels behind, so that two stages
  /// that send to each other do not wait for each other. Messages between two ranks keep their
  /// order.
  void send(std::span<const float> values, std::int64_t peer) {
    send_bytes(std::as_bytes(values), peer);
  }
  void send(std::span<const double> values, std::int64_t peer) {
    send_bytes(std::as_bytes(values), peer);
  }
  void receive(std::span<float> values, std::int64_t peer) {
    receive_bytes(std::as_writable_bytes(values), peer);
  }
  void receive(std::span<double> values, std::int64_t peer) {
    receive_bytes(std::as_writable_bytes(values), peer);
  }
  virtual void barrier() = 0;

  /// The ranks of this group that give the same color, in the order of this group; null for a rank
  /// without one. A collective call of the whole group.
  virtual std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) = 0;

 private:
  virtual void reduce_bytes(std::span<std::byte> values, Scalar, Reduction) = 0;
  virtual void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Scalar) = 0;
  virtual void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine, Scalar) = 0;
  virtual void broadcast_bytes(std::span<std::byte> values, std::int64_t root) = 0;
  virtual void send_bytes(std::span<const std::byte> values, std::int64_t peer) = 0;
  virtual void receive_bytes(std::span<std::byte> values, std::int64_t peer) = 0;
};

/// The groups of one rank under a plan (workloads::groups). Groups of one rank exist as well: their
/// collectives copy. pipeline: all stages of this rank's column, rank in it = stage; its send and
/// receive serve both directions. embedding: first and last stage, null on the others and where
/// pipeline is 1.
struct Groups {
  std::unique_ptr<Communicator> world, tensor, data, pipeline, embedding;
};

/// Cuts the plan's groups out of `world`, whose size must be plan.ranks(). Collective.
Groups make_groups(std::unique_ptr<Communicator> world, const workloads::ParallelPlan& plan);

/// Runs `body` on `count` threads, each with its own communicator of all of them. A rank that
/// throws wakes all others with PeerLost, and so does one that lets a peer wait longer than
/// `limit`; the first cause is thrown to the caller once all have ended.
void run_ranks(std::int64_t count, const std::function<void(std::unique_ptr<Communicator>)>& body,
               Duration limit = to_duration(60.0));

}  // namespace stepcast::validate
