#include "workloads/step/muon_calls.hpp"

#include <algorithm>
#include <vector>

#include "engine/arithmetic.hpp"
#include "workloads/plan/optimizer.hpp"

namespace stepcast::workloads {
namespace {

constexpr int iterations = 5;  // of Newton-Schulz

/// Alike matrices of a rank.
struct Matrices {
  std::int64_t rows = 0, columns = 0;
  std::int64_t together = 1;  // in one launch: the experts' of a layer
  std::int64_t launches = 0;
  std::int64_t elements() const { return rows * columns; }
};

std::vector<Matrices> matrices_of(const StageParameters& stage, bool experts) {
  std::vector<Matrices> out;
  for (const AlikeLayers& alike : stage.kinds)
    for (const ParameterTensor& p : alike.tensors) {
      if (!by_muon(p) || p.expert != experts) continue;
      const std::int64_t rows = std::min(p.rows, p.columns()),
                         columns = std::max(p.rows, p.columns());
      const auto at = std::ranges::find_if(out, [&](const Matrices& m) {
        return m.rows == rows && m.columns == columns && m.together == p.matrices;
      });
      if (at == out.end())
        out.push_back({rows, columns, p.matrices, alike.count});
      else
        at->launches += alike.count;
    }
  std::ranges::stable_sort(
      out, [](const Matrices& a, const Matrices& b) { return a.elements() > b.elements(); });
  return out;
}

/// Of `all`, from large to small, dealt out forth and back among so many owners, those of the first
/// (Megatron core LayerWiseDistributedOptimizer.shard_params() at core_v0.16.0, read 2026-11).
std::vector<Matrices> of_first_owner(std::vector<Matrices> all, std::int64_t owners) {
  std::int64_t dealt = 0;
  for (Matrices& m : all) {
    const std::int64_t first = dealt, last = dealt + m.launches * m.together, round = 2 * owners;
    // Of each round it gets the first and the last.
    const auto before = [&](std::int64_t place) {
      return 2 * (place / round) + std::min<std::int64_t>(place % round, 1);
    };
    const std::int64_t mine = owners == 1 ? last - first : before(last) - before(first);
    m.together = std::max<std::int64_t>(1, std::min(m.together, mine));
    m.launches = ceil_div(mine, m.together);
    dealt = last;
  }
  return all;
}

class MuonWriter {
 public:
  MuonWriter(const StepInputs& in, KernelTable& table, Calls& calls)
      : in_(in), table_(table), calls_(calls) {}

  void pass(const char* name, std::int64_t bytes) {
    if (bytes > 0)
      calls_.kernel(compute, table_.pass(name, KernelFamily::optimizer, Dtype::fp32, bytes));
  }

  /// X X^T, its square beside it, and their sum times X.
  void iterate(const Matrices& m) {
    const std::uint32_t products[] = {product("muon.gram", m, m.rows, m.rows, m.columns),
                                      product("muon.square", m, m.rows, m.rows, m.rows),
                                      product("muon.update", m, m.rows, m.columns, m.rows)};
    for (std::int64_t i = 0; i < m.launches * iterations; ++i)
      for (const std::uint32_t index : products) calls_.kernel(compute, index);
  }

  /// Whole matrices to their owners, and updates back.
  void exchange(const char* name, std::int64_t elements) {
    if (!in_.sharded() || in_.plan.shards() == 1 || elements == 0) return;
    const GroupKind group = shard_group(in_.plan);
    calls_.after(data_lane, compute);
    calls_.join(data_lane, group,
                table_.index_of(Collective{name, CollectiveKind::all_to_all, group, Dtype::fp32,
                                           Bytes(4 * elements)}));
    calls_.after(compute, data_lane);
  }

 private:
  std::uint32_t product(const char* name, const Matrices& of, std::int64_t m, std::int64_t n,
                        std::int64_t k) {
    Kernel kernel{name, KernelFamily::gemm, Dtype::bf16, m, n, k};
    kernel.batch = of.together;
    kernel.flops = Flops(2.0 * static_cast<double>(of.together) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k));
    kernel.bytes = Bytes(2 * of.together * (m * k + k * n + m * n));
    return table_.index_of(std::move(kernel));
  }

  const StepInputs& in_;
  KernelTable& table_;
  Calls& calls_;
};

}  // namespace

/// Momentum and what Nesterov makes of it: read g and m, write m; read both, write the update (20).
/// The parameter: read it and the update, write it (12).
void write_muon(const StepInputs& in, KernelTable& table, Calls& calls,
                const StageParameters& stage, std::int64_t elements) {
  MuonWriter out(in, table, calls);
  const ParallelPlan& plan = in.plan;
  const bool whole = plan.data == DataParallel::ddp;
  out.pass("muon.momentum", 20 * elements);
  // FSDP2 alone cuts matrices; its owners take them whole (torchtitan distributed/flex_shard/
  // dist_muon.py at b5bcd76c, read 2026-11, which overlaps both with the products: not here).
  out.exchange("muon.to_owners", elements);
  for (const bool experts : {false, true})
    for (const Matrices& m :
         of_first_owner(matrices_of(stage, experts), whole     ? 1
                                                     : experts ? plan.expert_copies()
                                                               : plan.shards()))
      if (m.launches > 0) out.iterate(m);
  out.exchange("muon.from_owners", elements);
  out.pass("muon.parameter", 12 * elements);
}

}  // namespace stepcast::workloads
