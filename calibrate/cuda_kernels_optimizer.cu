// The optimizer's step, the gradient's norm, FSDP's copies in and out of a flat buffer, and the
// empty kernel.
#include "calibrate/cuda_kernels_language.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kThreads = 256;

/// Settings that are the same for every element, worked out once on the host in double.
struct AdamWFactors {
  float beta1, beta2, epsilon, decay, rate, inverse_correction2, gradient_scale;
};

/// Decoupled weight decay (Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2):
///   m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
///   w = w (1 - lr decay) - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + epsilon).
template <class Gradient, class Parameter>
struct AdamWElements {
  AdamWFactors factors;
  const Gradient* gradients;
  float *master, *first_moments, *second_moments;
  Parameter* parameters;

  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const auto gradient = load<kSize>(gradients + i);
    auto w = load<kSize>(master + i), m = load<kSize>(first_moments + i);
    auto v = load<kSize>(second_moments + i);
    Pack<Parameter, kSize> rounded;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float g = to_float(gradient.element[j]) * factors.gradient_scale;
      m.element[j] = factors.beta1 * m.element[j] + (1.0F - factors.beta1) * g;
      v.element[j] = factors.beta2 * v.element[j] + (1.0F - factors.beta2) * g * g;
      const float root = sqrtf(v.element[j] * factors.inverse_correction2);
      w.element[j] =
          w.element[j] * factors.decay - factors.rate * m.element[j] / (root + factors.epsilon);
      assign(rounded.element[j], w.element[j]);
    }
    store(master + i, w);
    store(first_moments + i, m);
    store(second_moments + i, v);
    if (parameters != nullptr) store(parameters + i, rounded);
  }
};

/// Packs of four: 16 bytes of every fp32 tensor.
template <int kSize, class Step>
__global__ void __launch_bounds__(kThreads) adamw_elements(std::int64_t elements, Step step) {
  const std::int64_t first = kSize * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (first + kSize <= elements) {
    step.template at<kSize>(first);
  } else {
    for (std::int64_t i = first; i < elements; ++i) step.template at<1>(i);
  }
}

AdamWFactors factors_of(const AdamW& settings) {
  const double correction1 = 1.0 - std::pow(settings.beta1, static_cast<double>(settings.step));
  const double correction2 = 1.0 - std::pow(settings.beta2, static_cast<double>(settings.step));
  return {.beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .epsilon = settings.epsilon,
          .decay = 1.0F - settings.learning_rate * settings.weight_decay,
          .rate = static_cast<float>(settings.learning_rate / correction1),
          .inverse_correction2 = static_cast<float>(1.0 / correction2),
          .gradient_scale = settings.gradient_scale};
}

constexpr int kSquaresThreads = 512, kSquaresBlocks = 1024;

/// Each block leaves one partial sum; as many elements always take as many blocks and the same
/// order: the same bits.
template <int kSize, class Element>
__global__ void __launch_bounds__(kSquaresThreads)
    partial_squares(std::int64_t elements, const Element* x, float* partial) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t packs = elements / kSize;
  float sum = 0;
  for (std::int64_t p = thread; p < packs; p += stride) {
    const auto pack = load<kSize>(x + p * kSize);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float value = to_float(pack.element[j]);
      sum += value * value;
    }
  }
  for (std::int64_t i = packs * kSize + thread; i < elements; i += stride) {
    const float value = to_float(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kSquaresThreads)
    sum_partials(int count, const float* partial, float* result) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

constexpr std::int64_t kFlatBytes = 16 * 1024;  // of one block

/// The piece of a block: the last that begins at or before it, by halving.
__device__ const FlatPiece& piece_of(const FlatPiece* pieces, std::int64_t num_pieces,
                                     std::int64_t block) {
  std::int64_t low = 0, high = num_pieces;  // pieces[low].first_block <= block
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (pieces[middle].first_block <= block ? low : high) = middle;
  }
  return pieces[low];
}

/// By the whole block; `Word` is what both addresses are aligned to.
template <class Word>
__device__ std::int64_t copy_words(const unsigned char* from, unsigned char* to,
                                   std::int64_t bytes) {
  const std::int64_t words = bytes / static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
  return words * static_cast<std::int64_t>(sizeof(Word));
}

__global__ void __launch_bounds__(kThreads)
    flat_copy_blocks(bool into_flat, const FlatPiece* pieces, std::int64_t num_pieces,
                     unsigned char* flat) {
  using Word = Pack<unsigned char, 16>;
  const FlatPiece piece = piece_of(pieces, num_pieces, blockIdx.x);
  const std::int64_t begin = (blockIdx.x - piece.first_block) * kFlatBytes;
  const std::int64_t bytes = min(kFlatBytes, piece.bytes - begin);
  unsigned char* tensor = static_cast<unsigned char*>(piece.tensor) + begin;
  unsigned char* in_flat = flat + piece.offset + begin;
  const unsigned char* from = into_flat ? tensor : in_flat;
  unsigned char* to = into_flat ? in_flat : tensor;
  const bool wide = (reinterpret_cast<std::uintptr_t>(from) % 16 == 0) &&
                    (reinterpret_cast<std::uintptr_t>(to) % 16 == 0);
  const std::int64_t done = wide ? copy_words<Word>(from, to, bytes) : 0;
  copy_words<unsigned char>(from + done, to + done, bytes - done);
}

__global__ void nothing() {}

}  // namespace

void adamw(const AdamW& settings, const AdamWTensors& t, std::int64_t elements,
           cudaStream_t stream) {
  const bool wide = aligned({t.gradient, t.master, t.first_moment, t.second_moment, t.parameters});
  const int size = wide ? 4 : 1;
  with_type(t.gradient_type, [&](auto gradient) {
    with_type(t.parameter_type, [&](auto parameter) {
      using Gradient = decltype(gradient);
      using Parameter = decltype(parameter);
      using Step = AdamWElements<Gradient, Parameter>;
      launch(
          "adamw", wide ? adamw_elements<4, Step> : adamw_elements<1, Step>,
          {.grid = dim3(static_cast<unsigned>(ceil_div(elements, std::int64_t{kThreads} * size))),
           .block = dim3(kThreads),
           .shared_bytes = 0,
           .stream = stream},
          elements,
          Step{factors_of(settings), static_cast<const Gradient*>(t.gradient), t.master,
               t.first_moment, t.second_moment, static_cast<Parameter*>(t.parameters)});
    });
  });
}

std::size_t sum_of_squares_workspace_bytes() { return kSquaresBlocks * sizeof(float); }

void sum_of_squares(ElementType type, std::int64_t elements, const void* x, float* workspace,
                    float* result, cudaStream_t stream) {
  with_type(type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const std::int64_t blocks = std::clamp<std::int64_t>(
        ceil_div(elements, std::int64_t{kSquaresThreads} * size), 1, kSquaresBlocks);
    LaunchShape blocks_of{.grid = dim3(static_cast<unsigned>(blocks)),
                          .block = dim3(kSquaresThreads),
                          .shared_bytes = 0,
                          .stream = stream};
    launch("sum_of_squares",
           aligned({x}) ? partial_squares<size, Element> : partial_squares<1, Element>, blocks_of,
           elements, static_cast<const Element*>(x), workspace);
    blocks_of.grid = dim3(1);
    launch("sum_of_squares", sum_partials, blocks_of, static_cast<int>(blocks),
           static_cast<const float*>(workspace), result);
  });
}

std::int64_t number_blocks(std::vector<FlatPiece>& pieces) {
  // An empty piece has no block, and the search must not find it: it takes the next one's number
  // and comes before it, so the last of equal numbers, the one with bytes, is found.
  std::int64_t next = 0;
  for (FlatPiece& piece : pieces) {
    piece.first_block = next;
    next += ceil_div(piece.bytes, kFlatBytes);
  }
  return next;
}

void flat_copy(FlatDirection direction, const FlatPiece* pieces, std::int64_t num_pieces,
               std::int64_t num_blocks, void* flat, cudaStream_t stream) {
  launch("flat_copy", flat_copy_blocks,
         {.grid = dim3(static_cast<unsigned>(num_blocks)),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .stream = stream},
         direction == FlatDirection::copy_in, pieces, num_pieces,
         static_cast<unsigned char*>(flat));
}

void empty_kernel(cudaStream_t stream) {
  launch("empty_kernel", nothing,
         {.grid = dim3(1), .block = dim3(1), .shared_bytes = 0, .stream = stream});
}

}  // namespace stepcast::calibrate::cuda_kernels
