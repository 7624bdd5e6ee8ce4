#include <algorithm>

#include "validate/trainer/device/expert_kernels.hpp"

namespace stepcast::validate {
namespace {

template <class Real>
class HostExpertKernels final : public ExpertKernels<Real> {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;

  void read(IndexesOut to, Indexes device) override { std::ranges::copy(device, to.begin()); }
  void choose(IndexesOut choice, IndexesOut row, IndexesOut counts, Out weights, In logits,
              const ExpertChoice& how) override {
    calibrate::host::choose_experts<Real>(choice, row, counts, weights, logits, how);
  }
  void choose_backward(Out dlogits, In dweights, In logits, Indexes choice, Indexes row,
                       const ExpertChoice& how) override {
    calibrate::host::choose_experts_backward<Real>(dlogits, dweights, logits, choice, row, how);
  }
  void rows_of_tokens(Out rows, In x, Indexes row, std::int64_t width) override {
    calibrate::host::rows_of_tokens<Real>(rows, x, row, width);
  }
  void sums_of_rows(Out y, In rows, Indexes row, std::int64_t width) override {
    calibrate::host::sums_of_rows<Real>(y, rows, row, width);
  }
  void sort_rows(Out to, In from, Indexes counts, std::int64_t experts, std::int64_t width,
                 bool back) override {
    calibrate::host::sort_rows<Real>(to, from, counts, experts, width, back);
  }
  void grouped_gemm(Out c, In a, In b, Indexes counts, const GroupedSizes& sizes) override {
    calibrate::host::grouped_gemm<Real>(c, a, b, counts, sizes);
  }
  void activation(Out y, In gate, In up, In weights) override {
    calibrate::host::weighted_silu_mul_forward<Real>(y, gate, up, weights);
  }
  void activation_backward(Out dgate, Out dup, Out dweights, In dy, In gate, In up,
                           In weights) override {
    calibrate::host::weighted_silu_mul_backward<Real>(dgate, dup, dweights, dy, gate, up, weights);
  }
};

}  // namespace

template <class Real>
std::unique_ptr<ExpertKernels<Real>> make_host_expert_kernels() {
  return std::make_unique<HostExpertKernels<Real>>();
}

template std::unique_ptr<ExpertKernels<float>> make_host_expert_kernels();
template std::unique_ptr<ExpertKernels<double>> make_host_expert_kernels();

}  // namespace stepcast::validate
