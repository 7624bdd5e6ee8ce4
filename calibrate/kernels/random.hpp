// Random inputs made on the device and again, value by value, on the host: element i of a tensor is
// a hash of (seed, i), uniform in [-1, 1). So a check needs no copy of the inputs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

namespace stepcast::calibrate {

enum class Element : std::uint8_t { fp32, bf16, fp16, fp8 };  // fp8: e4m3

/// "tf32" is stored as fp32. Throws Unsupported for an unknown dtype.
Element element_of(std::string_view dtype);
std::int64_t size_of(Element);

/// splitmix64 (Steele, Lea, Flood 2014) of the index, its top 24 bits: exact in a float.
constexpr float random_value(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xD1B54A32D192ED03ULL + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  const auto top = static_cast<std::int32_t>(z >> 40) - (1 << 23);
  return static_cast<float>(top) * (1.0F / (1 << 23));
}

/// random_value as the device holds it: rounded to the element's type.
double stored_value(std::uint64_t seed, std::uint64_t index, Element);
/// Element `index` of a tensor of that type, in host memory, as a number.
double read_element(const void* tensor, std::int64_t index, Element);

/// What is in a tensor: uniform in middle -+ half.
struct Range {
  float middle = 0, half = 1;
};
/// tensor[i] = middle + half * random_value(seed, i) for i < count.
void fill_random(void* tensor, Element, std::int64_t count, std::uint64_t seed, cudaStream_t,
                 Range range = {});

}  // namespace stepcast::calibrate
