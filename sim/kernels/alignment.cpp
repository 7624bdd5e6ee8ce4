#include "sim/kernels/alignment.hpp"

namespace stepcast::sim {
namespace {

std::int64_t elements_of_16_bytes(workloads::Dtype dtype) {
  using enum workloads::Dtype;
  if (dtype == fp16 || dtype == bf16) return 8;
  return dtype == fp8 ? 16 : 1;
}

}  // namespace

bool rows_are_aligned(std::int64_t m, std::int64_t n, std::int64_t k, std::string_view layout,
                      workloads::Dtype dtype) {
  const std::int64_t whole = elements_of_16_bytes(dtype);
  const std::int64_t other = layout == "TN" ? m : k;
  return n % whole == 0 && other % whole == 0;
}

}  // namespace stepcast::sim
