// The optimizer's step, the gradient's norm, copies of many pieces, and the empty kernel.
#include "calibrate/kernels/language.cuh"

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
          .decay = static_cast<float>(1.0 - static_cast<double>(settings.learning_rate) *
                                                static_cast<double>(settings.weight_decay)),
          .rate = static_cast<float>(settings.learning_rate / correction1),
          .inverse_correction2 = static_cast<float>(1.0 / correction2),
          .gradient_scale = settings.gradient_scale};
}

/// The piece of a block: the last that begins at or before it, by halving.
template <class Piece>
__device__ Piece piece_of(const Pieces<Piece>& table, std::int64_t block) {
  std::int64_t low = 0, high = table.count;  // pieces[low].first_block <= block
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (table.pieces[middle].first_block <= block ? low : high) = middle;
  }
  return table.pieces[low];
}

constexpr int kSquaresThreads = 512;
constexpr std::int64_t kSquaresElements = 64 * 1024;  // of one block

template <class Element>
__device__ float square(Element x) {
  const float value = to_float(x);
  return value * value;
}

/// Each block leaves one partial sum; as many elements always take as many blocks and the same
/// order: the same bits.
template <class Element>
__global__ void __launch_bounds__(kSquaresThreads)
    partial_squares(Pieces<SquaresPiece> table, float* partial) {
  constexpr int kSize = 16 / sizeof(Element);
  const SquaresPiece piece = piece_of(table, blockIdx.x);
  const std::int64_t begin = (blockIdx.x - piece.first_block) * kSquaresElements;
  const std::int64_t elements = min(kSquaresElements, piece.elements - begin);
  const Element* x = static_cast<const Element*>(piece.tensor) + begin;
  const bool wide = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  const std::int64_t packed = wide ? elements / kSize * kSize : 0;
  const std::int64_t thread = threadIdx.x, threads = blockDim.x;
  float sum = 0;
  for (std::int64_t i = thread * kSize; i < packed; i += threads * kSize) {
    const auto pack = load<kSize>(x + i);
#pragma unroll
    for (int j = 0; j < kSize; ++j) sum += square(pack.element[j]);
  }
  for (std::int64_t i = packed + thread; i < elements; i += threads) sum += square(x[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// One block a tensor.
__global__ void __launch_bounds__(kSquaresThreads)
    sum_partials(Pieces<SquaresPiece> table, const float* partial, float* results) {
  const std::int64_t piece = blockIdx.x;
  const std::int64_t end =
      piece + 1 < table.count ? table.pieces[piece + 1].first_block : table.num_blocks;
  float sum = 0;
  for (std::int64_t i = table.pieces[piece].first_block + threadIdx.x; i < end; i += blockDim.x)
    sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) results[piece] = sum;
}

/// One block.
__global__ void __launch_bounds__(kSquaresThreads)
    sum_products(std::int64_t count, const float* values, const float* weights, float* result) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += values[i] * weights[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

__global__ void factor_of(const float* squares, float largest, float* factor) {
  *factor = fminf(1.0F, largest / (sqrtf(*squares) + 1e-6F));
}

constexpr std::int64_t kCopyElements = 8 * 1024;  // of one block

template <int kSize, class From, class To>
__device__ void copy_pack(const From* from, To* to) {
  const auto pack = load<kSize>(from);
  if constexpr (std::is_same_v<From, To>) {
    store(to, pack);  // the same bits, of NaN too
  } else {
    Pack<To, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) assign(result.element[j], to_float(pack.element[j]));
    store(to, result);
  }
}

template <class From, class To>
__global__ void __launch_bounds__(kThreads) copy_pieces(Pieces<CopyPiece> table) {
  constexpr int kSize =
      16 / static_cast<int>(sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
  const CopyPiece piece = piece_of(table, blockIdx.x);
  const std::int64_t begin = (blockIdx.x - piece.first_block) * kCopyElements;
  const std::int64_t elements = min(kCopyElements, piece.elements - begin);
  const From* from = static_cast<const From*>(piece.from) + begin;
  To* to = static_cast<To*>(piece.to) + begin;
  const bool wide = (reinterpret_cast<std::uintptr_t>(from) % 16 == 0) &&
                    (reinterpret_cast<std::uintptr_t>(to) % 16 == 0);
  const std::int64_t packed = wide ? elements / kSize * kSize : 0;
  const std::int64_t thread = threadIdx.x, threads = blockDim.x;
  for (std::int64_t i = thread * kSize; i < packed; i += threads * kSize)
    copy_pack<kSize>(from + i, to + i);
  for (std::int64_t i = packed + thread; i < elements; i += threads) copy_pack<1>(from + i, to + i);
}

/// An empty piece has no block, and the search must not find it: it takes the next one's number and
/// comes before it, so the last of equal numbers, the one with elements, is found.
template <class Piece>
std::int64_t number(std::span<Piece> pieces, std::int64_t elements_of_block) {
  std::int64_t next = 0;
  for (Piece& piece : pieces) {
    piece.first_block = next;
    next += ceil_div(piece.elements, elements_of_block);
  }
  return next;
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

std::int64_t number_blocks(std::span<SquaresPiece> pieces) {
  return number(pieces, kSquaresElements);
}
std::int64_t number_blocks(std::span<CopyPiece> pieces) { return number(pieces, kCopyElements); }

void sums_of_squares(ElementType type, const Pieces<SquaresPiece>& tensors, float* partial,
                     float* results, cudaStream_t stream) {
  LaunchShape blocks{.grid = dim3(static_cast<unsigned>(tensors.num_blocks)),
                     .block = dim3(kSquaresThreads),
                     .shared_bytes = 0,
                     .stream = stream};
  with_type(type, [&](auto kind) {
    launch("sums_of_squares", partial_squares<decltype(kind)>, blocks, tensors, partial);
  });
  blocks.grid = dim3(static_cast<unsigned>(tensors.count));
  launch("sums_of_squares", sum_partials, blocks, tensors, static_cast<const float*>(partial),
         results);
}

void weighted_sum(std::int64_t count, const float* values, const float* weights, float* result,
                  cudaStream_t stream) {
  launch("weighted_sum", sum_products,
         {.grid = dim3(1), .block = dim3(kSquaresThreads), .shared_bytes = 0, .stream = stream},
         count, values, weights, result);
}

void clip_factor(const float* squares, float largest, float* factor, cudaStream_t stream) {
  launch("clip_factor", factor_of,
         {.grid = dim3(1), .block = dim3(1), .shared_bytes = 0, .stream = stream}, squares, largest,
         factor);
}

void copies(ElementType from, ElementType to, const Pieces<CopyPiece>& pieces,
            cudaStream_t stream) {
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) {
      launch("copies", copy_pieces<decltype(source), decltype(target)>,
             {.grid = dim3(static_cast<unsigned>(pieces.num_blocks)),
              .block = dim3(kThreads),
              .shared_bytes = 0,
              .stream = stream},
             pieces);
    });
  });
}

void empty_kernel(cudaStream_t stream) {
  launch("empty_kernel", nothing,
         {.grid = dim3(1), .block = dim3(1), .shared_bytes = 0, .stream = stream});
}

}  // namespace stepcast::calibrate::cuda_kernels
