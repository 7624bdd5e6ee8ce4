#include "workloads/memory/optimizer_states.hpp"

#include <algorithm>
#include <numeric>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "workloads/plan/optimizer.hpp"

namespace stepcast::workloads {
namespace {

/// Whether an update sees a matrix as one: FSDP2 cuts each tensor by rows; FSDP1's units,
/// DeepSpeed's partitions and the slices of a distributed optimizer are flat.
bool sees_matrices(const MemoryRank& r) {
  if (!r.sharded()) return r.in.plan.data == DataParallel::ddp;
  return r.in.software.data.flat_parameters == FlatParameters::fsdp2;
}

KeptStates of_adam(const MemoryRank& r, std::int64_t n) {
  return {moment_bytes(r) * n, moment_bytes(r) * n};
}

/// A byte each, and a scale in fp32 a block (bitsandbytes optim/optimizer.py at 06029dd6, read
/// 2026-11: of 2,048; of 256 from 0.44 on, 2024-09, recalled).
KeptStates of_adam_8bit(const MemoryRank& r, const ParameterTensor& p, std::int64_t n) {
  const OptimizerSoftware& software = r.in.software.optimizer;
  if (!in_8bit(p, n, software.wide_embedding_moments)) return {4 * n, 4 * n};
  const std::int64_t scales = 4 * ceil_div(n, software.moments_block);
  return {n, n, scales, scales};
}

/// The second moment alone, in fp32: a row and a column of each matrix, rows cut over the shard
/// (transformers optimization.py Adafactor, beta1 None, at 005edacb, read 2026-11).
KeptStates of_adafactor(const MemoryRank& r, const ParameterTensor& p, std::int64_t n) {
  if (!p.matrix() || !sees_matrices(r)) return {4 * n};
  return {4 * ceil_div(n, p.columns()), 4 * std::max(p.columns(), ceil_div(n, p.rows))};
}

}  // namespace

std::size_t most_states(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
    case Optimizer::adafactor:
    case Optimizer::muon:
      return 2;
    case Optimizer::adam_8bit:
      return 4;
    case Optimizer::sgd:
      return 1;
  }
  throw BrokenPromise("unknown optimizer");
}

KeptStates kept_states(const MemoryRank& r, const ParameterTensor& p, std::int64_t elements) {
  switch (r.in.plan.optimizer) {
    case Optimizer::adam:
      return of_adam(r, elements);
    case Optimizer::adam_8bit:
      return of_adam_8bit(r, p, elements);
    case Optimizer::adafactor:
      return of_adafactor(r, p, elements);
    case Optimizer::muon:
      if (!by_muon(p)) return of_adam(r, elements);
      return {moment_bytes(r) * elements};
    case Optimizer::sgd:
      return {moment_bytes(r) * elements};
  }
  throw BrokenPromise("unknown optimizer");
}

std::int64_t kept_states(const MemoryRank& r) {
  std::int64_t sum = 0;
  const auto unit = [&](const ParameterTensors& tensors) {
    std::int64_t of_unit = 0;
    for (const ParameterTensor& p : tensors)
      for (const std::int64_t bytes : kept_states(r, p, p.elements)) of_unit += bytes;
    return of_unit;
  };
  sum += r.trained().over_layers(unit);
  return sum + unit(r.trained().root);
}

/// Adafactor: the squared gradient and the update that comes of it, two in fp32 at a time, with
/// copies of gradient and weight where they have 16 bits. Muon: the update in the momentum's type,
/// and in 16 bits the matrix twice and both products of its smaller side (torchtitan
/// distributed/flex_shard/dist_muon.py at b5bcd76c; Megatron core optimizer/muon.py; read 2026-11).
std::vector<std::int64_t> update_work(const MemoryRank& r, const ParameterTensor& p,
                                      std::int64_t elements) {
  const bool narrow = !r.in.precision.masters;
  switch (r.in.plan.optimizer) {
    case Optimizer::adam:
    case Optimizer::adam_8bit:
    case Optimizer::sgd:
      return {};
    case Optimizer::adafactor: {
      std::vector<std::int64_t> out{4 * elements, 4 * elements};
      if (narrow) out.insert(out.end(), {4 * elements, 4 * elements});
      return out;
    }
    case Optimizer::muon: {
      if (!by_muon(p)) return {};
      const std::int64_t matrix = p.elements / p.matrices, side = std::min(p.rows, p.columns());
      return {moment_bytes(r) * elements, 2 * matrix, 2 * matrix, 2 * side * side, 2 * side * side};
    }
  }
  throw BrokenPromise("unknown optimizer");
}

}  // namespace stepcast::workloads
