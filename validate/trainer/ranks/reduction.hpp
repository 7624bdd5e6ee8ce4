// Sums and maxima of the same numbers on several ranks, given as bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

constexpr std::size_t size_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::float64:
      return 8;
    case Scalar::float32:
      return 4;
    case Scalar::bfloat16:
    case Scalar::float16:
      return 2;
  }
  return 0;
}

/// `into` = all parts, combined in their order; numbers of 16 bits in fp32, rounded once. `into`
/// may be one of them.
void reduce(std::span<const std::span<const std::byte>> parts, std::span<std::byte> into,
            Scalar scalar, Reduction how);

}  // namespace stepcast::validate
