#include "sim/launch/forms.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;

bool shards_units(const Scenario& s) {
  return s.plan.data == DataParallel::zero2 || s.plan.data == DataParallel::zero3;
}

bool unusual_reduction(const Scenario& s) {
  return s.batch.micro_batches > 1 &&
         s.plan.reduce != workloads::usual_reduction(s.plan, s.software);
}

}  // namespace

std::vector<std::int64_t> part_layers(const Scenario& s) {
  std::vector<std::int64_t> out;
  for (std::int64_t part = 0; part < s.plan.parts(); ++part)
    out.push_back(workloads::layers_of_part(s.model.layers, s.plan, part));
  return out;
}

bool equal_parts(const Scenario& s) {
  const auto layers = part_layers(s);
  return std::ranges::adjacent_find(layers, std::ranges::not_equal_to()) == layers.end();
}

bool asks_gpipe(const Scenario& s) {
  return s.plan.schedule == workloads::Schedule::gpipe &&
         (s.plan.pipeline > 1 || s.batch.micro_batches > 1);
}

std::string torch_schedule(workloads::Schedule schedule) {
  switch (schedule) {
    case workloads::Schedule::zb_h1:
      return "InterleavedZeroBubble";
    case workloads::Schedule::zb_v:
      return "ZBVZeroBubble";
    case workloads::Schedule::dualpipe_v:
      return "DualPipeV";
    default:
      return "";
  }
}

bool not_torch_schedule(const Scenario& s) {
  return s.plan.schedule == workloads::Schedule::zb_h2 ||
         s.plan.schedule == workloads::Schedule::dualpipe;
}

std::string torch_schedule_refusal(const Scenario& s) {
  return "torch has no schedule " + std::string(workloads::name_of(s.plan.schedule));
}

DataMesh data_mesh(const Scenario& s) {
  if (s.plan.data == DataParallel::ddp) return {s.plan.copies(), 1};
  return {s.plan.shard_replicas(), s.plan.shards() / s.plan.context};
}

std::string mesh_refusal(const Scenario& s) {
  const auto& plan = s.plan;
  if (plan.data == DataParallel::zero1)
    return "fully_shard shards gradients as well: it has no zero1";
  if (plan.context > 1 && plan.data == DataParallel::ddp)
    return "context ranks share the shards of a parameter: there is no ddp beside them";
  if (plan.data != DataParallel::ddp && plan.shards() % plan.context != 0)
    return fmt::format("shard_degree {} is no multiple of the {} context ranks", plan.shards(),
                       plan.context);
  return "";
}

std::string torch_dtype(workloads::Dtype dtype) {
  switch (dtype) {
    case workloads::Dtype::fp32:
    case workloads::Dtype::tf32:  // a mode of fp32's products
      return "float32";
    case workloads::Dtype::bf16:
      return "bfloat16";
    case workloads::Dtype::fp16:
      return "float16";
    case workloads::Dtype::fp8:
    case workloads::Dtype::fp8_block:
    case workloads::Dtype::mxfp8:
    case workloads::Dtype::nvfp4:
      return "float8_e4m3fn";
  }
  throw BrokenPromise("a type without torch's name");
}

std::string other_reduction(const Scenario& s, workloads::Dtype summed) {
  return fmt::format(
      "precision.gradient_reduce = \"{}\" is not said: {} {} sums gradients of {} in {}.",
      word_for(dtype_names, s.precision.gradient_reduce), s.software.framework, s.software.version,
      word_for(dtype_names, s.precision.compute), word_for(dtype_names, summed));
}

std::string first_layers_note(const Scenario& s) {
  return fmt::format(
      "plan.recompute_every = {}: as many layers of each part are recomputed, but its first ones.",
      s.plan.recompute_every);
}

bool recomputes_all_or_none(const Scenario& s) {
  using enum workloads::Recompute;
  return s.plan.recompute == none || (s.plan.recompute == full && s.plan.recompute_every == 1);
}

bool stated_routing(const Scenario& s) {
  return s.model.experts.count > 0 &&
         (s.plan.routing.kind == workloads::RoutingKind::counts ||
          s.plan.routing.kind == workloads::RoutingKind::max_violation);
}
std::string routing_note() {
  return "[routing] has no argument: the model's router says how experts are loaded.";
}

bool leaves_layers(const Scenario& s) {
  return s.precision.recipe != workloads::Recipe::none &&
         s.precision.bf16_first_layers + s.precision.bf16_last_layers > 0;
}

std::string left_layers_note(const Scenario& s) {
  return fmt::format("precision.bf16_first_layers = {} and bf16_last_layers = {} are not said.",
                     s.precision.bf16_first_layers, s.precision.bf16_last_layers);
}

std::string recompute_module_words(const Scenario& s, std::string_view between) {
  using enum workloads::LayerModule;
  std::string out;
  for (const auto& [module, word] : {std::pair{attention_core, "core_attn"},
                                     {norm, "layernorm"},
                                     {latent_up, "mla_up_proj"},
                                     {expert_activation, "moe_act"},
                                     {mlp, "mlp"},
                                     {shared_experts, "shared_experts"},
                                     {workloads::LayerModule::experts, "moe"}})
    if (s.plan.recompute_modules.has(module) ||
        (module == attention_core && s.plan.recompute == workloads::Recompute::selective))
      out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

std::string_view context_exchange_word(const Scenario& s) {
  using enum workloads::ContextExchange;
  const workloads::ContextExchange kind = s.software.attention.exchange;
  return kind == all_gather ? "all_gather" : kind == all_to_all ? "a2a" : "p2p";
}

std::string torchrun(const Scenario& s, const std::string& program) {
  return fmt::format("torchrun --nnodes {} --nproc-per-node {} {}", s.nodes, s.gpus / s.nodes,
                     program);
}

std::vector<std::string> common_notes(const Scenario& s,
                                      std::initializer_list<std::string_view> said) {
  std::vector<std::string> out;
  if (!s.software_by_default.empty())
    out.push_back(
        fmt::format("{} {}: {}.", s.software.framework, s.software.version, s.software_by_default));
  if (unusual_reduction(s) && std::ranges::count(said, "plan.reduce") == 0)
    out.push_back(fmt::format("plan.reduce = \"{}\" is not said: {} {} does it otherwise.",
                              word_for(reduce_names, s.plan.reduce), s.software.framework,
                              s.software.version));
  if (shards_units(s) && s.plan.prefetch != 1 && std::ranges::count(said, "plan.prefetch") == 0)
    out.push_back(fmt::format("plan.prefetch = {} is not said.", s.plan.prefetch));
  if (s.plan.optimizer != workloads::Optimizer::adam &&
      std::ranges::count(said, "plan.optimizer") == 0)
    out.push_back(fmt::format("plan.optimizer = \"{}\" is not said.",
                              word_for(optimizer_form_names, s.plan.optimizer)));
  if (s.plan.optimizer_in_backward) out.emplace_back("plan.optimizer_in_backward is not said.");
  if (s.precision.compute == workloads::Dtype::tf32)
    out.emplace_back(
        "tf32 is a mode of PyTorch: torch.backends.cuda.matmul.allow_tf32 = True beside it.");
  for (const std::string& key : s.changed)
    if (key.starts_with("software.") && key != "software.framework" && key != "software.version" &&
        std::ranges::count(said, key) == 0)
      out.push_back(key + " is not said: the framework's version or the training script has it.");
  for (const NcclVariable& variable : s.nccl_variables)
    out.push_back(
        fmt::format("NCCL reads {}={} from the environment.", variable.name, variable.value));
  return out;
}

}  // namespace stepcast::sim
