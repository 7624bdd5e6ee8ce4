#include "workloads/step/framework_rules.hpp"

#include "engine/check.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::workloads {
namespace {

using Asked = const FrameworkPlan&;

std::string name_of(const Software& software) {
  return software.framework + " " + software.version;
}

/// "ddp, zero1"
std::string text_of(DataKinds kinds) {
  std::string out;
  for (const DataParallel kind :
       {DataParallel::ddp, DataParallel::zero1, DataParallel::zero2, DataParallel::zero3})
    if (kinds.has(kind)) out += (out.empty() ? "" : ", ") + std::string(workloads::name_of(kind));
  return out;
}

std::string text_of(const Schedules& schedules) {
  std::string out;
  for (int i = 0; i < num_schedules; ++i) {
    const auto schedule = static_cast<Schedule>(i);
    if (!schedules.has(schedule)) continue;
    out += (out.empty() ? "" : ", ");
    out += schedule == Schedule::listed ? "orders from files" : workloads::name_of(schedule);
  }
  return out;
}

/// Megatron-FSDP came to Megatron core with 0.12 (--use-custom-fsdp, later --use-megatron-fsdp),
/// and NeMo 2 and Megatron-Bridge are built on that core.
bool has_megatron_fsdp(const Software& software) {
  return software.framework == "megatron-core" || software.framework == "nemo";
}

std::string runs_hint(Asked a) {
  std::string out = "it runs " + text_of(runnable_kinds(a.software, a.plan.pipeline > 1));
  if (has_megatron_fsdp(a.software) && !a.software.data.use_megatron_fsdp)
    out += "; with use_megatron_fsdp = true in [software] zero2 and zero3 as well";
  return out;
}

constexpr Dispatcher all_dispatchers[] = {Dispatcher::all_gather, Dispatcher::all_to_all,
                                          Dispatcher::node_aware, Dispatcher::nvlink_domain};

std::int64_t heads_of_rank(Asked a) { return RankWidths(a.shape, a.plan.tensor).heads; }

bool by_operators(Asked a) { return operators_again(a.plan, a.software); }

constexpr Rule<FrameworkPlan> framework_table[] = {
    {"framework",
     [](Asked a) { return a.software.own() && attention_beyond_llama(a.shape) != nullptr; },
     [](Asked a) {
       const char* what = attention_beyond_llama(a.shape);
       return name_of(a.software) + " has no " + (what != nullptr ? what : "other layers");
     },
     [](Asked) { return std::string("its trainers run dense Llama and GPT layers"); }},
    {"framework", [](Asked a) { return a.software.own() && adapted(a.shape); },
     [](Asked a) { return name_of(a.software) + " trains no adapters"; },
     [](Asked) { return std::string("leave lora_rank out, or take another framework"); }},
    {"lora_experts",
     [](Asked a) {
       return adapted(a.shape) && a.shape.lora.experts && a.shape.experts.count > 0 &&
              !a.software.fused();
     },
     [](Asked a) { return name_of(a.software) + " puts no adapters beside experts"; },
     [](Asked) { return std::string("megatron-core and nemo do: else lora_experts = false"); }},
    {"use_megatron_fsdp",
     [](Asked a) { return a.software.data.use_megatron_fsdp && !has_megatron_fsdp(a.software); },
     [](Asked a) { return "use_megatron_fsdp with " + name_of(a.software); },
     [](Asked) { return std::string("it is a flag of megatron-core and nemo"); }},
    {"data", [](Asked a) { return !runnable_kinds(a.software, false).has(a.plan.data); },
     [](Asked a) {
       return name_of(a.software) + " cannot run data = \"" +
              std::string(workloads::name_of(a.plan.data)) + "\"";
     },
     runs_hint, "data"},
    {"pipeline",
     [](Asked a) { return a.plan.pipeline > 1 && runnable_kinds(a.software, true).empty(); },
     [](Asked a) { return name_of(a.software) + " has no pipeline stages"; },
     [](Asked) { return std::string("take pipeline = 1"); }, "pipeline"},
    {"pipeline",
     [](Asked a) {
       return a.plan.pipeline > 1 && !runnable_kinds(a.software, true).has(a.plan.data);
     },
     [](Asked a) {
       return name_of(a.software) + " cannot run data = \"" +
              std::string(workloads::name_of(a.plan.data)) + "\" with pipeline stages";
     },
     [](Asked a) { return "with stages " + runs_hint(a); }, "data"},
    {"schedule",
     [](Asked a) {
       return (a.plan.pipeline > 1 || a.plan.schedule > Schedule::one_f_one_b) &&
              !a.software.pipeline.schedules.has(a.plan.schedule);
     },
     [](Asked a) {
       return name_of(a.software) + " cannot run " +
              (a.plan.schedule == Schedule::listed
                   ? "an order from a file"
                   : "schedule = \"" + std::string(workloads::name_of(a.plan.schedule)) + "\"");
     },
     [](Asked a) {
       return "it runs " + text_of(a.software.pipeline.schedules) +
              "; software.schedules says what a changed one runs";
     },
     "schedule"},
    // The gradients of two copies of a unit would have to be summed before each reduction.
    {"schedule",
     [](Asked a) {
       const bool units = a.plan.data == DataParallel::zero3 ||
                          (a.plan.data == DataParallel::zero2 &&
                           a.software.data.flat_parameters != FlatParameters::buckets);
       return a.plan.schedule == Schedule::dualpipe && units;
     },
     [](Asked) { return std::string("dualpipe with parameters that are sharded unit by unit"); },
     [](Asked) { return std::string("take data = \"zero1\", as DeepSeek does, or \"ddp\""); },
     "data"},
    {"tensor",
     [](Asked a) { return a.plan.tensor * a.plan.context > 1 && !a.software.tensor.cuts_layers; },
     [](Asked a) { return name_of(a.software) + " has no tensor or context parallelism"; },
     [](Asked) { return std::string("take tensor = 1 and context = 1"); }, "context"},
    {"tensor_overlap",
     [](Asked a) {
       return a.plan.tensor_overlap != TensorOverlap::none && a.plan.tensor > 1 &&
              !a.software.tensor.overlaps.has(a.plan.tensor_overlap);
     },
     [](Asked a) {
       return name_of(a.software) + " cannot run tensor_overlap = \"" +
              std::string(workloads::name_of(a.plan.tensor_overlap)) + "\"";
     },
     [](Asked) {
       return std::string(
           "userbuffers: megatron-core and nemo from 2023-10 on; async_tp: torchtitan, compiled; "
           "software.tensor_overlaps says what a changed one runs");
     }},
    {"tensor_overlap",
     [](Asked a) {
       return a.plan.tensor_overlap == TensorOverlap::async_tp && !a.software.compiled();
     },
     [](Asked a) { return "async_tp with " + name_of(a.software) + " as it is not compiled"; },
     [](Asked) { return std::string("Inductor finds what to pipeline: fusion = \"compiled\""); }},
    {"recompute",
     [](Asked a) { return by_operators(a) && !a.software.eager() && !a.software.compiled(); },
     [](Asked a) { return "recompute by operators with " + name_of(a.software); },
     [](Asked) {
       return std::string("torch's checkpoint does that: pytorch-fsdp2, torchtitan, hf-trainer");
     },
     "recompute"},
    {"recompute", [](Asked a) { return by_operators(a) && a.software.attention.keeps_scores(); },
     [](Asked) { return std::string("recompute by operators with scores kept in memory"); },
     [](Asked) { return std::string("what it saves is told of flash and cuDNN attention alone"); },
     "recompute"},
    {"recompute", [](Asked a) { return by_operators(a) && adapted(a.shape); },
     [](Asked) { return std::string("recompute by operators beside adapters"); },
     [](Asked) {
       return std::string("which of the adapters' products it saves is not told: recompute = full");
     },
     "recompute"},
    {"recompute_modules",
     [](Asked a) { return by_operators(a) && !a.plan.recompute_modules.empty(); },
     [](Asked) { return std::string("recompute_modules beside recompute by operators"); },
     [](Asked) {
       return std::string("either names parts of a layer, or the operators that stay");
     }},
    {"loss_form",
     [](Asked a) {
       return a.software.loss.form != LossForm::whole &&
              (a.software.own() || masked(a.shape) || a.shape.mtp_layers > 0 ||
               a.software.loss.gathered_logits);
     },
     [](Asked) { return std::string("a loss in parts with this model or software"); },
     [](Asked) {
       return std::string(
           "it is told of torch's loss of the next token alone: loss_form = \"whole\"");
     }},
    {"loss_form",
     [](Asked a) { return a.software.loss.form == LossForm::fused_linear && a.plan.tensor > 1; },
     [](Asked a) {
       return "fused_linear loss on " + std::to_string(a.plan.tensor) + " tensor ranks";
     },
     [](Asked) { return std::string("its kernel needs the whole head: tensor = 1"); }},
    {"activation_offload",
     [](Asked a) {
       return a.software.own() &&
              (a.plan.offload.activations > 0.0 || a.plan.offload.optimizer > 0.0);
     },
     [](Asked a) { return name_of(a.software) + " offloads nothing"; },
     [](Asked) { return std::string("megatron-core, nemo and deepspeed do"); }},
    {"optimizer_offload",
     [](Asked a) {
       const bool fsdp = a.software.data.flat_parameters != FlatParameters::buckets;
       const bool units =
           a.plan.data == DataParallel::zero3 || (a.plan.data == DataParallel::zero2 && fsdp);
       return a.plan.offload.optimizer > 0.0 && !units && a.software.data.autocast;
     },
     [](Asked) { return std::string("optimizer_offload of parameters without an fp32 copy"); },
     [](Asked) { return std::string("autocast keeps fp32 weights: take data = \"zero3\""); }},
    {"optimizer_offload",
     [](Asked a) {
       const bool fsdp = a.software.data.flat_parameters != FlatParameters::buckets;
       const bool sharded =
           a.plan.data == DataParallel::zero2 || a.plan.data == DataParallel::zero3;
       return fsdp && sharded && a.plan.offload.optimizer != a.plan.offload.parameters;
     },
     [](Asked a) {
       return "optimizer_offload of " + name_of(a.software) + " without its parameters";
     },
     [](Asked) {
       return std::string(
           "FSDP's offload takes shards, gradients and states together: parameter_offload as "
           "large, "
           "data = \"zero3\"");
     }},
    {"optimizer_offload",
     [](Asked a) { return a.plan.offload.optimizer > 0.0 && a.software.optimizer.lamb(); },
     [](Asked) { return std::string("optimizer_offload of LAMB"); },
     [](Asked) { return std::string("the host's processors run Adam"); }},
    {"framework", [](Asked a) { return a.shape.experts.count > 0 && !a.software.experts.runs; },
     [](Asked a) { return name_of(a.software) + " has no layers of experts"; },
     [](Asked) {
       return std::string("megatron-core, nemo, torchtitan, deepspeed and trl run them");
     }},
    {"dispatcher",
     [](Asked a) {
       const ExpertPlan& expert = a.plan.expert;
       return a.shape.experts.count > 0 && expert.degree * a.plan.expert_tensor() > 1 &&
              !a.software.experts.dispatchers.has(expert.dispatcher);
     },
     [](Asked a) {
       if (a.software.experts.dispatchers.empty())
         return name_of(a.software) + " has no expert-parallel degree";
       return name_of(a.software) + " has no dispatcher \"" +
              std::string(workloads::name_of(a.plan.expert.dispatcher)) + "\"";
     },
     [](Asked a) {
       std::string out;
       for (const Dispatcher each : all_dispatchers)
         if (a.software.experts.dispatchers.has(each))
           out += (out.empty() ? "it has " : ", ") + std::string(workloads::name_of(each));
       return out.empty() ? "every rank has all of its experts: expert = 1" : out;
     }},
    {"expert_overlap", [](Asked a) { return a.plan.expert.overlap && !a.software.fused(); },
     [](Asked a) {
       return name_of(a.software) + " hides no exchange between experts under another micro-batch";
     },
     [](Asked) { return std::string("megatron-core and nemo do"); }},
    // One hardware queue keeps launches of all streams in order (Megatron core arguments.py).
    {"expert_overlap",
     [](Asked a) {
       return a.plan.expert.overlap && a.plan.tensor > 1 && a.software.tensor.overlap;
     },
     [](Asked) { return std::string("expert_overlap beside tensor_overlap"); },
     [](Asked) {
       return std::string(
           "tensor_overlap needs CUDA_DEVICE_MAX_CONNECTIONS = 1, expert_overlap more of them: "
           "tensor_overlap = false");
     }},
    {"context",
     [](Asked a) {
       return a.plan.context > 1 && a.software.attention.exchange == ContextExchange::all_to_all &&
              heads_of_rank(a) % a.plan.context != 0;
     },
     [](Asked a) {
       return "context degree " + std::to_string(a.plan.context) + " does not divide the " +
              std::to_string(heads_of_rank(a)) + " heads of a tensor rank";
     },
     [](Asked) {
       return std::string("context_exchange = \"all_to_all\" gives each rank a part of the heads");
     },
     "context"},
};

}  // namespace

std::span<const Rule<FrameworkPlan>> framework_rules() { return framework_table; }

DataKinds runnable_kinds(const Software& software, bool pipeline) {
  DataKinds kinds = pipeline ? software.data.pipeline_kinds : software.data.kinds;
  if (software.data.use_megatron_fsdp)
    for (const DataParallel kind : {DataParallel::zero2, DataParallel::zero3}) kinds.add(kind);
  return kinds;
}

ReduceWhen usual_reduction(const ParallelPlan& plan, const Software& software) {
  const bool each = software.data.reduce_each.has(plan.data) &&
                    (plan.pipeline == 1 || software.data.reduce_each_in_pipeline);
  return each ? ReduceWhen::each : ReduceWhen::last;
}

void check(const TransformerShape& shape, const ParallelPlan& plan, const Software& software,
           const std::string& where) {
  check_rules(framework_rules(), FrameworkPlan{shape, plan, software}, where);
}

}  // namespace stepcast::workloads
