// A group of ranks on a device whose lanes are queues: collectives and messages are called by the
// lane that was taken when they were asked for. Bytes are passed as such.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "validate/trainer/device/queue_lanes.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

class QueuedCommunicator final : public Communicator {
 public:
  /// `late`: collectives are told to the lanes as waiting for other ranks.
  QueuedCommunicator(std::unique_ptr<Communicator> done_by, QueueLanes& lanes, bool late)
      : inner_(std::move(done_by)), lanes_(lanes), late_(late) {}

  std::int64_t rank() const override { return inner_->rank(); }
  std::int64_t size() const override { return inner_->size(); }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    auto part = inner_->split(color);
    if (part == nullptr) return nullptr;
    return std::make_unique<QueuedCommunicator>(std::move(part), lanes_, late_);
  }

 private:
  template <class Real>
  static std::span<Real> numbers(std::span<std::byte> bytes) {
    return {reinterpret_cast<Real*>(bytes.data()), bytes.size() / sizeof(Real)};
  }
  template <class Real>
  static std::span<const Real> numbers(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const Real*>(bytes.data()), bytes.size() / sizeof(Real)};
  }
  template <class F>
  void put(Scalar scalar, F f) {
    const auto work = [scalar, f] {
      switch (scalar) {
        case Scalar::float32:
          return f(float{});
        case Scalar::bfloat16:
          return f(Bfloat16{});
        case Scalar::float16:
          return f(Half{});
        case Scalar::float64:
          return f(double{});
      }
    };
    lanes_.put(work, late_);
  }

  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    put(scalar, [=, this]<class Real>(Real) { inner_->all_reduce(numbers<Real>(values), how); });
  }
  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                    Scalar scalar) override {
    put(scalar, [=, this]<class Real>(Real) {
      inner_->all_gather(numbers<Real>(mine), numbers<Real>(all));
    });
  }
  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    put(scalar, [=, this]<class Real>(Real) {
      inner_->reduce_scatter(numbers<Real>(all), numbers<Real>(mine));
    });
  }
  void exchange_bytes(std::span<const std::byte> mine, Counts to, std::span<std::byte> theirs,
                      Counts from) override {
    lanes_.put(
        [this, mine, theirs, sent = std::vector(to.begin(), to.end()),
         received = std::vector(from.begin(), from.end())] {
          inner_->all_to_all(mine, sent, theirs, received);
        },
        late_);
  }
  void broadcast_bytes(std::span<std::byte>, std::int64_t) override {
    throw BrokenPromise("no broadcast in a step");
  }
  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    lanes_.put([=, this] { inner_->send(values, peer); });
  }
  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    lanes_.put([=, this] { inner_->receive(values, peer); }, true);
  }

  std::unique_ptr<Communicator> inner_;
  QueueLanes& lanes_;
  bool late_;
};

}  // namespace stepcast::validate
