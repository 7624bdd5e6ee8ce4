// A kernel of ours as data: its tensors, how it is launched on them, and what must come out. From
// it a task is made that is timed at full size and checked on some of its rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibrate/cuda/task.hpp"
#include "calibrate/kernels/random.hpp"

namespace stepcast::calibrate {

struct Tensor {
  enum class Content : std::uint8_t {
    random,    // in [-1, 1)
    positive,  // in (0, 1): second moments
    ids,       // int32 below `num_ids`
    bytes,     // `raw` as it stands
    result,    // poisoned
  };
  Element element{};
  std::int64_t count = 0;
  Content content = Content::random;
  std::int64_t num_ids = 0;
  bool shared = false;  // one for all sets: an embedding's table
  std::vector<std::byte> raw{};

  std::int64_t size() const;
};

using Pointers = std::span<std::byte* const>;
using Doubles = std::vector<double>;

/// A tensor, by its index, and what it must hold.
struct Wanted {
  std::size_t tensor;
  Doubles values;
};

struct Recipe {
  std::vector<Tensor> tensors;
  std::function<void(Pointers, cudaStream_t)> prepare{};  // once, after filling: row sums, ...
  std::function<void(Pointers, cudaStream_t)> launch{};
  /// From the tensors as filled and prepared.
  std::function<std::vector<Wanted>(const std::vector<Doubles>&)> reference{};
  double flops = 0;
  Bytes bytes{};  // least traffic
};

/// Times `timed` and checks `checked`: the same kernel, where `timed` is too large for float64 on a
/// CPU, with fewer rows of the same width.
std::unique_ptr<CudaTask> make_cuda_recipe(CudaContext&, Recipe timed, Recipe checked,
                                           double tolerance, std::uint64_t seed);

/// Copies to the device, and waits for it.
void upload(std::byte* device, const void* host, std::size_t size);

/// Rounding of results of that type, times four for the largest of many.
double tolerance_of(Element element);

}  // namespace stepcast::calibrate
