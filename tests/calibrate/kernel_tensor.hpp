// A tensor as the emulated kernels see it, and its values in double. Included after
// emulated_cuda.hpp.
#pragma once

#include <random>

#include "calibrate/kernels/language.cuh"
#include "calibrate/reference/cuda_reference.hpp"

namespace stepcast::calibrate::cuda_kernels {

class Tensor {
 public:
  /// Unwritten: every element is NaN. `misaligned`: not at a multiple of 16 bytes.
  Tensor(ElementType type, std::int64_t elements, bool misaligned = false)
      : type_(type), elements_(elements), first_(misaligned ? bytes_of(type) : 0) {
    bytes_.assign(first_ + bytes_of(type) * static_cast<std::size_t>(elements), 0xff);
  }

  /// Uniform in [-1, 1], rounded to the type.
  static Tensor random(ElementType type, std::int64_t elements, std::uint64_t seed,
                       bool misaligned = false) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    std::vector<double> values(static_cast<std::size_t>(elements));
    for (double& value : values) value = uniform(engine);
    return of(type, values, misaligned);
  }

  static Tensor of(ElementType type, const std::vector<double>& values, bool misaligned = false) {
    Tensor tensor(type, static_cast<std::int64_t>(values.size()), misaligned);
    with_type(type, [&](auto kind) {
      auto* to = static_cast<decltype(kind)*>(tensor.data());
      for (std::size_t i = 0; i < values.size(); ++i) assign(to[i], static_cast<float>(values[i]));
    });
    return tensor;
  }

  void* data() { return bytes_.data() + first_; }
  float* floats() { return static_cast<float*>(data()); }

  reference::Row values() const {
    reference::Row row;
    with_type(type_, [&](auto kind) {
      const auto* from = reinterpret_cast<const decltype(kind)*>(bytes_.data() + first_);
      for (std::int64_t i = 0; i < elements_; ++i) row.push_back(to_float(from[i]));
    });
    return row;
  }

 private:
  ElementType type_;
  std::int64_t elements_;
  std::size_t first_;
  std::vector<unsigned char> bytes_;
};

/// Largest error that rounding to the type explains: a few units of its last place.
inline double tolerance_of(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return 1.0 / 128;
    case ElementType::fp16:
      return 1.0 / 1024;
    case ElementType::fp32:
      return 1e-5;
  }
  return 0;
}

}  // namespace stepcast::calibrate::cuda_kernels
