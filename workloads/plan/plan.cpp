#include "workloads/plan/plan.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::workloads {
namespace {

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
  if (learned_positions(s)) check_positive("max_positions", s.max_positions, where);
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
    check_divides("tensor degree (sequence parallel)", p.tensor,
                  p.context == 1 ? "sequence" : "the sequence on a context rank,",
                  b.sequence / p.context, where);
}

/// Causal attention is balanced by giving every rank two chunks of the sequence, one from each end.
void check_context(const ParallelPlan& p, const Batch& b, const std::string& where) {
  if (p.context == 1) return;
  if (b.sequence % (2 * p.context) != 0)
    throw InputError(
        where,
        "sequence " + text(b.sequence) + " is no multiple of 2 x context degree " + text(p.context),
        "each rank holds two chunks of the sequence");
}

/// hsdp: the ranks that share a copy divide all copies.
void check_shards(const ParallelPlan& p, const std::string& where) {
  if (p.shard_degree == 0) return;
  if (p.data == DataParallel::ddp)
    throw InputError(where, "shard_degree " + text(p.shard_degree) + " with data = \"ddp\"",
                     "ddp shards nothing: take zero1, zero2 or zero3");
  check_positive("shard_degree", p.shard_degree, where);
  if (p.shard_degree == 1 && p.copies() > 1)
    throw InputError(where, "shard_degree is 1", "whole copies everywhere are data = \"ddp\"");
  check_divides("shard_degree", p.shard_degree, "data x context degree", p.copies(), where);
}

void check_stage_layers(const TransformerShape& s, const ParallelPlan& p,
                        const std::string& where) {
  const std::string numbers = "pipeline " + text(p.pipeline) + " x virtual_stages " +
                              text(p.virtual_stages) + " = " + text(p.parts());
  if (std::ssize(p.stage_layers) != p.parts())
    throw InputError(where, "stage_layers has " + text(std::ssize(p.stage_layers)) + " numbers",
                     "one for each part of the model: " + numbers);
  for (std::size_t k = 0; k < p.stage_layers.size(); ++k) {
    const bool end = p.parts() > 1 && (k == 0 || k + 1 == p.stage_layers.size());
    if (p.stage_layers[k] < (end ? 0 : 1))
      throw InputError(where,
                       "stage_layers gives part " + text(static_cast<std::int64_t>(k)) +
                           " of the model " + text(p.stage_layers[k]) + " layers",
                       "only the first and the last part may hold none");
  }
  const std::int64_t sum =
      std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), std::int64_t{0});
  if (sum != s.layers)
    throw InputError(where, "stage_layers add up to " + text(sum),
                     "the model has " + text(s.layers) + " layers");
}

void check_pipeline(const TransformerShape& s, const ParallelPlan& p, const Batch& b,
                    const std::string& where) {
  if (p.virtual_stages > 1) {
    if (p.pipeline == 1)
      throw InputError(where, "virtual_stages " + text(p.virtual_stages) + " without a pipeline",
                       "interleaving needs at least 2 stages");
    if (p.schedule != Schedule::one_f_one_b)
      throw InputError(where, "virtual_stages " + text(p.virtual_stages) + " with gpipe",
                       "only 1f1b is interleaved");
    const std::int64_t rounds = std::max<std::int64_t>(1, b.micro_batches / p.pipeline);
    if (b.micro_batches % rounds != 0)
      throw InputError(where,
                       "interleaved 1f1b cannot run " + text(b.micro_batches) +
                           " micro-batches on " + text(p.pipeline) + " stages",
                       "take a multiple of the pipeline degree");
  }
  if (!p.stage_layers.empty()) return check_stage_layers(s, p, where);
  if (p.parts() > s.layers)
    throw InputError(
        where,
        (p.virtual_stages > 1 ? "pipeline degree x virtual_stages " + text(p.parts()) + " exceeds"
                              : "pipeline degree " + text(p.pipeline) + " exceeds") +
            " the " + text(s.layers) + " layers of the model",
        "a stage needs at least one layer");
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
  const std::int64_t copy = rank / plan.tensor, replica = copy / plan.context;
  return {.tensor = rank % plan.tensor,
          .context = copy % plan.context,
          .data = replica % plan.data_degree,
          .pipeline = replica / plan.data_degree};
}

std::int64_t rank_of(const ParallelPlan& plan, Coordinates at) {
  const std::int64_t replica = at.pipeline * plan.data_degree + at.data;
  return (replica * plan.context + at.context) * plan.tensor + at.tensor;
}

void check(const TransformerShape& shape, const ParallelPlan& plan, const Batch& batch,
           const std::string& where) {
  check_shape(shape, where);
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::int64_t>{"data degree", plan.data_degree},
        {"tensor degree", plan.tensor},
        {"pipeline degree", plan.pipeline},
        {"context degree", plan.context},
        {"virtual_stages", plan.virtual_stages},
        {"micro_batch", batch.micro_batch},
        {"micro_batches", batch.micro_batches},
        {"sequence", batch.sequence}})
    check_positive(name, value, where);
  check_positive("recompute_every", plan.recompute_every, where);
  if (plan.recompute_every > 1 && plan.recompute != Recompute::full)
    throw InputError(where,
                     "recompute_every is " + text(plan.recompute_every) + " without full recompute",
                     "only whole layers are recomputed or kept one by one");
  if (plan.prefetch < 0)
    throw InputError(where, "prefetch is " + text(plan.prefetch), "it must be at least 0");
  if (learned_positions(shape) && batch.sequence > shape.max_positions)
    throw InputError(where,
                     "sequence " + text(batch.sequence) + " is longer than the model's " +
                         text(shape.max_positions) + " positions",
                     "shorten model.sequence or raise max_positions");
  check_pipeline(shape, plan, batch, where);
  check_context(plan, batch, where);
  check_shards(plan, where);
  check_tensor(shape, plan, batch, where);
}

void check(const Precision& precision, const std::string& where) {
  if (precision.compute == Dtype::fp8)
    throw InputError(where, "fp8 training is not modelled", "take bf16 or fp16");
  if (precision.gradient_reduce == Dtype::fp8 || precision.gradient_reduce == Dtype::tf32)
    throw InputError(where, "gradients cannot be reduced in this precision",
                     "take fp32, bf16 or fp16");
}

std::int64_t layers_of_stage(std::int64_t layers, std::int64_t parts, std::int64_t part) {
  expects(part >= 0 && part < parts && layers >= parts, "a part of the model");
  return layers / parts + (part < layers % parts ? 1 : 0);
}

std::int64_t layers_of_part(std::int64_t layers, const ParallelPlan& plan, std::int64_t part) {
  if (plan.stage_layers.empty()) return layers_of_stage(layers, plan.parts(), part);
  return plan.stage_layers.at(static_cast<std::size_t>(part));
}

}  // namespace stepcast::workloads
