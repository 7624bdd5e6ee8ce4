#include "calibrate/host/gemm.hpp"

#include "engine/check.hpp"

#ifdef STEPCAST_HAS_OPENBLAS
#include <cblas.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#endif

namespace stepcast::calibrate::host {
namespace {

#ifdef STEPCAST_HAS_OPENBLAS
/// Of address space: what each of OpenBLAS's threads asks for (0.3.21: 128 MiB, and a stack).
constexpr std::size_t room_of_thread = std::size_t{136} << 20;

std::size_t address_space_used() {
  char text[32] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const bool told = file >= 0 && read(file, text, sizeof text - 1) > 0;
  if (file >= 0) close(file);
  return told ? std::strtoul(text, nullptr, 10) * static_cast<std::size_t>(getpagesize()) : 0;
}

/// Under a limit that is too low OpenBLAS asks again and again for what it will not get, already
/// while it is loaded: this is called before that, and ends the program with a sentence.
void refuse_little_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto threads = static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)) + 1;
  const std::size_t wanted = address_space_used() + threads * room_of_thread;
  if (limit.rlim_cur >= wanted) return;
  char text[160];
  const int size = std::snprintf(text, sizeof text,
                                 "stepcast: out of memory: OpenBLAS wants an address space of %zu "
                                 "MiB, the limit is %zu MiB (ulimit -v)\n",
                                 wanted >> 20U, static_cast<std::size_t>(limit.rlim_cur) >> 20U);
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) _exit(2);
  _exit(1);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_openblas)() = refuse_little_room;

void blas(Block<float> c, Block<const float> a, Block<const float> b, const BlockProduct& p) {
  const auto i = [](std::int64_t size) { return static_cast<int>(size); };
  cblas_sgemm(CblasRowMajor, p.layout == Layout::tn ? CblasTrans : CblasNoTrans,
              p.layout == Layout::nt ? CblasTrans : CblasNoTrans, i(p.m), i(p.n), i(p.k),
              static_cast<float>(p.alpha), a.first, i(a.stride), b.first, i(b.stride),
              static_cast<float>(p.beta), c.first, i(c.stride));
}

void blas(Block<double> c, Block<const double> a, Block<const double> b, const BlockProduct& p) {
  const auto i = [](std::int64_t size) { return static_cast<int>(size); };
  cblas_dgemm(CblasRowMajor, p.layout == Layout::tn ? CblasTrans : CblasNoTrans,
              p.layout == Layout::nt ? CblasTrans : CblasNoTrans, i(p.m), i(p.n), i(p.k), p.alpha,
              a.first, i(a.stride), b.first, i(b.stride), p.beta, c.first, i(c.stride));
}

/// A rank is one core; said before the first product.
void use_one_thread() {
  static const bool told = (openblas_set_num_threads(1), true);
  static_cast<void>(told);
}
#else
void use_one_thread() {}

template <class T>
void blas(Block<T> c, Block<const T> a, Block<const T> b, const BlockProduct& p) {
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
#endif

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

#ifdef STEPCAST_HAS_OPENBLAS
bool has_openblas() { return true; }
std::string gemm_library() {
  use_one_thread();
  return std::string(openblas_get_config()) + " on " + openblas_get_corename();
}
#else
bool has_openblas() { return false; }
std::string gemm_library() { return {}; }
#endif

void multiply(Block<float> c, Block<const float> a, Block<const float> b, const BlockProduct& p) {
  use_one_thread();
  blas(c, a, b, p);
}

void multiply(Block<double> c, Block<const double> a, Block<const double> b,
              const BlockProduct& p) {
  use_one_thread();
  blas(c, a, b, p);
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
