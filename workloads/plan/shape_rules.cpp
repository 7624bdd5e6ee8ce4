#include "workloads/plan/shape_rules.hpp"

#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using Shape = const TransformerShape&;

std::string count_text(std::int64_t v) { return std::to_string(v); }

std::int64_t experts_in_reach(Shape s) {
  return s.experts.count / s.experts.groups * s.experts.group_limit;
}

template <class Is>
bool pattern_has(Shape s, Is is) {
  return !s.pattern.empty() && any_layer(s, is);
}
bool has_mixer(Shape s, Mixer mixer) {
  return pattern_has(s, [&](const LayerForm& f) { return f.mixer == mixer; });
}
bool has_states(Shape s) {
  return pattern_has(s, [](const LayerForm& f) { return has_state_space(f.mixer); });
}
/// A dense MLP as wide as ffn_hidden says.
bool needs_ffn(Shape s) {
  return any_layer(s, [](const LayerForm& f) { return f.mlp == Mlp::dense && f.ffn == 0; });
}
bool incomplete(const DeltaShape& d) {
  return d.key_heads < 1 || d.value_heads < 1 || d.key_dim < 1 || d.value_dim < 1;
}
bool incomplete(const StateSpaceShape& x) {
  return x.heads < 1 || x.head_dim < 1 || x.groups < 1 || x.state < 1;
}
bool windows_differ(Shape s) {
  return s.window_heads > 0 || s.window_kv_heads > 0 || s.window_head_dim > 0;
}
std::int64_t heads_of_window(Shape s) { return s.window_heads > 0 ? s.window_heads : s.heads; }
std::int64_t kv_heads_of_window(Shape s) {
  return s.window_kv_heads > 0 ? s.window_kv_heads : s.kv_heads;
}

constexpr Rule<TransformerShape> rules_of_shapes[] = {
    {"layer_pattern",
     [](Shape s) {
       return !s.pattern.empty() &&
              (s.window_every > 1 || s.experts.dense_layers > 0 || s.experts.every > 1);
     },
     [](Shape) {
       return std::string("layer_pattern beside window_every, dense_layers or expert_every");
     },
     [](Shape) { return std::string("the pattern says which layers have what"); }},
    {"layer_pattern", [](Shape s) { return std::ssize(s.pattern) > s.layers; },
     [](Shape s) {
       return "layer_pattern has " + count_text(std::ssize(s.pattern)) + " words for " +
              count_text(s.layers) + " layers";
     },
     [](Shape) { return std::string("a word a layer; fewer are repeated"); }},
    {"layer_pattern",
     [](Shape s) {
       return s.experts.count == 0 &&
              pattern_has(s, [](const LayerForm& f) { return f.experts(); });
     },
     [](Shape) { return std::string("layer_pattern has E, and the model no experts"); },
     [](Shape) { return std::string("state experts, experts_per_token and expert_ffn"); }},
    {"layer_pattern",
     [](Shape s) {
       return s.experts.count > 0 && !s.pattern.empty() &&
              !pattern_has(s, [](const LayerForm& f) { return f.experts(); });
     },
     [](Shape) { return std::string("the model has experts, and layer_pattern no E"); },
     [](Shape) { return std::string("leave the keys of experts out, or say which layers"); }},
    {"layer_pattern", [](Shape s) { return has_mixer(s, Mixer::window) && s.window == 0; },
     [](Shape) { return std::string("layer_pattern has W, and the model no window"); },
     [](Shape) { return std::string("state window, in tokens"); }},
    {"layer_pattern", [](Shape s) { return has_mixer(s, Mixer::delta) && incomplete(s.delta); },
     [](Shape) { return std::string("layer_pattern has G without all sizes of the delta rule"); },
     [](Shape) {
       return std::string(
           "state delta_key_heads, delta_value_heads, delta_key_dim and delta_value_dim");
     }},
    {"layer_pattern", [](Shape s) { return has_states(s) && incomplete(s.state_space); },
     [](Shape) { return std::string("layer_pattern has M or H without all sizes of states"); },
     [](Shape) { return std::string("state ssm_heads, ssm_head_dim, ssm_groups and ssm_state"); }},
    {"layer_pattern", [](Shape s) { return has_mixer(s, Mixer::reuse) && s.index.heads == 0; },
     [](Shape) { return std::string("layer_pattern has R, and the model no index"); },
     [](Shape) { return std::string("state index_heads, index_dim and index_top"); }},
    {"layer_pattern", [](Shape s) { return !s.pattern.empty() && masked(s); },
     [](Shape) { return std::string("layer_pattern with masked positions"); },
     [](Shape) { return std::string("its layers are all alike: leave it out"); }},
    {"delta_value_heads",
     [](Shape s) { return s.delta.key_heads > 0 && s.delta.value_heads % s.delta.key_heads != 0; },
     [](Shape s) {
       return "delta_key_heads " + count_text(s.delta.key_heads) + " do not divide " +
              count_text(s.delta.value_heads) + " delta_value_heads";
     },
     [](Shape) { return std::string("each head of keys serves equally many of values"); }},
    {"ssm_groups",
     [](Shape s) {
       return s.state_space.heads > 0 && s.state_space.heads % s.state_space.groups != 0;
     },
     [](Shape s) {
       return "ssm_groups " + count_text(s.state_space.groups) + " do not divide " +
              count_text(s.state_space.heads) + " ssm_heads";
     },
     [](Shape) { return std::string("groups are of one size"); }},
    {"index_heads",
     [](Shape s) { return s.index.heads > 0 && (s.index.dim < 1 || s.index.top < 1); },
     [](Shape) { return std::string("an index without index_dim or index_top"); },
     [](Shape) { return std::string("state both"); }},
    {"index_heads",
     [](Shape s) { return s.index.heads > 0 && (!latent(s) || s.latent.q_rank == 0); },
     [](Shape) { return std::string("an index beside attention that has no latent queries"); },
     [](Shape) { return std::string("it reads the queries' low rank: latent_q_rank"); }},
    {"window_heads", [](Shape s) { return windows_differ(s) && s.window == 0; },
     [](Shape) { return std::string("heads of windows, and the model has no window"); },
     [](Shape) { return std::string("state window, in tokens"); }},
    {"window_heads",
     [](Shape s) { return windows_differ(s) && heads_of_window(s) % kv_heads_of_window(s) != 0; },
     [](Shape s) {
       return count_text(kv_heads_of_window(s)) + " window_kv_heads do not divide " +
              count_text(heads_of_window(s)) + " heads";
     },
     [](Shape) { return std::string("each key/value head serves equally many query heads"); }},
    {"latent_kv_rank",
     [](Shape s) {
       return latent(s) && (windows_differ(s) || s.value_dim > 0 || s.values_are_keys ||
                            s.gate != AttentionGate::none || s.qk_norm_whole);
     },
     [](Shape) {
       return std::string(
           "latent attention with heads of windows, a value_dim, a gate or norms of heads");
     },
     [](Shape) { return std::string("its heads are all alike, of latent_value"); }},
    {"qk_norm_whole", [](Shape s) { return s.qk_norm && s.qk_norm_whole; },
     [](Shape) { return std::string("both qk_norm and qk_norm_whole"); },
     [](Shape) { return std::string("a norm of each head, or one of all together"); }},
    {"values_are_keys", [](Shape s) { return s.values_are_keys && s.value_dim > 0; },
     [](Shape) { return std::string("values_are_keys with a value_dim"); },
     [](Shape) { return std::string("they are as wide as keys"); }},
    {"norm_place", [](Shape s) { return masked(s) && s.norm_place != NormPlace::before; },
     [](Shape) { return std::string("norm_place with masked positions"); },
     [](Shape) { return std::string("leave it at \"before\""); }},
    {"ffn_hidden", [](Shape s) { return s.ffn_hidden < 1 && needs_ffn(s); },
     [](Shape s) { return "ffn_hidden is " + count_text(s.ffn_hidden); },
     [](Shape) { return std::string("only where every layer has experts may it be left out"); }},
    {"experts_per_token",
     [](Shape s) {
       return s.experts.count > 0 &&
              (s.experts.per_token < 1 || s.experts.per_token > s.experts.count);
     },
     [](Shape s) {
       return "experts_per_token " + count_text(s.experts.per_token) + " of " +
              count_text(s.experts.count) + " experts";
     },
     [](Shape) { return std::string("a token goes to at least one, and to each once"); }},
    {"expert_ffn", [](Shape s) { return s.experts.count > 0 && s.experts.ffn < 1; },
     [](Shape) { return std::string("experts without expert_ffn"); },
     [](Shape) { return std::string("state the width inside one expert"); }},
    {"dense_layers",
     [](Shape s) { return s.pattern.empty() && s.experts.count > 0 && expert_layers(s) < 1; },
     [](Shape s) {
       return "no layer has experts: " + count_text(s.experts.dense_layers) + " of " +
              count_text(s.layers) + " are dense, of the others every " +
              count_text(s.experts.every) + ". has";
     },
     [](Shape) { return std::string("lower dense_layers or expert_every"); }},
    {"router_groups",
     [](Shape s) { return s.experts.count > 0 && s.experts.count % s.experts.groups != 0; },
     [](Shape s) {
       return "router_groups " + count_text(s.experts.groups) + " do not divide " +
              count_text(s.experts.count) + " experts";
     },
     [](Shape) { return std::string("groups are of one size"); }},
    {"router_group_limit",
     [](Shape s) {
       return s.experts.count > 0 && (s.experts.group_limit > s.experts.groups ||
                                      experts_in_reach(s) < s.experts.per_token);
     },
     [](Shape s) {
       return "router_group_limit " + count_text(s.experts.group_limit) + " of " +
              count_text(s.experts.groups) + " groups leaves a token " +
              count_text(experts_in_reach(s)) + " experts to choose " +
              count_text(s.experts.per_token) + " of";
     },
     [](Shape) { return std::string("groups that it may choose of times their experts"); }},
    {"latent_kv_rank",
     [](Shape s) {
       const LatentShape& l = s.latent;
       return latent(s) && (l.nope < 1 || l.rope < 1 || l.value < 1);
     },
     [](Shape) { return std::string("latent attention without all sizes of a head"); },
     [](Shape) { return std::string("state latent_nope, latent_rope and latent_value"); }},
    {"kv_heads", [](Shape s) { return latent(s) && s.kv_heads != s.heads; },
     [](Shape s) {
       return "latent attention with " + count_text(s.kv_heads) + " kv_heads for " +
              count_text(s.heads) + " heads";
     },
     [](Shape) { return std::string("keys and values of every head come out of the low rank"); }},
    {"latent_rope", [](Shape s) { return latent(s) && !s.rope; },
     [](Shape) { return std::string("latent attention without rotary positions"); },
     [](Shape) { return std::string("leave rope = true: a part of each head is rotated"); }},
    {"latent_kv_rank", [](Shape s) { return latent(s) && (s.biases || s.qkv_biases || s.qk_norm); },
     [](Shape) { return std::string("latent attention with biases or norms of heads"); },
     [](Shape) { return std::string("it has norms of its low ranks, and no biases"); }},
    {"window", [](Shape s) { return masked(s) && s.window > 0; },
     [](Shape) { return std::string("a window over masked positions"); },
     [](Shape) { return std::string("it looks back: objective next_token"); }},
    {"mtp_layers", [](Shape s) { return masked(s) && s.mtp_layers > 0; },
     [](Shape) { return std::string("further tokens predicted beside masked ones"); },
     [](Shape) { return std::string("mtp_layers go with objective next_token"); }},
};

std::string not_yet(Shape) { return "its parameters and FLOPs: stepcast show models NAME"; }

constexpr Rule<TransformerShape> rules_of_steps[] = {
    {"mtp_layers", [](Shape s) { return s.mtp_layers > 1; },
     [](Shape) {
       return std::string(
           "more than one module for further tokens (MTP) is not modelled in a step");
     },
     not_yet},
};

}  // namespace

std::span<const Rule<TransformerShape>> shape_rules() { return rules_of_shapes; }
std::span<const Rule<TransformerShape>> unwritten_models() { return rules_of_steps; }

}  // namespace stepcast::workloads
