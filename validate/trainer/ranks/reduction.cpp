#include "validate/trainer/ranks/reduction.hpp"

#include <algorithm>
#include <cstring>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

template <class Real>
Real number_at(std::span<const std::byte> bytes, std::size_t index) {
  Real number;
  std::memcpy(&number, bytes.data() + index * sizeof(Real), sizeof(Real));
  return number;
}

float wide(float x) { return x; }
double wide(double x) { return x; }
float wide(Bfloat16 x) { return to_float(x); }
float wide(Half x) { return to_float(x); }

template <class Real, class From>
Real narrow(From x) {
  if constexpr (is_mixed<Real>)
    return rounded<Real>(x);
  else
    return x;
}

template <class Real>
void reduce_numbers(std::span<const std::span<const std::byte>> parts, std::span<std::byte> into,
                    Reduction how) {
  for (std::size_t i = 0; i < into.size() / sizeof(Real); ++i) {
    Wide<Real> sum = wide(number_at<Real>(parts[0], i));
    for (const auto& part : parts.subspan(1)) {
      const Wide<Real> more = wide(number_at<Real>(part, i));
      sum = how == Reduction::sum ? sum + more : std::max(sum, more);
    }
    const Real result = narrow<Real>(sum);
    std::memcpy(into.data() + i * sizeof(Real), &result, sizeof(Real));
  }
}

}  // namespace

void reduce(std::span<const std::span<const std::byte>> parts, std::span<std::byte> into,
            Scalar scalar, Reduction how) {
  for (const auto& part : parts)
    expects(part.size() == into.size(), "ranks call a collective with equal lengths");
  switch (scalar) {
    case Scalar::float32:
      return reduce_numbers<float>(parts, into, how);
    case Scalar::float64:
      return reduce_numbers<double>(parts, into, how);
    case Scalar::bfloat16:
      return reduce_numbers<Bfloat16>(parts, into, how);
    case Scalar::float16:
      return reduce_numbers<Half>(parts, into, how);
  }
}

}  // namespace stepcast::validate
