#include "calibrate/cuda/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/kernels.hpp"

namespace stepcast::calibrate {
namespace {

std::vector<std::byte> random_ids(const Tensor& tensor, std::uint64_t seed) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tensor.count; ++i) {
    const double unit =
        0.5 + 0.5 * static_cast<double>(random_value(seed, static_cast<std::uint64_t>(i)));
    const auto id = static_cast<std::int64_t>(unit * static_cast<double>(tensor.num_ids));
    ids.push_back(static_cast<std::int32_t>(std::min(tensor.num_ids - 1, id)));
  }
  std::vector<std::byte> raw(ids.size() * sizeof(std::int32_t));
  std::memcpy(raw.data(), ids.data(), raw.size());
  return raw;
}

void fill(const Tensor& tensor, std::byte* memory, std::uint64_t seed, cudaStream_t stream) {
  using enum Tensor::Content;
  const auto put = [&](const std::vector<std::byte>& raw) {
    upload(memory, raw.data(), raw.size());
  };
  switch (tensor.content) {
    case random:
      return fill_random(memory, tensor.element, tensor.count, seed, stream);
    case positive:
      return fill_random(memory, tensor.element, tensor.count, seed, stream,
                         {.middle = 0.5F, .half = 0.5F});
    case ids:
      return put(random_ids(tensor, seed));
    case bytes:
      return put(tensor.raw);
    case result:
      CUDA_TRY(cudaMemsetAsync(memory, 0xFF, static_cast<std::size_t>(tensor.size()), stream));
  }
}

Doubles read(const Tensor& tensor, const std::byte* memory) {
  std::vector<std::byte> raw(static_cast<std::size_t>(tensor.size()));
  CUDA_TRY(cudaMemcpy(raw.data(), memory, raw.size(), cudaMemcpyDeviceToHost));
  Doubles values;
  if (tensor.content == Tensor::Content::bytes) return values;
  for (std::int64_t i = 0; i < tensor.count; ++i) {
    if (tensor.content != Tensor::Content::ids) {
      values.push_back(read_element(raw.data(), i, tensor.element));
      continue;
    }
    std::int32_t id = 0;
    std::memcpy(&id, raw.data() + i * 4, sizeof(id));
    values.push_back(static_cast<double>(id));
  }
  return values;
}

/// All tensors of a recipe in one piece of memory: the shared ones, then each set's own.
class Buffers {
 public:
  Buffers(const Recipe& recipe, std::int64_t num_sets) {
    for (const Tensor& tensor : recipe.tensors)
      (tensor.shared ? shared_size_ : set_size_) += aligned(tensor.size());
    memory_ = allocate_device(Bytes(shared_size_ + num_sets * set_size_));
    for (std::int64_t set = 0; set < num_sets; ++set) {
      std::int64_t shared = 0, own = shared_size_ + set * set_size_;
      auto& pointers = pointers_.emplace_back();
      for (const Tensor& tensor : recipe.tensors) {
        std::int64_t& offset = tensor.shared ? shared : own;
        pointers.push_back(memory_.get() + offset);
        offset += aligned(tensor.size());
      }
    }
  }

  Pointers pointers(std::int64_t set) const { return pointers_[static_cast<std::size_t>(set)]; }
  void fill_all(const Recipe& recipe, std::uint64_t seed, cudaStream_t stream) const {
    for (std::size_t set = 0; set < pointers_.size(); ++set) {
      for (std::size_t i = 0; i < recipe.tensors.size(); ++i)
        if (set == 0 || !recipe.tensors[i].shared)
          fill(recipe.tensors[i], pointers_[set][i], seed + 64 * set + i, stream);
      CUDA_TRY(cudaStreamSynchronize(stream));
      if (recipe.prepare) recipe.prepare(pointers_[set], stream);
    }
  }
  static std::int64_t aligned(std::int64_t size) { return (size + 255) / 256 * 256; }

 private:
  std::int64_t shared_size_ = 0, set_size_ = 0;
  DeviceMemory memory_;
  std::vector<std::vector<std::byte*>> pointers_;
};

class CudaRecipe final : public CudaTask {
 public:
  CudaRecipe(CudaContext& context, Recipe timed, Recipe checked, double tolerance,
             std::uint64_t seed)
      : CudaTask(context),
        recipe_(std::move(timed)),
        checked_(std::move(checked)),
        tolerance_(tolerance),
        seed_(seed) {
    std::int64_t footprint = 0;
    for (const Tensor& tensor : recipe_.tensors)
      if (!tensor.shared) footprint += Buffers::aligned(tensor.size());
    set_footprint(Bytes(footprint));
    buffers_ = std::make_unique<Buffers>(recipe_, num_sets());
    buffers_->fill_all(recipe_, seed, context_.stream.get());
    warm_up();
  }

  double relative_error() override;
  double tolerance() const override { return tolerance_; }
  double flops() const override { return recipe_.flops; }
  Bytes bytes() const override { return recipe_.bytes; }
  void launch_on(cudaStream_t stream, std::int64_t set) override {
    recipe_.launch(buffers_->pointers(set), stream);
  }

 private:
  Recipe recipe_, checked_;
  double tolerance_;
  std::uint64_t seed_;
  std::unique_ptr<Buffers> buffers_;
};

/// The worst tensor's: largest difference over its largest wanted value.
double CudaRecipe::relative_error() {
  const cudaStream_t stream = context_.stream.get();
  const Buffers buffers(checked_, 1);
  seed_ += 0x5EED;
  buffers.fill_all(checked_, seed_, stream);
  CUDA_TRY(cudaStreamSynchronize(stream));
  const Pointers pointers = buffers.pointers(0);
  std::vector<Doubles> inputs;
  for (std::size_t i = 0; i < checked_.tensors.size(); ++i)
    inputs.push_back(read(checked_.tensors[i], pointers[i]));
  checked_.launch(pointers, stream);
  CUDA_TRY(cudaStreamSynchronize(stream));
  double worst = 0;
  for (const auto& [tensor, wanted] : checked_.reference(inputs)) {
    const Doubles result = read(checked_.tensors[tensor], pointers[tensor]);
    expects(result.size() == wanted.size(), "a reference of the result's size");
    double error = 0, largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double difference = std::abs(result[i] - wanted[i]);
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      largest = std::max(largest, std::abs(wanted[i]));
    }
    worst = std::max(worst, largest > 0 ? error / largest : error);
  }
  return worst;
}

}  // namespace

std::int64_t Tensor::size() const {
  if (content == Content::bytes) return static_cast<std::int64_t>(raw.size());
  return count * (content == Content::ids ? 4 : size_of(element));
}

void upload(std::byte* device, const void* host, std::size_t size) {
  CUDA_TRY(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice));
  CUDA_TRY(cudaDeviceSynchronize());  // the copy may still be on its way, and on another stream
}

double tolerance_of(Element element) {
  switch (element) {
    case Element::fp32:
      return 2e-5;
    case Element::fp16:
      return 2e-3;
    case Element::bf16:
      return 1.6e-2;
    case Element::fp8:
      return 0.25;
  }
  throw BrokenPromise("an element type without a case");
}

std::unique_ptr<CudaTask> make_cuda_recipe(CudaContext& context, Recipe timed, Recipe checked,
                                           double tolerance, std::uint64_t seed) {
  return std::make_unique<CudaRecipe>(context, std::move(timed), std::move(checked), tolerance,
                                      seed);
}

}  // namespace stepcast::calibrate
