// Kernels that make each element of its like: activations, residual, casts, RoPE. A thread has one
// pack of 16 bytes (of the smallest type); what is left at the end goes element by element.
#include "calibrate/kernels/language.cuh"

namespace stepcast::calibrate::cuda_kernels {
namespace {

constexpr int kThreads = 256;

/// f.at<size>(i) makes the elements i to i + size.
template <int kSize, class F>
__global__ void __launch_bounds__(kThreads) map(std::int64_t elements, F f) {
  const std::int64_t first = kSize * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (first + kSize <= elements) {
    f.template at<kSize>(first);
  } else {
    for (std::int64_t i = first; i < elements; ++i) f.template at<1>(i);
  }
}

template <int kSize, class F>
void launch_map(const char* name, std::int64_t elements, F f, bool wide, cudaStream_t stream) {
  const int size = wide ? kSize : 1;
  launch(name, wide ? map<kSize, F> : map<1, F>,
         {.grid = dim3(static_cast<unsigned>(ceil_div(elements, std::int64_t{kThreads} * size))),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .stream = stream},
         elements, f);
}

/// y = f(a), y = f(a, b): F is a function of floats.
template <class F, class From, class To>
struct Unary {
  const From* a;
  To* y;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const auto x = load<kSize>(a + i);
    Pack<To, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) assign(result.element[j], F::of(to_float(x.element[j])));
    store(y + i, result);
  }
};

template <class F, class First, class Second = First>
struct Binary {
  const First* a;
  const Second* b;
  First* y;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const auto first = load<kSize>(a + i);
    const auto second = load<kSize>(b + i);
    Pack<First, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j)
      assign(result.element[j], F::of(to_float(first.element[j]), to_float(second.element[j])));
    store(y + i, result);
  }
};

struct Identity {
  __device__ static float of(float x) { return x; }
};
struct Sum {
  __device__ static float of(float a, float b) { return a + b; }
};

// GELU(x) = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3): Hendrycks & Gimpel 2016.
constexpr float kGeluFactor = 0.7978845608028654F, kGeluCube = 0.044715F;

struct Gelu {
  __device__ static float of(float x) {
    return 0.5F * x * (1.0F + tanhf(kGeluFactor * (x + kGeluCube * x * x * x)));
  }
};
struct GeluGradient {
  __device__ static float of(float x, float dy) {
    const float t = tanhf(kGeluFactor * (x + kGeluCube * x * x * x));
    const float du = kGeluFactor * (1.0F + 3.0F * kGeluCube * x * x);
    return dy * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * du);
  }
};

template <class F>
void launch_binary(const char* name, ElementType type, std::int64_t elements, const void* a,
                   const void* b, void* y, cudaStream_t stream) {
  with_type(type, [&](auto kind) {
    using Element = decltype(kind);
    launch_map<16 / sizeof(Element)>(
        name, elements,
        Binary<F, Element>{static_cast<const Element*>(a), static_cast<const Element*>(b),
                           static_cast<Element*>(y)},
        aligned({a, b, y}), stream);
  });
}

template <class F, class From, class To>
void launch_unary(const char* name, std::int64_t elements, const void* x, void* y,
                  cudaStream_t stream) {
  constexpr int size = 16 / static_cast<int>(std::min(sizeof(From), sizeof(To)));
  launch_map<size>(name, elements,
                   Unary<F, From, To>{static_cast<const From*>(x), static_cast<To*>(y)},
                   aligned({x, y}), stream);
}

template <class Element>
struct Fill {
  float value;
  Element* y;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    Pack<Element, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) assign(result.element[j], value);
    store(y + i, result);
  }
};

struct ScaleBy {
  const float* factor;
  float* x;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const float by = *factor;
    auto pack = load<kSize>(x + i);
#pragma unroll
    for (int j = 0; j < kSize; ++j) pack.element[j] *= by;
    store(x + i, pack);
  }
};

struct Unscale {
  float factor;
  float *x, *found;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    auto pack = load<kSize>(x + i);
    bool finite = true;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      pack.element[j] *= factor;
      finite &= fabsf(pack.element[j]) < INFINITY;  // false for NaN as well
    }
    store(x + i, pack);
    if (!finite) *found = 1;
  }
};

struct CopyBytes {
  const unsigned char* from;
  unsigned char* to;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    store(to + i, load<kSize>(from + i));
  }
};

/// silu(x) = x / (1 + exp(-x)).
__device__ float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

/// Element i of y is at row i / width, where rows of gate and up begin `stride` apart. In packs,
/// width and stride are multiples of the pack.
template <class Element>
struct Swiglu {
  std::int64_t width, stride;
  const Element *gate, *up;
  Element* y;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const std::int64_t place = i + i / width * (stride - width);
    const auto gates = load<kSize>(gate + place), ups = load<kSize>(up + place);
    Pack<Element, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float x = to_float(gates.element[j]);
      assign(result.element[j], x * sigmoid(x) * to_float(ups.element[j]));
    }
    store(y + i, result);
  }
};

/// d silu(x) = s (1 + x (1 - s)), s = sigmoid(x).
template <class Element>
struct SwigluGradient {
  std::int64_t width, stride, gradient_stride;
  const Element *gate, *up, *dy;
  Element *d_gate, *d_up;
  template <int kSize>
  __device__ void at(std::int64_t i) const {
    const std::int64_t row = i / width;
    const std::int64_t from = i + row * (stride - width);
    const std::int64_t to = i + row * (gradient_stride - width);
    const auto gates = load<kSize>(gate + from), ups = load<kSize>(up + from);
    const auto gradient = load<kSize>(dy + i);
    Pack<Element, kSize> of_gate, of_up;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float x = to_float(gates.element[j]), s = sigmoid(x);
      const float slope = to_float(gradient.element[j]);
      assign(of_gate.element[j], slope * to_float(ups.element[j]) * s * (1.0F + x * (1.0F - s)));
      assign(of_up.element[j], slope * x * s);
    }
    store(d_gate + to, of_gate);
    store(d_up + to, of_up);
  }
};

__global__ void __launch_bounds__(kThreads)
    fill_rope_table(std::int64_t sequence, int half, float base, float* cosines, float* sines) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= sequence * half) return;
  // Once a run, so in double: position * frequency loses its fraction in fp32 at long sequences.
  const double exponent = -static_cast<double>(i % half) / half;
  const double angle = static_cast<double>(i / half) * pow(static_cast<double>(base), exponent);
  cosines[i] = static_cast<float>(cos(angle));
  sines[i] = static_cast<float>(sin(angle));
}

struct RopeSizes {
  int sequence, heads, half;
  std::int64_t token_stride;
  float direction;  // 1 forward, -1 backward
};

/// One block a token. The pair (x[i], x[i + half]) turns by the angle of its position and i.
template <int kSize, class Element>
__global__ void __launch_bounds__(kThreads)
    rotate(RopeSizes sizes, const Element* x, const float* cosines, const float* sines,
           Element* y) {
  const std::int64_t token = blockIdx.x, position = token % sizes.sequence;
  const int packs = sizes.half / kSize;
  for (int p = static_cast<int>(threadIdx.x); p < sizes.heads * packs;
       p += static_cast<int>(blockDim.x)) {
    const int head = p / packs, i = p % packs * kSize;
    const std::int64_t first = token * sizes.token_stride + head * 2 * sizes.half + i;
    const auto a = load<kSize>(x + first), b = load<kSize>(x + first + sizes.half);
    const auto cosine = load<kSize>(cosines + position * sizes.half + i);
    const auto sine = load<kSize>(sines + position * sizes.half + i);
    Pack<Element, kSize> new_a, new_b;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const float c = cosine.element[j], s = sizes.direction * sine.element[j];
      const float p = to_float(a.element[j]), q = to_float(b.element[j]);
      assign(new_a.element[j], p * c - q * s);
      assign(new_b.element[j], q * c + p * s);
    }
    store(y + first, new_a);
    store(y + first + sizes.half, new_b);
  }
}

}  // namespace

GateUp<const void*> side_by_side(const Rows& shape, const void* gate_up) {
  const auto bytes = static_cast<std::int64_t>(bytes_of(shape.type)) * shape.width;
  return {gate_up, static_cast<const char*>(gate_up) + bytes, 2 * shape.width};
}
GateUp<void*> side_by_side(const Rows& shape, void* gate_up) {
  const auto bytes = static_cast<std::int64_t>(bytes_of(shape.type)) * shape.width;
  return {gate_up, static_cast<char*>(gate_up) + bytes, 2 * shape.width};
}

void swiglu_forward(const Rows& shape, const GateUp<const void*>& x, void* y, cudaStream_t stream) {
  with_type(shape.type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const bool wide = shape.width % size == 0 && x.stride % size == 0 && aligned({x.gate, x.up, y});
    launch_map<size>("swiglu_forward", shape.rows * shape.width,
                     Swiglu<Element>{shape.width, x.stride, static_cast<const Element*>(x.gate),
                                     static_cast<const Element*>(x.up), static_cast<Element*>(y)},
                     wide, stream);
  });
}

void swiglu_backward(const Rows& shape, const GateUp<const void*>& x, const void* dy,
                     const GateUp<void*>& dx, cudaStream_t stream) {
  with_type(shape.type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const bool wide = shape.width % size == 0 && x.stride % size == 0 && dx.stride % size == 0 &&
                      aligned({x.gate, x.up, dy, dx.gate, dx.up});
    launch_map<size>("swiglu_backward", shape.rows * shape.width,
                     SwigluGradient<Element>{
                         shape.width, x.stride, dx.stride, static_cast<const Element*>(x.gate),
                         static_cast<const Element*>(x.up), static_cast<const Element*>(dy),
                         static_cast<Element*>(dx.gate), static_cast<Element*>(dx.up)},
                     wide, stream);
  });
}

void gelu_forward(ElementType type, std::int64_t elements, const void* x, void* y,
                  cudaStream_t stream) {
  with_type(type, [&](auto kind) {
    using Element = decltype(kind);
    launch_unary<Gelu, Element, Element>("gelu_forward", elements, x, y, stream);
  });
}

void gelu_backward(ElementType type, std::int64_t elements, const void* x, const void* dy, void* dx,
                   cudaStream_t stream) {
  launch_binary<GeluGradient>("gelu_backward", type, elements, x, dy, dx, stream);
}

void residual_add(ElementType type, std::int64_t elements, const void* a, const void* b, void* y,
                  cudaStream_t stream) {
  launch_binary<Sum>("residual_add", type, elements, a, b, y, stream);
}

void cast(ElementType from, ElementType to, std::int64_t elements, const void* x, void* y,
          cudaStream_t stream) {
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) {
      launch_unary<Identity, decltype(source), decltype(target)>("cast", elements, x, y, stream);
    });
  });
}

void accumulate(ElementType type, std::int64_t elements, const void* x, float* sum,
                cudaStream_t stream) {
  with_type(type, [&](auto kind) {
    using Element = decltype(kind);
    launch_map<16 / sizeof(Element)>(
        "accumulate", elements,
        Binary<Sum, float, Element>{sum, static_cast<const Element*>(x), sum}, aligned({x, sum}),
        stream);
  });
}

void scale_by(std::int64_t elements, const float* factor, float* x, cudaStream_t stream) {
  launch_map<4>("scale_by", elements, ScaleBy{factor, x}, aligned({x}), stream);
}

void unscale(std::int64_t elements, float factor, float* x, float* found, cudaStream_t stream) {
  launch_map<4>("unscale", elements, Unscale{factor, x, found}, aligned({x}), stream);
}

void fill(ElementType type, std::int64_t elements, float value, void* y, cudaStream_t stream) {
  with_type(type, [&](auto kind) {
    using Element = decltype(kind);
    launch_map<16 / sizeof(Element)>(
        "fill", elements, Fill<Element>{value, static_cast<Element*>(y)}, aligned({y}), stream);
  });
}

void copy(std::size_t bytes, const void* from, void* to, cudaStream_t stream) {
  launch_map<16>(
      "copy", static_cast<std::int64_t>(bytes),
      CopyBytes{static_cast<const unsigned char*>(from), static_cast<unsigned char*>(to)},
      aligned({from, to}), stream);
}

void rope_table(std::int64_t sequence, std::int64_t head_dim, float base, float* cosines,
                float* sines, cudaStream_t stream) {
  const std::int64_t half = head_dim / 2;
  launch("rope_table", fill_rope_table,
         {.grid = dim3(static_cast<unsigned>(ceil_div(sequence * half, kThreads))),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .stream = stream},
         sequence, static_cast<int>(half), base, cosines, sines);
}

void rope(const RopeShape& shape, Pass pass, const void* x, const float* cosines,
          const float* sines, void* y, cudaStream_t stream) {
  const std::int64_t stride =
      shape.token_stride != 0 ? shape.token_stride : shape.heads * shape.head_dim;
  const RopeSizes sizes{.sequence = static_cast<int>(shape.sequence),
                        .heads = static_cast<int>(shape.heads),
                        .half = static_cast<int>(shape.head_dim / 2),
                        .token_stride = stride,
                        .direction = pass == Pass::forward ? 1.0F : -1.0F};
  with_type(shape.type, [&](auto kind) {
    using Element = decltype(kind);
    constexpr int size = 16 / sizeof(Element);
    const bool wide =
        sizes.half % size == 0 && stride % size == 0 && aligned({x, y, cosines, sines});
    launch("rope", wide ? rotate<size, Element> : rotate<1, Element>,
           {.grid = dim3(static_cast<unsigned>(shape.batch * shape.sequence)),
            .block = dim3(kThreads),
            .shared_bytes = 0,
            .stream = stream},
           sizes, static_cast<const Element*>(x), cosines, sines, static_cast<Element*>(y));
  });
}

}  // namespace stepcast::calibrate::cuda_kernels
