// One matrix product by cuBLASLt, as calibrate times it and the trainer calls it: row-major, summed
// in fp32, with workspace. What is taken unless told otherwise is the library's first proposal: the
// rows that the tables call "heuristic", which are the default.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/kernels/random.hpp"
#include "engine/units.hpp"

namespace stepcast::calibrate {

/// 32 MiB, what PyTorch gives cuBLASLt on Hopper.
constexpr Bytes matmul_workspace = 32_MiB;

struct CublasLtFree {
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
  void operator()(cublasLtMatmulDescOpaque_t* d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayoutOpaque_t* l) const { cublasLtMatrixLayoutDestroy(l); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* p) const { cublasLtMatmulPreferenceDestroy(p); }
};
using CublasLt = std::unique_ptr<cublasLtContext, CublasLtFree>;
CublasLt make_cublas_lt();

/// C (m, n) = op(A) op(B). "NN": A (m, k), B (k, n); "NT": B stored (n, k); "TN": A stored (k, m).
struct MatmulShape {
  Element input{}, output{};
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout = "NT";
  bool accumulate = false;        // C += instead of C =
  bool tf32 = false;              // of fp32
  std::uint32_t alignment = 256;  // of all pointers, in bytes: a power of two

  auto operator<=>(const MatmulShape&) const = default;
};

/// What fp8 operands are multiplied by; on the device.
struct MatmulScales {
  const float *a = nullptr, *b = nullptr;
};

struct MatmulOperands {
  void* c = nullptr;
  const void *a = nullptr, *b = nullptr;
};

class Matmul {
 public:
  /// Throws Unsupported where the library has no kernel for it. `library` outlives this.
  Matmul(cublasLtContext* library, const MatmulShape& shape, const MatmulScales& scales = {});

  /// Eight at most, those that the library takes for the fastest first.
  std::size_t num_proposals() const { return proposals_.size(); }
  /// From here on; 0 at first.
  void take(std::size_t proposal) { taken_ = proposal; }

  /// `workspace`: matmul_workspace bytes that nothing else on the device uses meanwhile.
  void launch(const MatmulOperands& operands, void* workspace, cudaStream_t stream) const;

 private:
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, CublasLtFree>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CublasLtFree>;

  void describe(const MatmulShape& shape, const MatmulScales& scales);
  void ask(const MatmulShape& shape);

  cublasLtContext* library_;
  float beta_;
  Description description_;
  Layout first_, second_, result_;  // cuBLASLt's A, B and C: see describe()
  std::vector<cublasLtMatmulAlgo_t> proposals_;
  std::size_t taken_ = 0;
};

/// "cuBLASLt 13.1.0"
std::string cublas_version();

}  // namespace stepcast::calibrate
