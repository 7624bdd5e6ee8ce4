#include "calibrate/host/gemm.hpp"

#include "calibrate/host/openblas.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

int blas_size(std::int64_t size) { return static_cast<int>(size); }
BlasTranspose transposed(bool is) { return is ? BlasTranspose::yes : BlasTranspose::no; }

template <class T, class Call>
void blas(Call call, Block<T> c, Block<const T> a, Block<const T> b, const BlockProduct& p) {
  call(BlasOrder::rows, transposed(p.layout == Layout::tn), transposed(p.layout == Layout::nt),
       blas_size(p.m), blas_size(p.n), blas_size(p.k), static_cast<T>(p.alpha), a.first,
       blas_size(a.stride), b.first, blas_size(b.stride), static_cast<T>(p.beta), c.first,
       blas_size(c.stride));
}

template <class T>
void loops(Block<T> c, Block<const T> a, Block<const T> b, const BlockProduct& p) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum{};
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += a.first[p.layout == Layout::tn ? l * a.stride + i : i * a.stride + l] *
               b.first[p.layout == Layout::nt ? j * b.stride + l : l * b.stride + j];
      T& out = c.first[i * c.stride + j];
      out = static_cast<T>(p.alpha) * sum + (p.beta == 0.0 ? T{} : static_cast<T>(p.beta) * out);
    }
}

template <class T>
void whole(std::span<T> c, std::span<const T> a, std::span<const T> b, const GemmSizes& s) {
  expects(s.layout == "NN" || s.layout == "NT" || s.layout == "TN", "layout NN, NT or TN");
  expects(s.m > 0 && s.n > 0 && s.k > 0, "sizes above zero");
  expects(static_cast<std::size_t>(s.m * s.n) == c.size() &&
              static_cast<std::size_t>(s.m * s.k) == a.size() &&
              static_cast<std::size_t>(s.k * s.n) == b.size(),
          "matrices of the product's sizes");
  const bool ta = s.layout[0] == 'T', tb = s.layout[1] == 'T';
  multiply(Block<T>{c.data(), s.n}, Block<const T>{a.data(), ta ? s.m : s.k},
           Block<const T>{b.data(), tb ? s.k : s.n},
           {.layout = ta ? Layout::tn : (tb ? Layout::nt : Layout::nn),
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .beta = s.accumulate ? 1.0 : 0.0});
}

}  // namespace

bool has_openblas() { return openblas() != nullptr; }

std::string gemm_library() {
  const OpenBlas* library = openblas();
  if (library == nullptr) return {};
  return std::string(library->config()) + " on " + library->core_name();
}

void multiply(Block<float> c, Block<const float> a, Block<const float> b, const BlockProduct& p) {
  if (const OpenBlas* library = openblas()) return blas(library->sgemm, c, a, b, p);
  loops(c, a, b, p);
}

void multiply(Block<double> c, Block<const double> a, Block<const double> b,
              const BlockProduct& p) {
  if (const OpenBlas* library = openblas()) return blas(library->dgemm, c, a, b, p);
  loops(c, a, b, p);
}

void gemm(std::span<float> c, std::span<const float> a, std::span<const float> b,
          const GemmSizes& sizes) {
  whole(c, a, b, sizes);
}

void gemm(std::span<double> c, std::span<const double> a, std::span<const double> b,
          const GemmSizes& sizes) {
  whole(c, a, b, sizes);
}

}  // namespace stepcast::calibrate::host
