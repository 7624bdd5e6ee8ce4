// Matrix products on one core by OpenBLAS, all row-major; plain loops where the machine lacks it,
// which serve tests and are never timed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stepcast::calibrate::host {

/// C (m, n) = op(A) op(B). "NN": A (m, k), B (k, n); "NT": B stored (n, k); "TN": A stored (k, m).
struct GemmSizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout = "NT";
  bool accumulate = false;  // C += instead of C =
};

bool has_openblas();
std::string gemm_library();  // "OpenBLAS 0.3.21 ...", empty without
void gemm(std::span<float> c, std::span<const float> a, std::span<const float> b,
          const GemmSizes& sizes);
void gemm(std::span<double> c, std::span<const double> a, std::span<const double> b,
          const GemmSizes& sizes);

/// A matrix within a larger one: rows are `stride` elements apart.
template <class T>
struct Block {
  T* first = nullptr;
  std::int64_t stride = 0;
};

enum class Layout : std::uint8_t { nn, nt, tn };

/// c = alpha op(a) op(b) + beta c, c (m, n).
struct BlockProduct {
  Layout layout{};
  std::int64_t m = 0, n = 0, k = 0;
  double alpha = 1.0, beta = 0.0;
};
void multiply(Block<float> c, Block<const float> a, Block<const float> b, const BlockProduct& p);
void multiply(Block<double> c, Block<const double> a, Block<const double> b, const BlockProduct& p);

}  // namespace stepcast::calibrate::host
