// Names were read at the tags v0.2.0 and v0.5.0 of NVIDIA-NeMo/Megatron-Bridge: models/
// gpt_provider.py, models/olmoe/olmoe_provider.py (norms of whole queries and keys), models/gemma/
// gemma2_provider.py (a norm behind a product) and gemma3_provider.py, training/pretrain.py; fields
// of a provider are those of Megatron core's TransformerConfig.
#include "sim/launch/bridge_recipe.hpp"

#include <fmt/format.h>

#include "sim/launch/argument_text.hpp"
#include "sim/launch/forms.hpp"

namespace stepcast::sim {
namespace {

using workloads::NormPlace;

/// Gemma 3's text layers have a provider of their own.
bool is_gemma3(const Scenario& s) {
  return s.model.norm_place == NormPlace::both && s.model.qk_norm && s.model.window > 0 &&
         s.model.experts.count == 0;
}

/// Norms behind attention and MLP alone, and of whole queries and keys: OLMo 2 and 3.
bool is_olmo(const Scenario& s) {
  return s.model.norm_place == NormPlace::behind && s.model.qk_norm_whole;
}

const char* python(bool value) { return value ? "True" : "False"; }

constexpr const char* olmo_layers = R"(

def layers_with_norms_behind(config):
    return ModuleSpec(
        module=TransformerLayer,
        submodules=TransformerLayerSubmodules(
            self_attention=ModuleSpec(
                module=OLMoESelfAttention,
                params={"attn_mask_type": AttnMaskType.causal},
                submodules=SelfAttentionSubmodules(
                    linear_qkv=TEColumnParallelLinear,
                    core_attention=TEDotProductAttention,
                    linear_proj=TERowParallelLinearLayerNorm,
                    q_layernorm=TENorm,
                    k_layernorm=TENorm,
                ),
            ),
            self_attn_bda=get_bias_dropout_add,
            mlp=ModuleSpec(
                module=MLP,
                submodules=MLPSubmodules(
                    linear_fc1=TEColumnParallelLinear,
                    linear_fc2=TERowParallelLinearLayerNorm,
                ),
            ),
            mlp_bda=get_bias_dropout_add,
        ),
    )
)";

constexpr const char* olmo_imports =
    R"(from megatron.bridge.models.gemma.gemma2_provider import TERowParallelLinearLayerNorm
from megatron.bridge.models.olmoe.olmoe_provider import OLMoESelfAttention
from megatron.core.extensions.transformer_engine import (
    TEColumnParallelLinear,
    TEDotProductAttention,
    TENorm,
)
from megatron.core.fusions.fused_bias_dropout import get_bias_dropout_add
from megatron.core.transformer import ModuleSpec, TransformerLayer, TransformerLayerSubmodules
from megatron.core.transformer.attention import SelfAttentionSubmodules
from megatron.core.transformer.enums import AttnMaskType
from megatron.core.transformer.mlp import MLP, MLPSubmodules
)";

constexpr const char* entry = R"(

def with_overrides(config, words):
    for word in words:
        path, _, value = word.partition("=")
        *tables, field = path.split(".")
        table = config
        for name in tables:
            table = getattr(table, name)
        if not hasattr(table, field):
            sys.exit(path + " is no field of this release")
        setattr(table, field, yaml.safe_load(value))
    return config


if __name__ == "__main__":
    pretrain(
        config=with_overrides(stepcast_recipe(), sys.argv[1:]),
        forward_step_func=forward_step,
    )
)";

/// The model's fields, a line each.
class Provider {
 public:
  explicit Provider(const Scenario& scenario) : s_(scenario) {}

  std::string text() {
    sizes();
    if (is_gemma3(s_)) {
      set("window_size", s_.model.window);
      set("softmax_scale", fmt::format("{} ** -0.5", s_.model.hidden / s_.model.heads));
      return out_;
    }
    blocks();
    windows();
    if (s_.model.experts.count > 0) experts();
    if (is_olmo(s_)) set("transformer_layer_spec", "layers_with_norms_behind");
    return out_;
  }

 private:
  template <class T>
  void set(std::string_view name, const T& value) {
    out_ += fmt::format("        {}={},\n", name, value);
  }

  void sizes() {
    const auto& m = s_.model;
    set("num_layers", m.layers);
    set("hidden_size", m.hidden);
    set("ffn_hidden_size", m.ffn_hidden > 0 ? m.ffn_hidden : m.experts.ffn);
    set("num_attention_heads", m.heads);
    set("num_query_groups", m.kv_heads);
    set("kv_channels", m.head_dim);
    set("vocab_size", m.vocab);
    set("seq_length", s_.batch.sequence);
  }

  void blocks() {
    const auto& m = s_.model;
    set("normalization", m.norm == workloads::Norm::rmsnorm ? "\"RMSNorm\"" : "\"LayerNorm\"");
    if (m.activation == workloads::Activation::swiglu) {
      set("activation_func", "F.silu");
      set("gated_linear_unit", "True");
    }
    set("add_bias_linear", python(m.biases));
    set("add_qkv_bias", python(m.qkv_biases));
    set("share_embeddings_and_output_weights", python(m.tied_embeddings));
    set("position_embedding_type", m.rope ? "\"rope\"" : "\"learned_absolute\"");
    set("hidden_dropout", m.dropout ? "0.1" : "0.0");
    set("attention_dropout", m.dropout ? "0.1" : "0.0");
    if (m.qk_norm || m.qk_norm_whole) set("qk_layernorm", "True");
  }

  void windows() {
    if (s_.model.window == 0) return;
    set("window_size", fmt::format("({}, 0)", s_.model.window - 1));
    if (const std::string which = window_frequency(s_); !which.empty())
      set("window_attn_skip_freq", which);
  }

  void experts() {
    const auto& e = s_.model.experts;
    set("num_moe_experts", e.count);
    set("moe_router_topk", e.per_token);
    set("moe_ffn_hidden_size", e.ffn);
    if (e.shared_ffn > 0) set("moe_shared_expert_intermediate_size", e.shared_ffn);
    if (e.score == workloads::RouterScore::sigmoid) set("moe_router_score_function", "\"sigmoid\"");
    if (const std::string which = expert_frequency(s_); !which.empty())
      set("moe_layer_freq", which);
    set("moe_grouped_gemm", "True");
  }

  const Scenario& s_;
  std::string out_;
};

std::string own_provider(const Scenario& s) {
  const bool gemma = is_gemma3(s);
  const char* name = gemma ? "Gemma3ModelProvider" : "GPTModelProvider";
  std::string out = "import sys\n\nimport torch.nn.functional as F\nimport yaml\n";
  out += fmt::format("from megatron.bridge.models.{} import {}\n",
                     gemma ? "gemma.gemma3_provider" : "gpt_provider", name);
  if (is_olmo(s)) out += olmo_imports;
  out +=
      "from megatron.bridge.recipes.llama import llama31_8b_pretrain_config\n"
      "from megatron.bridge.training.gpt_step import forward_step\n"
      "from megatron.bridge.training.pretrain import pretrain\n";
  if (is_olmo(s)) out += olmo_layers;
  out += fmt::format(
      "\n\ndef stepcast_recipe():\n    config = llama31_8b_pretrain_config()\n"
      "    config.model = {}(\n{}    )\n    config.tokenizer.vocab_size = {}\n    return config\n",
      name, Provider(s).text(), s.model.vocab);
  return out + entry;
}

std::string around_recipe(const BridgeRecipe& recipe) {
  const std::string function = pretrain_function(recipe);
  return fmt::format(
      "import sys\n\nimport yaml\n"
      "from megatron.bridge.recipes.{0} import {1}\n"
      "from megatron.bridge.training.gpt_step import forward_step\n"
      "from megatron.bridge.training.pretrain import pretrain\n"
      "\n\ndef stepcast_recipe():\n    return {1}()\n{2}",
      recipe.family, function, entry);
}

}  // namespace

std::string bridge_provider_refusal(const Scenario& s) {
  const auto& m = s.model;
  if (is_gemma3(s)) return "";
  if (is_olmo(s) && (s.plan.tensor > 1 || m.kv_heads != m.heads))
    return "norms of whole queries and keys are there for tensor = 1 and for as many key heads as "
           "query heads alone (Megatron-Bridge's OLMoESelfAttention)";
  Scenario plain = s;
  plain.software.framework = "megatron-core";
  plain.software.version = fmt::format("0.{}", 13 + bridge_release(s.software.version));
  if (is_olmo(s)) {
    plain.model.norm_place = NormPlace::before;
    plain.model.qk_norm_whole = false;
  }
  const std::string why = megatron_model_refusal(plain);
  if (!why.empty())
    return fmt::format("Megatron-Bridge of NeMo {} has no recipe of {}, and {}", s.software.version,
                       m.name, why);
  if (m.latent.kv_rank > 0 || m.gate != workloads::AttentionGate::none || m.sinks ||
      m.mtp_layers > 0 || m.activation == workloads::Activation::squared_relu)
    return fmt::format(
        "Megatron-Bridge of NeMo {} has no recipe of {}; providers of Llama's layers, of experts "
        "and of windows are written here alone",
        s.software.version, m.name);
  return "";
}

std::string bridge_recipe_file(const Scenario& s, const BridgeRecipe* recipe) {
  return recipe != nullptr ? around_recipe(*recipe) : own_provider(s);
}

}  // namespace stepcast::sim
