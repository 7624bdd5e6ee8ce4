#include "workloads/pieces/piece.hpp"

#include <algorithm>
#include <utility>

#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

constexpr std::uint32_t gone = ~std::uint32_t{0};

std::int64_t operand_bytes(const Precision& precision, std::int64_t elements) {
  return copy_bytes(precision, OperandRole::input, elements);
}

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

bool StepInputs::overlaps_tensor() const {
  return plan.tensor > 1 && (software.tensor.overlap || plan.tensor_overlap != TensorOverlap::none);
}

bool StepInputs::core_again() const {
  return (plan.recompute == Recompute::selective && !operators_again()) ||
         plan.recompute_modules.has(LayerModule::attention_core);
}

bool StepInputs::operators_again() const { return workloads::operators_again(plan, software); }

Dtype StepInputs::gradient_dtype() const {
  if (!precision.masters) return precision.compute;
  if (software.data.autocast) return Dtype::fp32;
  return software.data.widened_reduction ? precision.compute : precision.gradient_reduce;
}

Piece part_of_backward(const Piece& backward, bool weights) {
  Piece out;
  for (const Action& action : backward)
    if (action.weights == weights) out.push_back(action);
  return out;
}

Piece node_of(const Piece& layer, LayerNode node) {
  Piece out;
  for (const Action& action : layer)
    if (action.node == node) out.push_back(action);
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

void PieceWriter::begin_graph() {
  if (in_.software.host.graphs != Graphs::layers || captured_) return;
  captured_ = true;
  push(Action::Kind::graph, 0);
}

void PieceWriter::launch(std::uint32_t index) {
  if (captured_) return push(Action::Kind::graph_kernel, index);
  push(python_ && !library_ ? Action::Kind::forward_kernel : Action::Kind::kernel, index);
}

void PieceWriter::module() {
  if (in_.software.host.module_call > Duration{} && !captured_) push(Action::Kind::module, 0);
}

bool PieceWriter::saves(std::int64_t bytes) {
  if (by_operators_ && saved_ != nullptr) saved_->push_back(bytes);
  return by_operators_;
}

bool PieceWriter::saves_product(std::int64_t bytes, bool low) {
  if (!by_operators_ || (!low && ++products_ % 2 == 0)) return false;
  return saves(bytes);
}

/// Where the sequence is cut, all tensor ranks draw alike and keep their state (Megatron core
/// transformer/dot_product_attention.py).
void PieceWriter::fork_random() {
  if (in_.software.host.rng_fork > Duration{} && !captured_ && !sequence_parallel())
    push(Action::Kind::host_call, rng_call);
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

bool PieceWriter::adds_weight_gradients() const {
  return fused() && !in_.sharded() && in_.software.products.accumulate;
}

void PieceWriter::weight_gradient(const std::string& name, std::int64_t m, std::int64_t n,
                                  std::int64_t k) {
  if (!adds_weight_gradients()) return gemm(name, m, n, k);
  Kernel kernel = gemm_kernel(name, in_.precision.compute, m, n, k);
  kernel.accumulate = true;
  kernel.bytes = Bytes(sizes_.element * (m * k + k * n) + 8 * m * n);
  this->kernel(std::move(kernel));
}

void PieceWriter::quantized_gemm(const std::string& name, std::int64_t m, std::int64_t n,
                                 std::int64_t k) {
  fill(sizes_.element * m * n);
  Kernel kernel = gemm_kernel(name, product_dtype(in_.precision), m, n, k);
  kernel.bytes = Bytes(operand_bytes(in_.precision, m * k) + operand_bytes(in_.precision, k * n) +
                       sizes_.element * m * n);
  this->kernel(std::move(kernel));
}

void PieceWriter::quantized_weight_gradient(const std::string& name, std::int64_t m, std::int64_t n,
                                            std::int64_t k) {
  if (!adds_weight_gradients()) return quantized_gemm(name, m, n, k);
  Kernel kernel = gemm_kernel(name, product_dtype(in_.precision), m, n, k);
  kernel.accumulate = true;
  kernel.bytes =
      Bytes(operand_bytes(in_.precision, m * k) + operand_bytes(in_.precision, k * n) + 8 * m * n);
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

void PieceWriter::quantize(const std::string& name, std::int64_t bytes) {
  fill(bytes / 2);
  launch(table_.pass(name, KernelFamily::quantize, quantized_dtype(in_.precision), bytes));
}

std::uint32_t PieceWriter::hidden_collective(const std::string& name, CollectiveKind kind) {
  return table_.index_of(Collective{name, kind, GroupKind::tensor, in_.precision.compute,
                                    Bytes(sizes_.hidden_bytes())});
}

/// Bytes are bytes to NCCL, whatever they mean.
Collective PieceWriter::quantized_gather(const std::string& name, std::int64_t elements,
                                         std::int64_t copies) const {
  const std::int64_t bytes = operand_bytes(in_.precision, elements);
  return {name, CollectiveKind::all_gather, GroupKind::tensor, Dtype::fp8, Bytes(copies * bytes)};
}

void PieceWriter::all_gather_quantized(const std::string& name, std::int64_t elements,
                                       std::int64_t copies) {
  push(Action::Kind::collective, table_.index_of(quantized_gather(name, elements, copies)));
}

void PieceWriter::begin_gather_quantized(const std::string& name, std::int64_t elements) {
  push(Action::Kind::begin, beside(quantized_gather(name, elements, 1)));
}

void PieceWriter::all_reduce_hidden(const std::string& name) {
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::all_reduce));
}

void PieceWriter::all_gather_hidden(const std::string& name) {
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::all_gather));
}

void PieceWriter::reduce_scatter_hidden(const std::string& name) {
  if (saves(sizes_.local_bytes())) return;
  push(Action::Kind::collective, hidden_collective(name, CollectiveKind::reduce_scatter));
}

void PieceWriter::collective(const std::string& name, CollectiveKind kind, Dtype dtype,
                             std::int64_t bytes) {
  push(Action::Kind::collective,
       table_.index_of(Collective{name, kind, GroupKind::tensor, dtype, Bytes(bytes)}));
}

void PieceWriter::begin(const std::string& name, CollectiveKind kind, std::int64_t bytes) {
  push(Action::Kind::begin,
       beside(Collective{name, kind, GroupKind::tensor, in_.precision.compute, Bytes(bytes)}));
}

/// Of what libraries launch, user buffers alone are collectives: their kernels hold 16 SMs
/// (Transformer Engine's default of num_sm, HEAD of 2026 pytorch/module/base.py; recipes tune it
/// from 2 to 32); they are taken as fast as NCCL's.
std::uint32_t PieceWriter::beside(Collective collective) {
  if (library_) collective.sms = 16;
  return table_.index_of(std::move(collective));
}

void PieceWriter::start_tensor_ring(const std::string& name, Dtype dtype, std::int64_t bytes) {
  Collective copy{name, CollectiveKind::send_receive, GroupKind::tensor_ring, dtype, Bytes(bytes)};
  copy.sms = 0;
  push(Action::Kind::tensor_ring, table_.index_of(std::move(copy)));
  piece_.back().library = true;
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

void PieceWriter::expert_collective(const std::string& name, CollectiveKind kind,
                                    std::int64_t bytes) {
  if (saves(kind == CollectiveKind::all_to_all ? bytes : 0)) return;
  push(Action::Kind::tokens, table_.index_of(Collective{name, kind, GroupKind::expert,
                                                        in_.precision.compute, Bytes(bytes)}));
}

void PieceWriter::expert_tensor_collective(const std::string& name, CollectiveKind kind,
                                           std::int64_t bytes) {
  push(Action::Kind::expert_tensor,
       table_.index_of(
           Collective{name, kind, GroupKind::expert_tensor, in_.precision.compute, Bytes(bytes)}));
}

void PieceWriter::exchange_tokens(const std::string& name, const TokenExchange& tokens,
                                  std::int64_t bytes, const std::function<void()>& beside) {
  const std::uint32_t index =
      table_.index_of(Collective{name, CollectiveKind::all_to_all, GroupKind::expert,
                                 in_.precision.compute, Bytes(bytes), tokens});
  if (!beside) return push(Action::Kind::tokens, index);
  push(Action::Kind::begin_tokens, index);
  beside();
  push(Action::Kind::end_tokens, 0);
}

void PieceWriter::host_launches(std::int64_t more, int events) {
  const HostCost launch = python_ ? forward_kernel_call : kernel_call;
  for (std::int64_t i = 0; i < more; ++i) push(Action::Kind::host_call, launch);
  for (int i = 0; i < events; ++i) push(Action::Kind::host_call, event_call);
}

void PieceWriter::gradients(const ParameterTensors& unit, const std::string& name) {
  for (std::uint32_t i = 0; i < unit.size(); ++i)
    if (!unit[i].frozen && (unit[i].name == name || (unit[i].name.starts_with(name + ".") &&
                                                     unit[i].name != name + ".bias")))
      push(Action::Kind::gradient, i);
}

void PieceWriter::keep_last_gradients() {
  std::vector<std::uint32_t> seen;
  for (auto at = piece_.rbegin(); at != piece_.rend(); ++at) {
    if (at->kind != Action::Kind::gradient) continue;
    if (std::ranges::find(seen, at->index) == seen.end()) {
      seen.push_back(at->index);
      continue;
    }
    at->kind = Action::Kind::end;  // marked to go
    at->index = gone;
  }
  std::erase_if(piece_,
                [](const Action& a) { return a.kind == Action::Kind::end && a.index == gone; });
}

void PieceWriter::gradient(const ParameterTensors& unit, const std::string& name) {
  for (std::uint32_t i = 0; i < unit.size(); ++i)
    if (unit[i].name == name) return unit[i].frozen ? void() : push(Action::Kind::gradient, i);
  throw BrokenPromise("no parameter tensor " + name);
}

}  // namespace stepcast::workloads
