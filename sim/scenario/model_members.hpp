// Keys of [model] that models of 2024 and later need, for members.hpp.
#pragma once

#include "sim/files/names.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::sim {

inline constexpr Names<workloads::RouterScore, 2> router_names{{
    {"softmax", workloads::RouterScore::softmax},
    {"sigmoid", workloads::RouterScore::sigmoid},
}};

inline constexpr Names<workloads::NormPlace, 3> norm_place_names{{
    {"before", workloads::NormPlace::before},
    {"both", workloads::NormPlace::both},
    {"behind", workloads::NormPlace::behind},
}};
inline constexpr Names<workloads::AttentionGate, 3> attention_gate_names{{
    {"none", workloads::AttentionGate::none},
    {"head", workloads::AttentionGate::head},
    {"element", workloads::AttentionGate::element},
}};

inline constexpr Names<workloads::LoraTarget, 7> lora_target_names{{
    {"q", workloads::LoraTarget::q},
    {"k", workloads::LoraTarget::k},
    {"v", workloads::LoraTarget::v},
    {"o", workloads::LoraTarget::o},
    {"gate", workloads::LoraTarget::gate},
    {"up", workloads::LoraTarget::up},
    {"down", workloads::LoraTarget::down},
}};
inline constexpr Names<workloads::LoraBase, 5> lora_base_names{{
    {"compute", workloads::LoraBase::compute},
    {"int8", workloads::LoraBase::int8},
    {"fp8", workloads::LoraBase::fp8},
    {"nf4", workloads::LoraBase::nf4},
    {"nf4_double", workloads::LoraBase::nf4_double},
}};

/// Keys of [model]: adapters, which are trained in its place.
template <class Lora, class Visitor>
void visit_lora(Lora& lora, Visitor&& visit) {
  visit.may({"lora_rank", "of adapters beside frozen products (LoRA); 0: all is trained",
             "lora-rank", "N"},
            lora.rank);
  visit.may({"lora_targets", "products with an adapter; else q and v, as PEFT has"}, lora.targets,
            lora_target_names);
  visit.may({"lora_base", "type of frozen products' weights: compute's, or narrower (QLoRA)"},
            lora.base, lora_base_names);
  visit.may({"lora_dropout", "of what adapters read"}, lora.dropout);
  visit.may({"lora_experts", "gate, up and down also beside a rank's experts, which share one"},
            lora.experts);
}

/// Keys of [model]: a mixture of experts.
template <class Experts, class Visitor>
void visit_experts(Experts& experts, Visitor&& visit) {
  visit.positive({"experts", "of a layer that has them"}, experts.count);
  visit.positive({"experts_per_token", "that a token goes to"}, experts.per_token);
  visit.positive({"expert_ffn", "width inside one expert"}, experts.ffn);
  visit.may({"expert_latent", "width that experts work in; 0: hidden"}, experts.latent);
  visit.may({"shared_expert_ffn", "width inside the experts that take every token"},
            experts.shared_ffn);
  visit.may({"shared_expert_gate", "a sigmoid weighs them"}, experts.shared_gate);
  visit.may({"expert_biases", "of router and experts"}, experts.biases);
  visit.may({"dense_layers", "first layers, which have no experts"}, experts.dense_layers);
  visit.positive({"expert_every", "of the layers after them every n-th has experts"},
                 experts.every);
  visit.may({"router", "how scores become weights"}, experts.score, router_names);
  visit.may({"router_bias", "of each expert, steers the choice"}, experts.score_bias);
  visit.positive({"router_groups", "of experts"}, experts.groups);
  visit.positive({"router_group_limit", "groups that a token may choose of"}, experts.group_limit);
}

/// Keys of [model]: what attention has beside heads.
template <class Model, class Visitor>
void visit_attention(Model& model, Visitor&& visit) {
  visit.positive({"latent_kv_rank", "latent attention (MLA): rank of keys and values"},
                 model.latent.kv_rank);
  visit.may({"latent_q_rank", "of queries; 0: they have none"}, model.latent.q_rank);
  visit.positive({"latent_nope", "of a head's q and k, without position"}, model.latent.nope);
  visit.positive({"latent_rope", "... with position"}, model.latent.rope);
  visit.positive({"latent_value", "of a head's v"}, model.latent.value);
  visit.may({"qkv_biases", "of q, k and v alone"}, model.qkv_biases);
  visit.may({"value_dim", "of a head's v; 0: head_dim"}, model.value_dim);
  visit.may({"values_are_keys", "no product makes v, but in layers with a window"},
            model.values_are_keys);
  visit.may({"qk_norm", "norms of each head's q and k"}, model.qk_norm);
  visit.may({"qk_norm_whole", "norms of all heads' q and k together"}, model.qk_norm_whole);
  visit.may({"attention_gate", "a sigmoid weighs attention's output"}, model.gate,
            attention_gate_names);
  visit.may({"window", "tokens that attention looks back; 0: all"}, model.window);
  visit.positive({"window_every", "every n-th layer has the window, from the first on"},
                 model.window_every);
  visit.may({"window_heads", "in layers with a window; 0: as in the others"}, model.window_heads);
  visit.may({"window_kv_heads", "... of keys and values"}, model.window_kv_heads);
  visit.may({"window_head_dim", "... width of one"}, model.window_head_dim);
  visit.may({"sinks", "a learned logit per head beside the scores"}, model.sinks);
  visit.positive({"index_heads", "of an index that chooses the keys of latent attention"},
                 model.index.heads);
  visit.positive({"index_dim", "of one of its heads"}, model.index.dim);
  visit.positive({"index_top", "keys that it chooses for each query"}, model.index.top);
}

/// Keys of [model]: layers without softmax attention.
template <class Model, class Visitor>
void visit_mixers(Model& model, Visitor&& visit) {
  visit.positive({"delta_key_heads", "gated delta rule: heads of queries and keys"},
                 model.delta.key_heads);
  visit.positive({"delta_value_heads", "of values"}, model.delta.value_heads);
  visit.positive({"delta_key_dim", "of a head's q and k"}, model.delta.key_dim);
  visit.positive({"delta_value_dim", "of a head's v"}, model.delta.value_dim);
  visit.positive({"ssm_heads", "state space (Mamba-2): heads"}, model.state_space.heads);
  visit.positive({"ssm_head_dim", "of one"}, model.state_space.head_dim);
  visit.positive({"ssm_groups", "heads that have B and C in common"}, model.state_space.groups);
  visit.positive({"ssm_state", "size of a state"}, model.state_space.state);
}

}  // namespace stepcast::sim
