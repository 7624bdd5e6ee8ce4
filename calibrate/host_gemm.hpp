// Matrix products on one core by OpenBLAS: C (m, n) = op(A) op(B), all row-major. "NN": A (m, k),
// B (k, n); "NT": B stored (n, k); "TN": A stored (k, m). Not there where OpenBLAS was not found.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stepcast::calibrate::host {

struct GemmSizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout = "NT";
  bool accumulate = false;  // C += instead of C =
};

/// Whether this program was built with OpenBLAS; gemm() throws Unsupported without.
bool has_gemm();
std::string gemm_library();  // "OpenBLAS 0.3.21 ...", empty without
void gemm(std::span<float> c, std::span<const float> a, std::span<const float> b,
          const GemmSizes& sizes);
void gemm(std::span<double> c, std::span<const double> a, std::span<const double> b,
          const GemmSizes& sizes);

}  // namespace stepcast::calibrate::host
