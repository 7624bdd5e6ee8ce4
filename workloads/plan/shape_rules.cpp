#include "workloads/plan/shape_rules.hpp"

#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using Shape = const TransformerShape&;

std::string count_text(std::int64_t v) { return std::to_string(v); }

std::int64_t experts_in_reach(Shape s) {
  return s.experts.count / s.experts.groups * s.experts.group_limit;
}

constexpr Rule<TransformerShape> rules_of_shapes[] = {
    {"ffn_hidden", [](Shape s) { return s.ffn_hidden < 1 && expert_layers(s) < s.layers; },
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
    {"dense_layers", [](Shape s) { return s.experts.count > 0 && expert_layers(s) < 1; },
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
