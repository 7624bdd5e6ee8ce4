// The kernels of a layer of experts, as calibrate's host has them (calibrate/host/experts.hpp,
// which says their shapes). Spans point to the device's memory; work is put on the lane at hand, as
// that of kernels.hpp is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "calibrate/host/experts.hpp"

namespace stepcast::validate {

using calibrate::host::ExpertChoice;
using calibrate::host::GroupedSizes;
using calibrate::host::Indexes;
using calibrate::host::IndexesOut;

template <class Real>
class ExpertKernels {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  virtual ~ExpertKernels() = default;

  /// To the host, which waits for the lane at hand.
  virtual void read(IndexesOut host, Indexes device) = 0;

  virtual void choose(IndexesOut choice, IndexesOut row, IndexesOut counts, Out weights, In logits,
                      const ExpertChoice& how) = 0;
  virtual void choose_backward(Out dlogits, In dweights, In logits, Indexes choice, Indexes row,
                               const ExpertChoice& how) = 0;
  virtual void rows_of_tokens(Out rows, In x, Indexes row, std::int64_t width) = 0;
  virtual void sums_of_rows(Out y, In rows, Indexes row, std::int64_t width) = 0;
  virtual void sort_rows(Out to, In from, Indexes counts, std::int64_t experts, std::int64_t width,
                         bool back) = 0;
  virtual void grouped_gemm(Out c, In a, In b, Indexes counts, const GroupedSizes& sizes) = 0;
  virtual void activation(Out y, In gate, In up, In weights) = 0;
  virtual void activation_backward(Out dgate, Out dup, Out dweights, In dy, In gate, In up,
                                   In weights) = 0;
};

/// This core, Real being float or double.
template <class Real>
std::unique_ptr<ExpertKernels<Real>> make_host_expert_kernels();

}  // namespace stepcast::validate
