#include "calibrate/cuda_gemm.hpp"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "calibrate/cuda_check.hpp"
#include "calibrate/cuda_random.hpp"

namespace stepcast::calibrate {
namespace {

constexpr int num_proposals = 8;

struct CublasLtFree {
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
  void operator()(cublasLtMatmulDescOpaque_t* d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayoutOpaque_t* l) const { cublasLtMatrixLayoutDestroy(l); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* p) const { cublasLtMatmulPreferenceDestroy(p); }
};
using Handle = std::unique_ptr<cublasLtContext, CublasLtFree>;
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, CublasLtFree>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CublasLtFree>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CublasLtFree>;

Handle make_handle() {
  cublasLtHandle_t handle = nullptr;
  CUBLAS_TRY(cublasLtCreate(&handle));
  return Handle(handle);
}

Description make_description(cublasComputeType_t compute) {
  cublasLtMatmulDesc_t description = nullptr;
  CUBLAS_TRY(cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F));
  return Description(description);
}

Layout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  CUBLAS_TRY(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows));
  return Layout(layout);
}

Preference make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_TRY(cublasLtMatmulPreferenceCreate(&preference));
  Preference owner(preference);
  const auto size = static_cast<std::uint64_t>(workspace_size.value);
  CUBLAS_TRY(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &size, sizeof(size)));
  return owner;
}

template <class Value>
void set(const Description& description, cublasLtMatmulDescAttributes_t which, Value value) {
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(description.get(), which, &value, sizeof(value)));
}

cudaDataType_t cuda_type(Element element) {
  switch (element) {
    case Element::fp32:
      return CUDA_R_32F;
    case Element::bf16:
      return CUDA_R_16BF;
    case Element::fp16:
      return CUDA_R_16F;
    case Element::fp8:
      return CUDA_R_8F_E4M3;
  }
  throw BrokenPromise("an element type without a case");
}

/// fp8 products leave as bf16, and a gradient is added up in fp32.
Element output_of(const GemmTask& task, Element input) {
  if (task.accumulate) return Element::fp32;
  return input == Element::fp8 ? Element::bf16 : input;
}

/// cuBLASLt multiplies fp8 only as NT (on Hopper), so frameworks keep transposed copies: every fp8
/// product runs as NT whatever its place in the step (Transformer Engine).
std::string layout_of(const GemmTask& task) { return task.dtype == "fp8" ? "NT" : task.layout; }

void refuse_what_the_gpu_lacks(const GemmTask& task, int compute_capability) {
  const int needed = task.dtype == "fp8"                            ? 89
                     : task.dtype == "bf16" || task.dtype == "tf32" ? 80
                                                                    : 0;
  if (compute_capability < needed)
    throw Unsupported(fmt::format("{} products need sm_{}, this GPU is sm_{}", task.dtype, needed,
                                  compute_capability));
  if (task.layout != "NT" && task.layout != "NN" && task.layout != "TN")
    throw Unsupported("no such layout: " + task.layout);
  if (task.m < 1 || task.n < 1 || task.k < 1) throw Unsupported("an empty product");
}

class CudaGemm final : public CudaTask {
 public:
  CudaGemm(CudaContext& context, const GemmTask& task, std::uint64_t seed);

  double relative_error() override;
  double tolerance() const override;
  double flops() const override { return 2.0 * static_cast<double>(task_.m) * n() * k(); }
  Bytes bytes() const override {
    return Bytes(a_size() + b_size() + c_size() * (beta() > 0 ? 2 : 1));
  }
  void launch_on(cudaStream_t stream, std::int64_t set) override;

 private:
  double n() const { return static_cast<double>(task_.n); }
  double k() const { return static_cast<double>(task_.k); }
  float beta() const { return task_.accumulate ? 1.0F : 0.0F; }
  std::int64_t a_size() const { return task_.m * task_.k * size_of(input_); }
  std::int64_t b_size() const { return task_.n * task_.k * size_of(input_); }
  std::int64_t c_size() const { return task_.m * task_.n * size_of(output_); }
  std::byte* a(std::int64_t set) const { return operands_.get() + set * set_size_; }
  std::byte* b(std::int64_t set) const { return a(set) + aligned(a_size()); }
  std::byte* c(std::int64_t set) const { return b(set) + aligned(b_size()); }
  static std::int64_t aligned(std::int64_t size) { return (size + 255) / 256 * 256; }

  void describe();
  void fill(std::int64_t set, std::uint64_t seed);
  std::vector<cublasLtMatmulAlgo_t> proposals();
  void take_fastest(const std::vector<cublasLtMatmulAlgo_t>& proposed);
  double reference(std::uint64_t seed, std::int64_t row, std::int64_t column) const;

  GemmTask task_;
  std::string layout_;
  std::uint64_t seed_;
  Element input_, output_;
  std::int64_t set_size_ = 0;
  DeviceMemory operands_, scales_;
  Handle handle_ = make_handle();
  Description description_;
  Layout first_, second_, result_;  // cuBLASLt's A, B and C: see describe()
  cublasLtMatmulAlgo_t algorithm_{};
};

CudaGemm::CudaGemm(CudaContext& context, const GemmTask& task, std::uint64_t seed)
    : CudaTask(context),
      task_(task),
      layout_(layout_of(task)),
      seed_(seed),
      input_(element_of(task.dtype)),
      output_(output_of(task, input_)) {
  set_size_ = aligned(a_size()) + aligned(b_size()) + aligned(c_size());
  set_footprint(Bytes(set_size_));
  operands_ = allocate_device(Bytes(num_sets() * set_size_));
  for (std::int64_t set = 0; set < num_sets(); ++set)
    fill(set, seed_ + static_cast<std::uint64_t>(set));
  describe();
  const auto proposed = proposals();
  algorithm_ = proposed.front();
  warm_up();
  if (task_.best_of_8) take_fastest(proposed);
}

/// cuBLASLt means columns first, and a row-major matrix read that way is its transpose. So it is
/// asked for C^T = op(B)^T op(A)^T: B comes first, and n, m, k are its m, n, k.
///   NT: B is n x k in memory, read as k x n, so T;  A is m x k, read as k x m, so N
///   NN: B is k x n, read as n x k, so N;             A as above
///   TN: B as in NN;                                  A is k x m, read as m x k, so T
void CudaGemm::describe() {
  const bool b_transposed = layout_ == "NT", a_transposed = layout_ == "TN";
  description_ =
      make_description(task_.dtype == "tf32" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
  set(description_, CUBLASLT_MATMUL_DESC_TRANSA, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_TRANSB, a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  const auto type = cuda_type(input_);
  first_ = b_transposed ? make_layout(type, task_.k, task_.n) : make_layout(type, task_.n, task_.k);
  second_ =
      a_transposed ? make_layout(type, task_.m, task_.k) : make_layout(type, task_.k, task_.m);
  result_ = make_layout(cuda_type(output_), task_.n, task_.m);
  if (input_ != Element::fp8) return;
  const std::array<float, 2> scales = {0.5F, 2.0F};  // per tensor; their product is 1
  scales_ = allocate_device(Bytes(sizeof(scales)));
  CUDA_TRY(cudaMemcpy(scales_.get(), scales.data(), sizeof(scales), cudaMemcpyHostToDevice));
  CUDA_TRY(cudaDeviceSynchronize());  // the copy is on another stream
  const void* second_scale = scales_.get() + sizeof(float);
  set(description_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(scales_.get()));
  set(description_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, second_scale);
}

void CudaGemm::fill(std::int64_t set, std::uint64_t seed) {
  const cudaStream_t stream = context_.stream.get();
  fill_random(a(set), input_, task_.m * task_.k, 3 * seed, stream);
  fill_random(b(set), input_, task_.n * task_.k, 3 * seed + 1, stream);
  fill_random(c(set), output_, task_.m * task_.n, 3 * seed + 2, stream);
}

std::vector<cublasLtMatmulAlgo_t> CudaGemm::proposals() {
  const Preference preference = make_preference();
  std::array<cublasLtMatmulHeuristicResult_t, num_proposals> results{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), description_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
      preference.get(), num_proposals, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
    throw Unsupported("cuBLASLt has no kernel for this product");
  CUBLAS_TRY(status);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(results[static_cast<std::size_t>(i)].algo);
  if (algorithms.empty()) throw Unsupported("cuBLASLt has no kernel for this product");
  return algorithms;
}

void CudaGemm::take_fastest(const std::vector<cublasLtMatmulAlgo_t>& proposed) {
  constexpr std::int64_t repetitions = 20;
  Duration least = Duration::max();
  cublasLtMatmulAlgo_t fastest = proposed.front();
  for (const auto& proposal : proposed) {
    algorithm_ = proposal;
    try {
      warm_up();
      const Duration taken = run(repetitions, Cache::cold).total;
      if (taken >= least) continue;
      least = taken;
      fastest = proposal;
    } catch (const InputError&) {
      // A proposal that refuses to run is none; the first has run already.
    }
  }
  algorithm_ = fastest;
}

void CudaGemm::launch_on(cudaStream_t stream, std::int64_t set) {
  const float one = 1.0F, kept = beta();
  CUBLAS_TRY(cublasLtMatmul(handle_.get(), description_.get(), &one, b(set), first_.get(), a(set),
                            second_.get(), &kept, c(set), result_.get(), c(set), result_.get(),
                            &algorithm_, context_.workspace.get(),
                            static_cast<std::size_t>(workspace_size.value), stream));
}

double CudaGemm::reference(std::uint64_t seed, std::int64_t row, std::int64_t column) const {
  double sum = 0;
  for (std::int64_t i = 0; i < task_.k; ++i) {
    const std::int64_t a_index = layout_ == "TN" ? i * task_.m + row : row * task_.k + i;
    const std::int64_t b_index = layout_ == "NT" ? column * task_.k + i : i * task_.n + column;
    sum += stored_value(3 * seed, static_cast<std::uint64_t>(a_index), input_) *
           stored_value(3 * seed + 1, static_cast<std::uint64_t>(b_index), input_);
  }
  const auto c_index = static_cast<std::uint64_t>(row * task_.n + column);
  return task_.accumulate ? sum + stored_value(3 * seed + 2, c_index, output_) : sum;
}

/// Eight rows and eight columns of C, drawn anew, where they cross; the corners are always among
/// them.
double CudaGemm::relative_error() {
  constexpr std::uint64_t samples = 8;
  const std::uint64_t seed = ++seed_ + 0x5EED;
  fill(0, seed);
  launch_on(context_.stream.get(), 0);
  CUDA_TRY(cudaStreamSynchronize(context_.stream.get()));
  const auto drawn = [&](std::uint64_t i, std::int64_t size, std::uint64_t stream) {
    if (i < 2) return i == 0 ? 0 : size - 1;
    const double unit = 0.5 + 0.5 * static_cast<double>(random_value(seed + stream, i));
    return std::min(size - 1, static_cast<std::int64_t>(unit * static_cast<double>(size)));
  };
  std::vector<std::byte> line(static_cast<std::size_t>(task_.n * size_of(output_)));
  double error = 0, largest = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::int64_t row = drawn(i, task_.m, 100);
    CUDA_TRY(cudaMemcpy(line.data(), c(0) + row * task_.n * size_of(output_), line.size(),
                        cudaMemcpyDeviceToHost));
    for (std::uint64_t j = 0; j < samples; ++j) {
      const std::int64_t column = drawn(j, task_.n, 200);
      const double wanted = reference(seed, row, column);
      const double difference = std::abs(read_element(line.data(), column, output_) - wanted);
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      largest = std::max(largest, std::abs(wanted));
    }
  }
  return error / largest;
}

/// What rounding leaves: half a unit of the output's last place, and of tf32's 11 bits that the
/// tensor core takes of each input; fp8 products are summed with about 14 bits on Hopper
/// (DeepSeek-V3 report, section 3.3). Times four, since the largest of 64 samples is taken.
double CudaGemm::tolerance() const {
  if (task_.dtype == "fp8") return 2e-2;
  if (output_ == Element::bf16) return 8e-3;
  if (task_.dtype == "tf32" || output_ == Element::fp16) return 2e-3;
  return 1e-4;
}

}  // namespace

std::unique_ptr<CudaTask> make_cuda_gemm(CudaContext& context, const GemmTask& task,
                                         std::uint64_t seed) {
  refuse_what_the_gpu_lacks(task, context.compute_capability);
  return std::make_unique<CudaGemm>(context, task, seed);
}

std::string cublas_version() {
  const std::size_t version = cublasLtGetVersion();  // 130100: 13.1.0
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace stepcast::calibrate
