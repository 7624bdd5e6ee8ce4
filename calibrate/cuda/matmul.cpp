#include "calibrate/cuda/matmul.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

#include "calibrate/device/device.hpp"
#include "calibrate/kernels/check.hpp"

namespace stepcast::calibrate {
namespace {

constexpr int most_proposals = 8;

using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CublasLtFree>;

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, Value value) {
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(description, which, &value, sizeof(value)));
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
         Value value) {
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)));
}

cudaDataType_t cuda_type(Element element) {
  switch (element) {
    case Element::fp32:
      return CUDA_R_32F;
    case Element::bf16:
      return CUDA_R_16BF;
    case Element::fp16:
      return CUDA_R_16F;
    case Element::fp8:
      return CUDA_R_8F_E4M3;
  }
  throw BrokenPromise("an element type without a case");
}

cublasLtMatrixLayout_t make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  CUBLAS_TRY(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows));
  return layout;
}

Preference make_preference(std::uint32_t alignment) {
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
  Preference owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(matmul_workspace.value));
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, which, alignment);
  return owner;
}

}  // namespace

CublasLt make_cublas_lt() {
  cublasLtHandle_t handle = nullptr;
  CUBLAS_TRY(cublasLtCreate(&handle));
  return CublasLt(handle);
}

Matmul::Matmul(cublasLtContext* library, const MatmulShape& shape, const MatmulScales& scales)
    : library_(library), beta_(shape.accumulate ? 1.0F : 0.0F) {
  if (shape.layout != "NT" && shape.layout != "NN" && shape.layout != "TN")
    throw Unsupported("no such layout: " + shape.layout);
  if (shape.m < 1 || shape.n < 1 || shape.k < 1) throw Unsupported("an empty product");
  describe(shape, scales);
  ask(shape);
}

/// cuBLASLt means columns first, and a row-major matrix read that way is its transpose. So it is
/// asked for C^T = op(B)^T op(A)^T: B comes first, and n, m, k are its m, n, k.
///   NT: B is n x k in memory, read as k x n, so T;  A is m x k, read as k x m, so N
///   NN: B is k x n, read as n x k, so N;             A as above
///   TN: B as in NN;                                  A is k x m, read as m x k, so T
void Matmul::describe(const MatmulShape& s, const MatmulScales& scales) {
  const bool b_transposed = s.layout == "NT", a_transposed = s.layout == "TN";
  cublasLtMatmulDesc_t description = nullptr;
  CUBLAS_TRY(cublasLtMatmulDescCreate(
      &description, s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  description_.reset(description);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  const auto type = cuda_type(s.input);
  first_.reset(b_transposed ? make_layout(type, s.k, s.n) : make_layout(type, s.n, s.k));
  second_.reset(a_transposed ? make_layout(type, s.m, s.k) : make_layout(type, s.k, s.m));
  result_.reset(make_layout(cuda_type(s.output), s.n, s.m));
  if (s.input != Element::fp8) return;
  set(description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(scales.b));
  set(description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(scales.a));
}

void Matmul::ask(const MatmulShape& shape) {
  const Preference preference = make_preference(shape.alignment);
  std::array<cublasLtMatmulHeuristicResult_t, most_proposals> results{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library_, description_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
      preference.get(), most_proposals, results.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) CUBLAS_TRY(status);
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(found)))
    if (result.state == CUBLAS_STATUS_SUCCESS) proposals_.push_back(result.algo);
  if (proposals_.empty()) throw Unsupported("cuBLASLt has no kernel for this product");
}

void Matmul::launch(const MatmulOperands& t, void* workspace, cudaStream_t stream) const {
  const float one = 1.0F;
  CUBLAS_TRY(cublasLtMatmul(library_, description_.get(), &one, t.b, first_.get(), t.a,
                            second_.get(), &beta_, t.c, result_.get(), t.c, result_.get(),
                            &proposals_[taken_], workspace,
                            static_cast<std::size_t>(matmul_workspace.value), stream));
}

std::string cublas_version() {
  const std::size_t version = cublasLtGetVersion();  // 130100: 13.1.0
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace stepcast::calibrate
