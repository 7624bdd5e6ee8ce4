#include "workloads/plan/plan.hpp"

#include <string_view>
#include <utility>

#include "engine/check.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/rules.hpp"
#include "workloads/plan/shape_rules.hpp"

namespace stepcast::workloads {
namespace {

std::string text(std::int64_t v) { return std::to_string(v); }

void check_positive(std::string_view name, std::int64_t value, const std::string& where) {
  if (value < 1)
    throw InputError(where, std::string(name) + " is " + text(value), "it must be at least 1");
}

void check_shape(const TransformerShape& s, const std::string& where) {
  for (const auto& [name, value] : {std::pair<std::string_view, std::int64_t>{"layers", s.layers},
                                    {"hidden", s.hidden},
                                    {"heads", s.heads},
                                    {"kv_heads", s.kv_heads},
                                    {"head_dim", s.head_dim},
                                    {"vocab", s.vocab}})
    check_positive(name, value, where);
  if (learned_positions(s)) check_positive("max_positions", s.max_positions, where);
  if (s.heads % s.kv_heads != 0)
    throw InputError(where,
                     "kv_heads " + text(s.kv_heads) + " does not divide heads " + text(s.heads),
                     "query heads share key and value heads in equal groups");
  check_rules(shape_rules(), s, where);
  check_rules(lora_rules(), s, where);
}

}  // namespace

std::int64_t bits_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
    case Dtype::tf32:
      return 32;
    case Dtype::bf16:
    case Dtype::fp16:
      return 16;
    case Dtype::fp8:
    case Dtype::fp8_block:
    case Dtype::mxfp8:
      return 8;
    case Dtype::nvfp4:
      return 4;
  }
  throw BrokenPromise("unknown dtype");
}

std::int64_t bytes_per_element(Dtype dtype) {
  const std::int64_t bits = bits_per_element(dtype);
  expects(bits % 8 == 0, "a type of whole bytes");
  return bits / 8;
}

Placement placement_of(Schedule schedule, const SharedOrders& orders) {
  switch (schedule) {
    case Schedule::gpipe:
    case Schedule::one_f_one_b:
    case Schedule::zb_h1:
    case Schedule::zb_h2:
      return Placement::looped;
    case Schedule::zb_v:
    case Schedule::dualpipe_v:
      return Placement::folded;
    case Schedule::dualpipe:
      return Placement::mirrored;
    case Schedule::listed:
      expects(orders.list != nullptr, "a listed schedule with its orders");
      return orders.list->placement;
  }
  throw BrokenPromise("unknown schedule");
}

std::int64_t part_at(Placement placement, std::int64_t stages, std::int64_t stage,
                     std::int64_t chunk) {
  switch (placement) {
    case Placement::looped:
      return chunk * stages + stage;
    case Placement::folded:
      return chunk == 0 ? stage : 2 * stages - 1 - stage;
    case Placement::mirrored:
      return chunk == 0 ? stage : stages - 1 - stage;
  }
  throw BrokenPromise("unknown placement");
}

Placement ParallelPlan::placement() const { return placement_of(schedule, orders); }

std::int64_t ParallelPlan::part_of(std::int64_t stage, std::int64_t chunk) const {
  return part_at(placement(), pipeline, stage, chunk);
}

bool ParallelPlan::has_part(std::int64_t stage, std::int64_t part) const {
  for (std::int64_t chunk = 0; chunk < virtual_stages; ++chunk)
    if (part_of(stage, chunk) == part) return true;
  return false;
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
  check_rules(unwritten_models(), shape, where);
  check_positive("expert degree", plan.expert.degree, where);
  check_rules(plan_rules(), PlanCase{shape, plan, batch}, where);
  check_rules(expert_rules(), PlanCase{shape, plan, batch}, where);
  check_rules(lora_plan_rules(), PlanCase{shape, plan, batch}, where);
}

void check(const Precision& precision, const std::string& where) {
  if (bits_per_element(precision.compute) < 16)
    throw InputError(where, "compute is the type of activations between products",
                     "take bf16; recipe = \"fp8_current\" is what products read");
  if (bits_per_element(precision.gradient_reduce) < 16 || precision.gradient_reduce == Dtype::tf32)
    throw InputError(where, "gradients cannot be reduced in this precision",
                     "take fp32, bf16 or fp16");
  if (precision.moments != Dtype::fp32 && precision.moments != Dtype::bf16)
    throw InputError(where, "Adam's moments cannot be kept in this precision", "take fp32 or bf16");
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
