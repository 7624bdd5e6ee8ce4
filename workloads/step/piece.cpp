#include "workloads/step/piece.hpp"

#include <utility>

namespace stepcast::workloads {
namespace {

Flops gemm_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

Kernel gemm_kernel(const std::string& name, Dtype dtype, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
  Kernel kernel;
  kernel.name = name;
  kernel.family = KernelFamily::gemm;
  kernel.dtype = dtype;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = gemm_flops(m, n, k);
  return kernel;
}

}  // namespace

bool StepInputs::sharded() const {
  switch (plan.data) {
    case DataParallel::ddp:
    case DataParallel::zero1:
      return false;
    case DataParallel::zero2:
      return software.data.flat_parameters != FlatParameters::buckets;
    case DataParallel::zero3:
      return true;
  }
  throw BrokenPromise("unknown data parallelism");
}

Dtype StepInputs::gradient_dtype() const {
  if (software.data.autocast) return Dtype::fp32;
  return software.data.widened_reduction ? precision.compute : precision.gradient_reduce;
}

Piece part_of_backward(const Piece& backward, bool weights) {
  Piece out;
  for (const Action& action : backward)
    if (action.weights == weights) out.push_back(action);
  return out;
}

Batch predicted_batch(const StepInputs& in) {
  Batch batch = in.batch;
  batch.sequence = predicted_positions(in.shape, batch.sequence);
  return batch;
}

Sizes::Sizes(const StepInputs& in)
    : RankWidths(in.shape, in.plan.tensor),
      tokens(in.batch.micro_batch * in.batch.sequence / in.plan.context),
      local_tokens(in.plan.sequence_parallel ? tokens / in.plan.tensor : tokens),
      hidden(in.shape.hidden),
      element(bytes_per_element(in.precision.compute)) {}

void PieceWriter::launch(std::uint32_t index) {
  push(python_ ? Action::Kind::forward_kernel : Action::Kind::kernel, index);
}

void PieceWriter::module() {
  if (in_.software.host.module_call > Duration{}) push(Action::Kind::module, 0);
}

void PieceWriter::fill(std::int64_t bytes) {
  if (!in_.software.deterministic) return;
  push(Action::Kind::kernel,
       table_.pass("fill", KernelFamily::pointwise, in_.precision.compute, bytes));
}

void PieceWriter::gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k) {
  fill(sizes_.element * m * n);
  Kernel kernel = gemm_kernel(name, in_.precision.compute, m, n, k);
  kernel.bytes = Bytes(sizes_.element * (m * k + k * n + m * n));
  this->kernel(std::move(kernel));
}

void PieceWriter::accumulating_gemm(const std::string& name, std::int64_t m, std::int64_t n,
                                    std::int64_t k) {
  Kernel kernel = gemm_kernel(name, in_.precision.compute, m, n, k);
  kernel.accumulate = true;
  kernel.bytes = Bytes(sizes_.element * (m * k + k * n + 2 * m * n));
  this->kernel(std::move(kernel));
}

void PieceWriter::weight_gradient(const std::string& name, std::int64_t m, std::int64_t n,
                                  std::int64_t k) {
  if (!fused() || in_.sharded() || !in_.software.products.accumulate) return gemm(name, m, n, k);
  Kernel kernel = gemm_kernel(name, in_.precision.compute, m, n, k);
  kernel.accumulate = true;
  kernel.bytes = Bytes(sizes_.element * (m * k + k * n) + 8 * m * n);
  this->kernel(std::move(kernel));
}

void PieceWriter::batched_gemm(const std::string& name, std::int64_t m, std::int64_t n,
                               std::int64_t k, std::int64_t count) {
  Kernel kernel = gemm_kernel(name, in_.precision.compute, m, n, k);
  kernel.batch = count;
  kernel.flops = kernel.flops * static_cast<double>(count);
  fill(count * sizes_.element * m * n);
  kernel.bytes = Bytes(count * sizes_.element * (m * k + k * n + m * n));
  this->kernel(std::move(kernel));
}

// Of a pass half the bytes are written, as good as: what it reads and writes is one sum here.
void PieceWriter::pass(const std::string& name, KernelFamily family, std::int64_t bytes) {
  fill(bytes / 2);
  launch(table_.pass(name, family, in_.precision.compute, bytes));
}

void PieceWriter::pass_fp32(const std::string& name, KernelFamily family, std::int64_t bytes) {
  fill(bytes / 2);
  launch(table_.pass(name, family, Dtype::fp32, bytes));
}

std::uint32_t PieceWriter::hidden_collective(const std::string& name, CollectiveKind kind) {
  return table_.index_of(Collective{name, kind, GroupKind::tensor, in_.precision.compute,
                                    Bytes(sizes_.hidden_bytes())});
}

void PieceWriter::all_reduce_hidden(const std::string& name) {
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::all_reduce));
}

void PieceWriter::all_gather_hidden(const std::string& name) {
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::all_gather));
}

void PieceWriter::reduce_scatter_hidden(const std::string& name) {
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::reduce_scatter));
}

void PieceWriter::collective(const std::string& name, CollectiveKind kind, Dtype dtype,
                             std::int64_t bytes) {
  push(Action::Kind::collective,
       table_.index_of(Collective{name, kind, GroupKind::tensor, dtype, Bytes(bytes)}));
}

void PieceWriter::begin_hidden(const std::string& name, CollectiveKind kind) {
  push(Action::Kind::begin, hidden_collective(name, kind));
}

void PieceWriter::start_ring(const std::string& name, std::int64_t bytes) {
  push(Action::Kind::ring_start,
       table_.index_of(Collective{name, CollectiveKind::send_receive, GroupKind::context_ring,
                                  in_.precision.compute, Bytes(bytes)}));
}

void PieceWriter::context_collective(const std::string& name, CollectiveKind kind,
                                     std::int64_t bytes) {
  push(Action::Kind::context, table_.index_of(Collective{name, kind, GroupKind::context,
                                                         in_.precision.compute, Bytes(bytes)}));
}

void PieceWriter::gradient(const ParameterTensors& unit, const std::string& name) {
  for (std::uint32_t i = 0; i < unit.size(); ++i)
    if (unit[i].name == name) return push(Action::Kind::gradient, i);
  throw BrokenPromise("no parameter tensor " + name);
}

}  // namespace stepcast::workloads
