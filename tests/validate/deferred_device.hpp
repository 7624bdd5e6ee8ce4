// A device whose lanes really run beside each other, as far as their waits allow: what is called is
// put off until the host waits, then done in an order that is drawn anew. A wait that is missing
// shows as a wrong number. Ranks of one group draw alike, or their collectives would cross.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "tests/validate/rounded_kernels.hpp"
#include "validate/trainer/device/rank_device.hpp"

namespace stepcast::validate {

class DeferredLanes final : public Lanes {
 public:
  /// Odd seeds draw an order of the lanes, and a lane does all that it may before the next has its
  /// turn: one runs far ahead of the others. Even ones draw a lane for each piece of work.
  explicit DeferredLanes(std::uint32_t seed) : runs_ahead_(seed % 2 == 1), draw_(seed) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::shuffle(order_, draw_);
  }

  /// Work that waits for another rank (a message) is done when there is no other, in the order of
  /// the calls: a core waits with all its lanes.
  void put(std::function<void()> work, bool waits_for_rank = false) {
    queues_[taken_].push_back({std::move(work), 0, waits_for_rank, count_++});
  }

  void take(workloads::Lane lane) override { taken_ = lane; }
  Mark mark() override {
    passed_.push_back(false);
    const auto mark = static_cast<Mark>(passed_.size() - 1);
    put([this, mark] { passed_[mark] = true; });
    return mark;
  }
  void wait(Mark mark) override { queues_[taken_].push_back({{}, mark, false, count_++}); }
  void synchronize() override {
    while (Queue* queue = next()) {
      const Entry entry = std::move(queue->front());
      queue->pop_front();
      if (entry.work) entry.work();
    }
  }
  void start() override {
    synchronize();
    passed_.clear();
  }
  Duration time_of(Mark) override { return {}; }
  bool timing_costs() const override { return true; }

 private:
  struct Entry {
    std::function<void()> work;  // or else
    Mark awaited = 0;
    bool waits_for_rank = false;
    std::int64_t number = 0;
  };
  using Queue = std::deque<Entry>;

  Queue* next() {
    std::vector<Queue*> ready, waiting;
    bool empty = true;
    for (const std::size_t lane : order_) {
      Queue& queue = queues_[lane];
      empty &= queue.empty();
      if (queue.empty()) continue;
      const Entry& first = queue.front();
      if (first.waits_for_rank)
        waiting.push_back(&queue);
      else if (first.work || passed_.at(first.awaited))
        ready.push_back(&queue);
    }
    if (empty) return nullptr;
    if (!ready.empty()) return ready[runs_ahead_ ? 0 : draw_() % ready.size()];
    if (waiting.empty()) throw BrokenPromise("lanes wait for each other in a circle");
    return *std::ranges::min_element(waiting, {},
                                     [](const Queue* queue) { return queue->front().number; });
  }

  std::array<Queue, workloads::num_lanes> queues_;
  std::array<std::size_t, workloads::num_lanes> order_{};
  bool runs_ahead_;
  std::vector<bool> passed_;
  workloads::Lane taken_ = workloads::compute;
  std::int64_t count_ = 0;
  std::mt19937 draw_;
};

template <class Real>
class DeferredKernels final : public Kernels<Real> {
 public:
  using typename Kernels<Real>::Out;
  using typename Kernels<Real>::In;
  using typename Kernels<Real>::WideOut;
  using typename Kernels<Real>::WideIn;
  using typename Kernels<Real>::Tokens;

  DeferredKernels(std::unique_ptr<Kernels<Real>> done_by, DeferredLanes& lanes)
      : inner_(std::move(done_by)), lanes_(lanes) {}

  Buffer<Real> allocate(std::size_t size) override { return inner_->allocate(size); }
  Buffer<float> allocate_wide(std::size_t size) override { return inner_->allocate_wide(size); }
  Buffer<Token> allocate_tokens(std::size_t size) override { return inner_->allocate_tokens(size); }
  Bytes allocated() const override { return inner_->allocated(); }
  void upload(WideOut to, WideIn from) override {
    put([=, this, kept = std::vector(from.begin(), from.end())] { inner_->upload(to, kept); });
  }
  void upload_tokens(std::span<Token> to, Tokens from) override {
    put([=, this, kept = std::vector(from.begin(), from.end())] {
      inner_->upload_tokens(to, kept);
    });
  }
  void download(WideOut to, WideIn from) override {
    lanes_.synchronize();
    inner_->download(to, from);
  }

  void gemm(Out c, In a, In b, const GemmSizes& s) override {
    put([=, this] { inner_->gemm(c, a, b, s); });
  }
  void attention_forward(Out o, WideOut lse, In q, In k, In v, const AttentionSizes& s) override {
    put([=, this] { inner_->attention_forward(o, lse, q, k, v, s); });
  }
  void attention_backward(Out dq, Out dk, Out dv, In dout, In o, WideIn lse, In q, In k, In v,
                          const AttentionSizes& s) override {
    put([=, this] { inner_->attention_backward(dq, dk, dv, dout, o, lse, q, k, v, s); });
  }
  void rmsnorm_forward(Out y, WideOut rstd, In x, In w) override {
    put([=, this] { inner_->rmsnorm_forward(y, rstd, x, w); });
  }
  void rmsnorm_backward(Out dx, Out dw, In dy, In x, In w, WideIn rstd) override {
    put([=, this] { inner_->rmsnorm_backward(dx, dw, dy, x, w, rstd); });
  }
  void rope(Out x, std::int64_t heads, bool backward) override {
    put([=, this] { inner_->rope(x, heads, backward); });
  }
  void swiglu_forward(Out y, In gate, In up) override {
    put([=, this] { inner_->swiglu_forward(y, gate, up); });
  }
  void swiglu_backward(Out dgate, Out dup, In dy, In gate, In up) override {
    put([=, this] { inner_->swiglu_backward(dgate, dup, dy, gate, up); });
  }
  void add(Out y, In a, In b) override {
    put([=, this] { inner_->add(y, a, b); });
  }
  void zero(Out x) override {
    put([=, this] { inner_->zero(x); });
  }
  void copies(std::span<const CopyPiece<Real, Real>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] { inner_->copies(kept); });
  }
  void copies_wide(std::span<const CopyPiece<float, float>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] { inner_->copies_wide(kept); });
  }
  void copies_widening(std::span<const CopyPiece<float, Real>> pieces) override {
    put([this, kept = std::vector(pieces.begin(), pieces.end())] {
      inner_->copies_widening(kept);
    });
  }
  void narrow(Out to, WideIn from) override {
    put([=, this] { inner_->narrow(to, from); });
  }
  void widen(WideOut to, In from) override {
    put([=, this] { inner_->widen(to, from); });
  }
  void accumulate(WideOut sum, In more) override {
    put([=, this] { inner_->accumulate(sum, more); });
  }
  void embedding_forward(Out y, In table, Tokens ids, const VocabularyPart& part) override {
    put([=, this] { inner_->embedding_forward(y, table, ids, part); });
  }
  void embedding_backward(Out dtable, In dy, Tokens ids, const VocabularyPart& part) override {
    put([=, this] { inner_->embedding_backward(dtable, dy, ids, part); });
  }
  void loss_forward(WideOut lse, WideOut target, In logits, Tokens targets,
                    const VocabularyPart& part) override {
    put([=, this] { inner_->loss_forward(lse, target, logits, targets, part); });
  }
  void lse_to_sums(WideOut sums, WideIn lse, WideIn most) override {
    put([=, this] { inner_->lse_to_sums(sums, lse, most); });
  }
  void sums_to_lse(WideOut lse, WideIn most, WideIn sums) override {
    put([=, this] { inner_->sums_to_lse(lse, most, sums); });
  }
  void add_loss(WideOut sum, WideIn lse, WideIn target) override {
    put([=, this] { inner_->add_loss(sum, lse, target); });
  }
  void loss_backward(Out logits, WideIn lse, Tokens targets, const VocabularyPart& part,
                     float scale) override {
    put([=, this] { inner_->loss_backward(logits, lse, targets, part, scale); });
  }
  void sums_of_squares(WideOut result, std::span<const WideIn> tensors) override {
    put([this, result, kept = std::vector(tensors.begin(), tensors.end())] {
      inner_->sums_of_squares(result, kept);
    });
  }
  void weighted_sum(WideOut result, WideIn values, WideIn weights) override {
    put([=, this] { inner_->weighted_sum(result, values, weights); });
  }
  void clip_factor(WideOut factor, WideIn squares, float largest) override {
    put([=, this] { inner_->clip_factor(factor, squares, largest); });
  }
  void scale_by(WideOut x, WideIn factor) override {
    put([=, this] { inner_->scale_by(x, factor); });
  }
  void unscale(WideOut x, float factor, WideOut found) override {
    put([=, this] { inner_->unscale(x, factor, found); });
  }
  void adamw(WideOut p, WideOut m, WideOut v, WideIn g, const AdamW& how) override {
    put([=, this] { inner_->adamw(p, m, v, g, how); });
  }

 private:
  void put(std::function<void()> work) { lanes_.put(std::move(work)); }

  std::unique_ptr<Kernels<Real>> inner_;
  DeferredLanes& lanes_;
};

/// Collectives of threads, put off like kernels. Bytes are passed as such.
class DeferredCommunicator final : public Communicator {
 public:
  /// `late`: ranks draw differently, being of several stages, and would wait for each other in a
  /// circle if a collective came before a message that is to be sent.
  DeferredCommunicator(std::unique_ptr<Communicator> done_by, DeferredLanes& lanes, bool late)
      : inner_(std::move(done_by)), lanes_(lanes), late_(late) {}

  std::int64_t rank() const override { return inner_->rank(); }
  std::int64_t size() const override { return inner_->size(); }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    auto part = inner_->split(color);
    if (part == nullptr) return nullptr;
    return std::make_unique<DeferredCommunicator>(std::move(part), lanes_, late_);
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
          throw BrokenPromise("no such numbers on a device");
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
  DeferredLanes& lanes_;
  bool late_;
};

/// `processes` stays usable beside it.
template <class Real>
RankDevice<Real> make_deferred_device(const TrainerJob& job, Communicator& processes,
                                      std::unique_ptr<Kernels<Real>> kernels, std::uint32_t seed) {
  auto lanes = std::make_unique<DeferredLanes>(seed);
  RankDevice<Real> device;
  device.groups = make_groups(
      std::make_unique<DeferredCommunicator>(processes.split(0), *lanes, job.plan.pipeline > 1),
      job.plan);
  device.kernels = std::make_unique<DeferredKernels<Real>>(std::move(kernels), *lanes);
  device.lanes = std::move(lanes);
  device.name = "deferred";
  return device;
}

}  // namespace stepcast::validate
