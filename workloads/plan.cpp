#include "workloads/plan.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

using Group = std::vector<std::int64_t>;

std::string text(std::int64_t v) { return std::to_string(v); }

void check_positive(std::string_view name, std::int64_t value, const std::string& where) {
  if (value < 1)
    throw InputError(where, std::string(name) + " is " + text(value), "it must be at least 1");
}

void check_divides(std::string_view degree_name, std::int64_t degree, std::string_view name,
                   std::int64_t value, const std::string& where) {
  if (value % degree == 0) return;
  std::string hint = "degrees that do:";
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(value, 64); ++d)
    if (value % d == 0) hint += " " + text(d);
  throw InputError(where,
                   std::string(degree_name) + " " + text(degree) + " does not divide " +
                       std::string(name) + " " + text(value),
                   hint);
}

void check_shape(const TransformerShape& s, const std::string& where) {
  for (const auto& [name, value] : {std::pair<std::string_view, std::int64_t>{"layers", s.layers},
                                    {"hidden", s.hidden},
                                    {"heads", s.heads},
                                    {"kv_heads", s.kv_heads},
                                    {"head_dim", s.head_dim},
                                    {"ffn_hidden", s.ffn_hidden},
                                    {"vocab", s.vocab}})
    check_positive(name, value, where);
  if (!s.rope) check_positive("max_positions", s.max_positions, where);
  check_divides("kv_heads", s.kv_heads, "heads", s.heads, where);
}

/// kv heads are split while there are enough of them; beyond that each rank keeps one (replicated).
void check_tensor(const TransformerShape& s, const ParallelPlan& p, const Batch& b,
                  const std::string& where) {
  check_divides("tensor degree", p.tensor, "heads", s.heads, where);
  if (p.tensor <= s.kv_heads)
    check_divides("tensor degree", p.tensor, "kv_heads", s.kv_heads, where);
  else if (p.tensor % s.kv_heads != 0)
    throw InputError(
        where,
        "tensor degree " + text(p.tensor) + " is no multiple of kv_heads " + text(s.kv_heads),
        "take a divisor or a multiple of kv_heads");
  check_divides("tensor degree", p.tensor, "ffn_hidden", s.ffn_hidden, where);
  check_divides("tensor degree", p.tensor, "vocab", s.vocab, where);
  if (p.sequence_parallel)
    check_divides("tensor degree (sequence parallel)", p.tensor, "sequence", b.sequence, where);
}

Group ranks_where(const ParallelPlan& plan, Coordinates at, std::int64_t Coordinates::*along,
                  std::int64_t degree) {
  Group group;
  group.reserve(static_cast<std::size_t>(degree));
  for (std::int64_t i = 0; i < degree; ++i) {
    at.*along = i;
    group.push_back(rank_of(plan, at));
  }
  return group;
}

std::vector<Group> along(const ParallelPlan& plan, std::int64_t Coordinates::*axis,
                         std::int64_t degree) {
  std::vector<Group> all;
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    const Coordinates at = coordinates_of(plan, rank);
    if (at.*axis == 0) all.push_back(ranks_where(plan, at, axis, degree));
  }
  return all;
}

/// {rank of `from(s)`, rank of `to(s)`} for every neighbouring pair of stages and every replica.
std::vector<Group> neighbours(const ParallelPlan& plan, bool forward) {
  std::vector<Group> all;
  const std::int64_t per_stage = plan.data_degree * plan.tensor;
  for (std::int64_t lower = 0; lower + per_stage < plan.ranks(); ++lower) {
    const std::int64_t upper = lower + per_stage;
    all.push_back(forward ? Group{lower, upper} : Group{upper, lower});
  }
  return all;
}

std::vector<Group> first_and_last(const ParallelPlan& plan) {
  std::vector<Group> all;
  if (plan.pipeline < 2) return all;
  const std::int64_t per_stage = plan.data_degree * plan.tensor;
  for (std::int64_t rank = 0; rank < per_stage; ++rank)
    all.push_back({rank, rank + (plan.pipeline - 1) * per_stage});
  return all;
}

}  // namespace

std::int64_t bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
    case Dtype::tf32:
      return 4;
    case Dtype::bf16:
    case Dtype::fp16:
      return 2;
    case Dtype::fp8:
      return 1;
  }
  throw BrokenPromise("unknown dtype");
}

Coordinates coordinates_of(const ParallelPlan& plan, std::int64_t rank) {
  expects(rank >= 0 && rank < plan.ranks(), "rank of the plan");
  const std::int64_t replica = rank / plan.tensor;
  return {.tensor = rank % plan.tensor,
          .data = replica % plan.data_degree,
          .pipeline = replica / plan.data_degree};
}

std::int64_t rank_of(const ParallelPlan& plan, Coordinates at) {
  return (at.pipeline * plan.data_degree + at.data) * plan.tensor + at.tensor;
}

std::vector<std::vector<std::int64_t>> groups(const ParallelPlan& plan, GroupKind kind) {
  switch (kind) {
    case GroupKind::tensor:
      return along(plan, &Coordinates::tensor, plan.tensor);
    case GroupKind::data:
      return along(plan, &Coordinates::data, plan.data_degree);
    case GroupKind::world: {
      Group world(static_cast<std::size_t>(plan.ranks()));
      std::iota(world.begin(), world.end(), 0);
      return {world};
    }
    case GroupKind::pipeline_forward:
      return neighbours(plan, true);
    case GroupKind::pipeline_backward:
      return neighbours(plan, false);
    case GroupKind::embedding:
      return first_and_last(plan);
  }
  throw BrokenPromise("unknown kind of group");
}

void check(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
           const std::string& where) {
  check_shape(shape, where);
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::int64_t>{"data degree", plan.data_degree},
        {"tensor degree", plan.tensor},
        {"pipeline degree", plan.pipeline},
        {"micro_batch", batch.micro_batch},
        {"micro_batches", batch.micro_batches},
        {"sequence", batch.sequence}})
    check_positive(name, value, where);
  if (plan.prefetch < 0)
    throw InputError(where, "prefetch is " + text(plan.prefetch), "it must be at least 0");
  if (!shape.rope && batch.sequence > shape.max_positions)
    throw InputError(where,
                     "sequence " + text(batch.sequence) + " is longer than the model's " +
                         text(shape.max_positions) + " positions",
                     "shorten model.sequence or raise max_positions");
  if (plan.pipeline > shape.layers)
    throw InputError(where,
                     "pipeline degree " + text(plan.pipeline) + " exceeds the " +
                         text(shape.layers) + " layers of the model",
                     "a stage needs at least one layer");
  check_tensor(shape, plan, batch, where);
}

void check(const Precision& precision, const std::string& where) {
  if (precision.compute == Dtype::fp8)
    throw InputError(where, "fp8 training is not modelled", "take bf16 or fp16");
  if (precision.gradient_reduce == Dtype::fp8 || precision.gradient_reduce == Dtype::tf32)
    throw InputError(where, "gradients cannot be reduced in this precision",
                     "take fp32, bf16 or fp16");
}

std::int64_t layers_of_stage(std::int64_t layers, std::int64_t stages, std::int64_t stage) {
  expects(stage >= 0 && stage < stages && layers >= stages, "a stage of the pipeline");
  return layers / stages + (stage < layers % stages ? 1 : 0);
}

}  // namespace stepcast::workloads
