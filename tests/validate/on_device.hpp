// Numbers on the device of the trainer's kernels under test and back, and how far results may be
// from those of the host.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "validate/trainer/device/kernels.hpp"

namespace stepcast::validate {

using Floats = std::vector<float>;

/// Of 16-bit results: a unit of the last place of the largest.
template <class Real>
constexpr double unit_of = std::is_same_v<Real, Bfloat16> ? 1.0 / 128 : 1.0 / 1024;

/// Largest difference over the largest value wanted.
inline double relative_error(const Floats& got, const Floats& wanted) {
  REQUIRE(got.size() == wanted.size());
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{got[i]} - double{wanted[i]}));
    largest = std::max(largest, std::abs(double{wanted[i]}));
  }
  return largest > 0.0 ? difference / largest : difference;
}

inline Floats uniform(std::size_t size, std::uint64_t seed, float most = 1.0F) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> between(-most, most);
  Floats result(size);
  for (float& x : result) x = between(random);
  return result;
}

/// What of these numbers 16 bits hold.
template <class Real>
Floats as_rounded(Floats x) {
  for (float& value : x) value = to_float(rounded<Real>(value));
  return x;
}

/// The kernels under test and how numbers get to their device and back.
template <class Real>
class OnDevice {
 public:
  explicit OnDevice(std::unique_ptr<Kernels<Real>> kernels) : kernels_(std::move(kernels)) {}
  Kernels<Real>* operator->() { return kernels_.get(); }

  Buffer<float> wide(const Floats& x) {
    Buffer<float> buffer = kernels_->allocate_wide(x.size());
    kernels_->upload(buffer.all(), x);
    return buffer;
  }
  /// The numbers are those that 16 bits hold. `offset`: the pointer is that many elements off.
  Buffer<Real> numbers(const Floats& x, std::size_t offset = 0) {
    Buffer<Real> buffer = kernels_->allocate(x.size() + offset);
    const Buffer<float> there = wide(x);
    kernels_->narrow(buffer.part(offset, x.size()), there.all());
    return buffer;
  }
  Buffer<Token> tokens(const std::vector<Token>& ids) {
    Buffer<Token> buffer = kernels_->allocate_tokens(ids.size());
    kernels_->upload_tokens(buffer.all(), ids);
    return buffer;
  }
  Floats read(std::span<const float> x) {
    Floats result(x.size());
    kernels_->download(result, x);
    return result;
  }
  Floats read(std::span<const Real> x) {
    Buffer<float> there = kernels_->allocate_wide(x.size());
    kernels_->widen(there.all(), x);
    return read(std::as_const(there).all());
  }
  template <class Number>
  Floats read(const Buffer<Number>& x) {
    return read(x.all());
  }

 private:
  std::unique_ptr<Kernels<Real>> kernels_;
};

/// Makes the kernels under test, for sequences of this length and heads of this dimension.
template <class Real>
using MakeKernels = std::unique_ptr<Kernels<Real>> (*)(std::int64_t sequence,
                                                       std::int64_t head_dim);

}  // namespace stepcast::validate
