// OpenBLAS, loaded by the first who asks for it: what measures no host starts without its 36 MB,
// and a machine without it does everything else. C's interface to BLAS with sizes of 32 bits.
#pragma once

namespace stepcast::calibrate::host {

enum class BlasOrder : int { rows = 101 };  // cblas.h
enum class BlasTranspose : int { no = 111, yes = 112 };

template <class T>
using BlasProduct = void (*)(BlasOrder order, BlasTranspose a_is, BlasTranspose b_is, int m, int n,
                             int k, T alpha, const T* a, int a_stride, const T* b, int b_stride,
                             T beta, T* c, int c_stride);

struct OpenBlas {
  BlasProduct<float> sgemm = nullptr;
  BlasProduct<double> dgemm = nullptr;
  char* (*config)() = nullptr;
  char* (*core_name)() = nullptr;
};

/// Told to use one thread, as a rank is one core; nullptr where the machine has no OpenBLAS. Throws
/// InputError where the limit on the address space is too low for it.
const OpenBlas* openblas();

}  // namespace stepcast::calibrate::host
