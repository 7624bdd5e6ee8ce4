// The kernels of experts on a device whose lanes are queues, as queued_kernels.hpp has the others.
#pragma once

#include <cstdint>
#include <span>

#include "validate/trainer/device/expert_kernels.hpp"
#include "validate/trainer/device/queue_lanes.hpp"

namespace stepcast::validate {

template <class Real>
class QueuedExpertKernels final : public ExpertKernels<Real> {
 public:
  using typename ExpertKernels<Real>::Out;
  using typename ExpertKernels<Real>::In;

  /// `done_by` outlives it.
  QueuedExpertKernels(ExpertKernels<Real>& done_by, QueueLanes& lanes)
      : inner_(done_by), lanes_(lanes) {}

  void read(IndexesOut host, Indexes device) override {
    lanes_.wait_on_host(lanes_.mark());
    inner_.read(host, device);
  }
  void choose(IndexesOut choice, IndexesOut row, IndexesOut counts, Out weights, In logits,
              const ExpertChoice& how) override {
    lanes_.put([=, this] { inner_.choose(choice, row, counts, weights, logits, how); });
  }
  void choose_backward(Out dlogits, In dweights, In logits, Indexes choice, Indexes row,
                       const ExpertChoice& how) override {
    lanes_.put([=, this] { inner_.choose_backward(dlogits, dweights, logits, choice, row, how); });
  }
  void rows_of_tokens(Out rows, In x, Indexes row, std::int64_t width) override {
    lanes_.put([=, this] { inner_.rows_of_tokens(rows, x, row, width); });
  }
  void sums_of_rows(Out y, In rows, Indexes row, std::int64_t width) override {
    lanes_.put([=, this] { inner_.sums_of_rows(y, rows, row, width); });
  }
  void sort_rows(Out to, In from, Indexes counts, std::int64_t experts, std::int64_t width,
                 bool back) override {
    lanes_.put([=, this] { inner_.sort_rows(to, from, counts, experts, width, back); });
  }
  void grouped_gemm(Out c, In a, In b, Indexes counts, const GroupedSizes& sizes) override {
    lanes_.put([=, this] { inner_.grouped_gemm(c, a, b, counts, sizes); });
  }
  void activation(Out y, In gate, In up, In weights) override {
    lanes_.put([=, this] { inner_.activation(y, gate, up, weights); });
  }
  void activation_backward(Out dgate, Out dup, Out dweights, In dy, In gate, In up,
                           In weights) override {
    lanes_.put(
        [=, this] { inner_.activation_backward(dgate, dup, dweights, dy, gate, up, weights); });
  }

 private:
  ExpertKernels<Real>& inner_;
  QueueLanes& lanes_;
};

}  // namespace stepcast::validate
