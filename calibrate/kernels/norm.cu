// RMSNorm and LayerNorm, forward and backward, one block a row. A row is read once from memory and
// again from the cache, where it still lies. With x^ = (x - mean) * inverse, n the width and
// g = dy * weight:
//   dx = inverse * (g - mean of g - x^ * mean of (g x^)), RMSNorm: without the means of x and g;
//   dweight = sum over rows of dy x^, dbias = sum over rows of dy.
#include "calibrate/kernels/language.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kMaxThreads = 512;

/// kLayer: LayerNorm, else RMSNorm.
template <bool kLayer, int kSize, class Element>
__global__ void __launch_bounds__(kMaxThreads)
    norm_forward(int width, const Element* x, const Element* weight, const Element* bias,
                 float epsilon, Element* y, float* means, float* inverses) {
  const std::int64_t row = blockIdx.x;
  x += row * width;
  y += row * width;
  const int first = static_cast<int>(threadIdx.x) * kSize;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  const float per_element = 1.0F / static_cast<float>(width);

  float mean = 0;
  if constexpr (kLayer) {
    float sum = 0;
    for (int i = first; i < width; i += stride) {
      const auto pack = load<kSize>(x + i);
#pragma unroll
      for (int j = 0; j < kSize; ++j) sum += to_float(pack.element[j]);
    }
    mean = block_sum(sum) * per_element;
  }
  float squares = 0;  // of the distances from the mean: no cancellation
  for (int i = first; i < width; i += stride) {
    const auto pack = load<kSize>(x + i);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float distance = to_float(pack.element[j]) - mean;
      squares += distance * distance;
    }
  }
  const float inverse = rsqrtf(block_sum(squares) * per_element + epsilon);

  for (int i = first; i < width; i += stride) {
    const auto pack = load<kSize>(x + i), scale = load<kSize>(weight + i);
    Pack<Element, kSize> result, shift{};
    if constexpr (kLayer) shift = load<kSize>(bias + i);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float normal = (to_float(pack.element[j]) - mean) * inverse;
      assign(result.element[j],
             normal * to_float(scale.element[j]) + (kLayer ? to_float(shift.element[j]) : 0.0F));
    }
    store(y + i, result);
  }
  if (threadIdx.x == 0) {
    inverses[row] = inverse;
    if constexpr (kLayer) means[row] = mean;
  }
}

template <class Element>
struct BackwardTensors {
  const Element *x, *weight, *dy;
  const float *means, *inverses;
  Element* dx;
  float* partial;  // [blocks, width]; LayerNorm: dweight, then as many of dbias
};

/// A block takes every gridDim.x-th row. Its sums over rows lie in shared memory, each column
/// belongs to one thread.
template <bool kLayer, int kSize, class Element>
__global__ void __launch_bounds__(kMaxThreads)
    norm_backward(std::int64_t num_rows, int width, BackwardTensors<Element> t) {
  float* dweight = dynamic_shared<float>();
  float* dbias = dweight + width;  // LayerNorm alone
  const int first = static_cast<int>(threadIdx.x) * kSize;
  const int stride = static_cast<int>(blockDim.x) * kSize;
  const float per_element = 1.0F / static_cast<float>(width);
  for (int i = first; i < width; i += stride)
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      dweight[i + j] = 0;
      if constexpr (kLayer) dbias[i + j] = 0;
    }

  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    const float inverse = t.inverses[row], mean = kLayer ? t.means[row] : 0.0F;
    const Element *x = t.x + row * width, *dy = t.dy + row * width;
    float sum = 0, product_sum = 0;  // of g and of g x^
    for (int i = first; i < width; i += stride) {
      const auto xs = load<kSize>(x + i), dys = load<kSize>(dy + i);
      const auto weights = load<kSize>(t.weight + i);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        const float normal = (to_float(xs.element[j]) - mean) * inverse;
        const float gradient = to_float(dys.element[j]);
        const float g = gradient * to_float(weights.element[j]);
        product_sum += g * normal;
        dweight[i + j] += gradient * normal;
        if constexpr (kLayer) sum += g, dbias[i + j] += gradient;
      }
    }
    const float product_mean = block_sum(product_sum) * per_element;
    const float mean_g = kLayer ? block_sum(sum) * per_element : 0.0F;
    for (int i = first; i < width; i += stride) {
      const auto xs = load<kSize>(x + i), dys = load<kSize>(dy + i);
      const auto weights = load<kSize>(t.weight + i);
      Pack<Element, kSize> dx;
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        const float normal = (to_float(xs.element[j]) - mean) * inverse;
        const float g = to_float(dys.element[j]) * to_float(weights.element[j]);
        assign(dx.element[j], inverse * (g - mean_g - normal * product_mean));
      }
      store(t.dx + row * width + i, dx);
    }
  }

  float* partial = t.partial + std::int64_t{blockIdx.x} * width;
  for (int i = first; i < width; i += stride)
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      partial[i + j] = dweight[i + j];
      if constexpr (kLayer) partial[std::int64_t{gridDim.x} * width + i + j] = dbias[i + j];
    }
}

constexpr int kColumnThreads = 256, kColumnsOfBlock = 32;

/// Sums of the columns of `partial` [rows, width]: a block has 32 columns, each of its 8 warps
/// every eighth row.
__global__ void __launch_bounds__(kColumnThreads)
    sum_columns(int num_rows, int width, const float* partial, float* sums) {
  constexpr int kWarps = kColumnThreads / kWarpSize;
  __shared__ float of_warp[kWarps][kColumnsOfBlock];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int column = static_cast<int>(blockIdx.x) * kColumnsOfBlock + lane;
  float sum = 0;
  if (column < width)
    for (int row = warp; row < num_rows; row += kWarps)
      sum += partial[std::int64_t{row} * width + column];
  of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= width) return;
  for (int other = 1; other < kWarps; ++other) sum += of_warp[other][lane];
  sums[column] = sum;
}

/// Whole warps, enough for one pack a thread, 512 at most.
unsigned threads_for(std::int64_t width, int size) {
  const std::int64_t packs = ceil_div(width, size);
  return static_cast<unsigned>(
      std::min<std::int64_t>(ceil_div(packs, kWarpSize) * kWarpSize, kMaxThreads));
}

/// Two blocks on every SM: more hide more latency but leave more partial sums to add.
std::int64_t backward_blocks(const Rows& shape) {
  return std::min(shape.rows, std::int64_t{2} * device_attribute(cudaDevAttrMultiProcessorCount));
}

struct ForwardTensors {
  const void *x, *weight, *bias;
  void* y;
  float *mean, *inverse;
};

template <bool kLayer, int kSize, class Element>
void forward_typed(const Rows& shape, const ForwardTensors& t, float epsilon, cudaStream_t stream) {
  launch(kLayer ? "layernorm_forward" : "rmsnorm_forward", norm_forward<kLayer, kSize, Element>,
         {.grid = dim3(static_cast<unsigned>(shape.rows)),
          .block = dim3(threads_for(shape.width, kSize)),
          .shared_bytes = 0,
          .stream = stream},
         static_cast<int>(shape.width), static_cast<const Element*>(t.x),
         static_cast<const Element*>(t.weight), static_cast<const Element*>(t.bias), epsilon,
         static_cast<Element*>(t.y), t.mean, t.inverse);
}

template <bool kLayer>
void forward(const Rows& shape, const ForwardTensors& t, float epsilon, cudaStream_t stream) {
  with_type(shape.type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const bool wide = shape.width % size == 0 && aligned({t.x, t.weight, t.bias, t.y});
    (wide ? forward_typed<kLayer, size, Element>
          : forward_typed<kLayer, 1, Element>)(shape, t, epsilon, stream);
  });
}

template <bool kLayer, int kSize, class Element>
void backward_typed(const Rows& shape, const NormBackward& t, cudaStream_t stream) {
  const std::int64_t blocks = backward_blocks(shape);
  const int width = static_cast<int>(shape.width);
  const char* name = kLayer ? "layernorm_backward" : "rmsnorm_backward";
  launch(name, norm_backward<kLayer, kSize, Element>,
         {.grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(threads_for(shape.width, kSize)),
          .shared_bytes = sizeof(float) * static_cast<std::size_t>(shape.width) * (kLayer ? 2 : 1),
          .stream = stream},
         shape.rows, width,
         BackwardTensors<Element>{.x = static_cast<const Element*>(t.x),
                                  .weight = static_cast<const Element*>(t.weight),
                                  .dy = static_cast<const Element*>(t.dy),
                                  .means = t.mean,
                                  .inverses = t.inverse,
                                  .dx = static_cast<Element*>(t.dx),
                                  .partial = t.workspace});
  const auto sum = [&](const float* partial, float* sums) {
    launch(name, sum_columns,
           {.grid = dim3(static_cast<unsigned>(ceil_div(width, kColumnsOfBlock))),
            .block = dim3(kColumnThreads),
            .shared_bytes = 0,
            .stream = stream},
           static_cast<int>(blocks), width, partial, sums);
  };
  sum(t.workspace, t.dweight);
  if (kLayer) sum(t.workspace + blocks * shape.width, t.dbias);
}

template <bool kLayer>
void backward(const Rows& shape, const NormBackward& t, cudaStream_t stream) {
  with_type(shape.type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const bool wide = shape.width % size == 0 && aligned({t.x, t.weight, t.dy, t.dx});
    (wide ? backward_typed<kLayer, size, Element> : backward_typed<kLayer, 1, Element>)(shape, t,
                                                                                        stream);
  });
}

}  // namespace

void rmsnorm_forward(const Rows& shape, const void* x, const void* weight, float epsilon, void* y,
                     float* inverse, cudaStream_t stream) {
  forward<false>(shape, {x, weight, nullptr, y, nullptr, inverse}, epsilon, stream);
}

void layernorm_forward(const Rows& shape, const void* x, const void* weight, const void* bias,
                       float epsilon, void* y, float* mean, float* inverse, cudaStream_t stream) {
  forward<true>(shape, {x, weight, bias, y, mean, inverse}, epsilon, stream);
}

std::size_t norm_workspace_bytes(const Rows& shape) {
  return sizeof(float) * 2 * static_cast<std::size_t>(backward_blocks(shape) * shape.width);
}

void rmsnorm_backward(const Rows& shape, const NormBackward& tensors, cudaStream_t stream) {
  backward<false>(shape, tensors, stream);
}

void layernorm_backward(const Rows& shape, const NormBackward& tensors, cudaStream_t stream) {
  backward<true>(shape, tensors, stream);
}

}  // namespace stepcast::calibrate::cuda_kernels
