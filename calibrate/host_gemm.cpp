#include "calibrate/host_gemm.hpp"

#include "calibrate/device.hpp"
#include "engine/check.hpp"

#ifdef STEPCAST_HAS_OPENBLAS
#include <cblas.h>
#endif

namespace stepcast::calibrate::host {

#ifdef STEPCAST_HAS_OPENBLAS
namespace {

struct BlasCall {
  CBLAS_TRANSPOSE a, b;
  int m, n, k, lda, ldb;
};

BlasCall blas_call(const GemmSizes& s, std::size_t c, std::size_t a, std::size_t b) {
  expects(s.layout == "NN" || s.layout == "NT" || s.layout == "TN", "layout NN, NT or TN");
  expects(s.m > 0 && s.n > 0 && s.k > 0, "sizes above zero");
  expects(static_cast<std::size_t>(s.m * s.n) == c && static_cast<std::size_t>(s.m * s.k) == a &&
              static_cast<std::size_t>(s.k * s.n) == b,
          "matrices of the product's sizes");
  const bool ta = s.layout[0] == 'T', tb = s.layout[1] == 'T';
  const auto [m, n, k] =
      std::tuple(static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k));
  openblas_set_num_threads(1);  // a rank is one core
  return {ta ? CblasTrans : CblasNoTrans,
          tb ? CblasTrans : CblasNoTrans,
          m,
          n,
          k,
          ta ? m : k,
          tb ? k : n};
}

}  // namespace

bool has_gemm() { return true; }

std::string gemm_library() {
  openblas_set_num_threads(1);
  return std::string(openblas_get_config()) + " on " + openblas_get_corename();
}

void gemm(std::span<float> c, std::span<const float> a, std::span<const float> b,
          const GemmSizes& s) {
  const BlasCall call = blas_call(s, c.size(), a.size(), b.size());
  cblas_sgemm(CblasRowMajor, call.a, call.b, call.m, call.n, call.k, 1.0F, a.data(), call.lda,
              b.data(), call.ldb, s.accumulate ? 1.0F : 0.0F, c.data(), call.n);
}

void gemm(std::span<double> c, std::span<const double> a, std::span<const double> b,
          const GemmSizes& s) {
  const BlasCall call = blas_call(s, c.size(), a.size(), b.size());
  cblas_dgemm(CblasRowMajor, call.a, call.b, call.m, call.n, call.k, 1.0, a.data(), call.lda,
              b.data(), call.ldb, s.accumulate ? 1.0 : 0.0, c.data(), call.n);
}
#else
bool has_gemm() { return false; }
std::string gemm_library() { return {}; }
void gemm(std::span<float>, std::span<const float>, std::span<const float>, const GemmSizes&) {
  throw Unsupported("built without OpenBLAS");
}
void gemm(std::span<double>, std::span<const double>, std::span<const double>, const GemmSizes&) {
  throw Unsupported("built without OpenBLAS");
}
#endif

}  // namespace stepcast::calibrate::host
