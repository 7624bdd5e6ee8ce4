#include "sim/kernels/alignment.hpp"

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

// Hopper's own kernels need rows of 16 bytes; with k = 588 in place of 592 cuBLAS takes one of
// Ampere's (s16816, align2): 130.56 against 36.96 us for 9477 x 1152 in bf16 on an H100, clocks
// locked (m87-labs/kestrel pull request 143, 2026-08). One shape, so a share that others may miss.
constexpr double hopper_to_ampere_kernel = 130.56 / 36.96;

// That kernel's instructions do half of what Hopper's do per SM and clock (1,024 against 2,048
// multiply-adds: 312 TFLOP/s / 108 / 1.41 GHz, 989 / 132 / 1.83), so on Ampere itself, and on Volta
// since cuBLAS 11, half of the loss is left. Rows of one or two elements and older libraries lose
// more; nobody has published by how much.
constexpr double instructions_apart = 2.0;

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

double misaligned_stretch(topology::Architecture architecture) {
  using enum topology::Architecture;
  switch (architecture) {
    case volta:
    case ampere:
      return hopper_to_ampere_kernel / instructions_apart;
    case hopper:
    case blackwell:
      return hopper_to_ampere_kernel;
    case host:
      return 1.0;
  }
  throw BrokenPromise("unknown architecture");
}

}  // namespace stepcast::sim
