// Megatron-Bridge's YAML.
#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/scenario/stage_layout.hpp"

namespace stepcast::sim {
namespace {

/// NVIDIA-NeMo/Megatron-Bridge at 067f987 (2026-08): what is laid over a recipe.
class BridgeFacts : public Translator {
 public:
  using Translator::Translator;

  void add(const Catalogue& catalogue) {
    for (const auto& [name, key] : {std::pair{"num_layers", "model.layers"},
                                    {"hidden_size", "model.hidden"},
                                    {"num_attention_heads", "model.heads"},
                                    {"num_query_groups", "model.kv_heads"},
                                    {"kv_channels", "model.head_dim"},
                                    {"ffn_hidden_size", "model.ffn_hidden"},
                                    {"vocab_size", "model.vocab"},
                                    {"seq_length", "model.sequence"},
                                    {"tensor_model_parallel_size", "plan.tensor"},
                                    {"pipeline_model_parallel_size", "plan.pipeline"},
                                    {"context_parallel_size", "plan.context"},
                                    {"virtual_pipeline_model_parallel_size", "plan.virtual_stages"},
                                    {"expert_model_parallel_size", "plan.expert"},
                                    {"expert_tensor_parallel_size", "plan.expert_tensor"}})
      if (const auto value = integer(("model." + std::string(name)).c_str()); value && *value > 0)
        set(key, *value);
    for (const char* name : {"dataset.sequence_length", "dataset.seq_length"})
      if (const auto value = integer(name)) set("model.sequence", *value);
    if (const auto value = integer("train.global_batch_size")) set("batch.global", *value);
    if (const auto value = integer("train.micro_batch_size")) set("batch.micro_batch", *value);
    for (const char* name : {"model.hf_model_id", "checkpoint.pretrained_checkpoint"})
      if (const std::string model = word(name); !model.empty() && !facts_.find("model.layers"))
        set_model_name(facts_, model, catalogue, source_);
    if (settings_.has("model.sequence_parallel"))
      set("plan.sequence_parallel", on("model.sequence_parallel"));
    const auto shards = settings_.flag("ddp.use_distributed_optimizer");
    set("plan.data", std::string(shards.value_or(true) ? "zero1" : "ddp"));
    for (const auto& [name, key] :
         {std::pair{"ddp.overlap_grad_reduce", "software.gradient_overlap"},
          {"ddp.overlap_param_gather", "software.gather_overlap"},
          {"model.moe_permute_fusion", "software.permute_fused"},
          {"model.moe_router_fusion", "software.router_fused"}})
      if (const auto value = settings_.flag(name)) set(key, *value);
    const std::string kind = word("model.recompute_granularity");
    set("plan.recompute", kind.empty() ? std::string("none") : kind);
    const std::string mixed = word("mixed_precision");
    if (mixed.find("fp16") != std::string::npos) set("precision.compute", std::string("fp16"));
    if (mixed.find("nvfp4") != std::string::npos) set("precision.recipe", std::string("nvfp4"));
    if (mixed.find("mxfp8") != std::string::npos)
      set("precision.recipe", std::string("mxfp8"));
    else if (mixed.find("fp8_subchannel") != std::string::npos)
      set("precision.recipe", std::string("fp8_block"));
    else if (mixed.find("fp8_current") != std::string::npos)
      set("precision.recipe", std::string("fp8_current"));
    else if (mixed.find("fp8") != std::string::npos)
      set("precision.recipe", std::string("fp8_delayed"));
    if (const auto wide = settings_.flag("ddp.grad_reduce_in_fp32"))
      set("precision.gradient_reduce",
          std::string(*wide                                     ? "fp32"
                      : mixed.find("fp16") != std::string::npos ? "fp16"
                                                                : "bf16"));
    rest();
    set("software.framework", std::string("nemo"));
  }

 private:
  void rest() {
    const std::string type = word("model.moe_token_dispatcher_type");
    const bool hybrid = word("model.moe_flex_dispatcher_backend") == "hybridep";
    if (!type.empty())
      set("plan.dispatcher", std::string(type == "allgather"  ? "all_gather"
                                         : type == "alltoall" ? "all_to_all"
                                         : hybrid             ? "nvlink_domain"
                                                              : "node_aware"));
    if (const std::string layout = word("model.pipeline_model_parallel_layout"); !layout.empty())
      set_parts(facts_, parse_stage_layout(layout, source_).layers, source_);
  }
};

}  // namespace

void add_bridge_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                      const std::string& source) {
  BridgeFacts(facts, settings, "", source).add(catalogue);
}

}  // namespace stepcast::sim
