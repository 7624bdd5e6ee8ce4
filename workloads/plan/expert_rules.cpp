#include <algorithm>
#include <numeric>

#include "workloads/plan/rules.hpp"

namespace stepcast::workloads {
namespace {

using Held = const PlanCase&;

std::string text_of(std::int64_t v) { return std::to_string(v); }

bool has_experts(Held a) { return a.shape.experts.count > 0; }

/// Dispatchers made of NCCL's collectives, which send rows as they are from all SMs that NCCL
/// takes.
bool sent_by_nccl(Held a) {
  const Dispatcher dispatcher = a.plan.expert.dispatcher;
  return dispatcher == Dispatcher::all_gather || dispatcher == Dispatcher::all_to_all;
}

std::int64_t ranks_of_stage(Held a) { return a.plan.copies() * a.plan.tensor; }

bool recomputes(Held a, LayerModule module) { return a.plan.recompute_modules.has(module); }

/// Whether the schedule has a forward run together with a backward.
bool pairs_passes(const ParallelPlan& plan) {
  switch (plan.schedule) {
    case Schedule::one_f_one_b:
    case Schedule::dualpipe:
    case Schedule::dualpipe_v:
      return true;
    case Schedule::listed:
      return std::ranges::any_of(plan.orders.list->stages, [](const std::vector<Turn>& turns) {
        return std::ranges::any_of(turns, &Turn::paired);
      });
    default:
      return false;
  }
}

/// Reasons are Megatron core's (moe/README.md, arguments.py), as of 2026.
constexpr Rule<PlanCase> expert_table[] = {
    {"expert", [](Held a) { return !has_experts(a) && a.plan.expert.degree > 1; },
     [](Held a) { return "expert degree " + text_of(a.plan.expert.degree) + " without experts"; },
     [](Held) { return std::string("every layer of this model has a dense MLP"); }, "expert"},
    {"expert_tensor", [](Held a) { return !has_experts(a) && a.plan.expert.tensor > 0; },
     [](Held a) {
       return "expert_tensor degree " + text_of(a.plan.expert.tensor) + " without experts";
     },
     [](Held) { return std::string("every layer of this model has a dense MLP"); },
     "expert_tensor"},
    {"recompute_modules",
     [](Held a) {
       return !has_experts(a) &&
              (recomputes(a, LayerModule::expert_activation) ||
               recomputes(a, LayerModule::experts) || recomputes(a, LayerModule::shared_experts));
     },
     [](Held) {
       return std::string("recompute_modules names experts, of which the model has none");
     },
     [](Held) { return std::string("every layer of this model has a dense MLP"); }},
    {"recompute_modules",
     [](Held a) { return recomputes(a, LayerModule::latent_up) && a.shape.latent.kv_rank == 0; },
     [](Held) { return std::string("recompute_modules names latent_up without latent attention"); },
     [](Held) { return std::string("keys and values of this model have no low rank"); }},
    {"recompute_modules",
     [](Held a) {
       return !a.plan.recompute_modules.empty() && a.plan.recompute == Recompute::full;
     },
     [](Held) { return std::string("recompute_modules beside full recompute"); },
     [](Held) { return std::string("full recompute runs every part of a layer again"); }},
    {"expert",
     [](Held a) { return has_experts(a) && a.shape.experts.count % a.plan.expert.degree != 0; },
     [](Held a) {
       return does_not_divide("expert degree", a.plan.expert.degree, "the model's experts",
                              a.shape.experts.count);
     },
     [](Held a) { return divisors_hint(a.shape.experts.count); }, "expert"},
    {"expert",
     [](Held a) {
       return has_experts(a) &&
              ranks_of_stage(a) % (a.plan.expert.degree * a.plan.expert_tensor()) != 0;
     },
     [](Held a) {
       return does_not_divide("expert x expert_tensor degree",
                              a.plan.expert.degree * a.plan.expert_tensor(),
                              "the ranks of a pipeline stage,", ranks_of_stage(a));
     },
     [](Held a) {
       return "the experts' ranks are those of data x context x tensor; expert_tensor is " +
              text_of(a.plan.expert_tensor());
     },
     "expert_tensor"},
    {"expert_tensor",
     [](Held a) { return has_experts(a) && a.shape.experts.ffn % a.plan.expert_tensor() != 0; },
     [](Held a) {
       return does_not_divide("expert_tensor degree", a.plan.expert_tensor(), "expert_ffn",
                              a.shape.experts.ffn);
     },
     [](Held a) { return divisors_hint(a.shape.experts.ffn); }, "expert_tensor"},
    {"tensor",
     [](Held a) { return has_experts(a) && a.shape.experts.shared_ffn % a.plan.tensor != 0; },
     [](Held a) {
       return does_not_divide("tensor degree", a.plan.tensor, "shared_expert_ffn",
                              a.shape.experts.shared_ffn);
     },
     [](Held a) { return divisors_hint(a.shape.experts.shared_ffn); }, "tensor"},
    {"sequence_parallel",
     [](Held a) { return has_experts(a) && a.plan.tensor > 1 && !a.plan.sequence_parallel; },
     [](Held) { return std::string("experts beside tensor ranks without sequence_parallel"); },
     [](Held) {
       return std::string("a token is sent to its experts once: by the rank that has it");
     },
     "sequence_parallel"},
    {"shard_degree",
     [](Held a) {
       return has_experts(a) && a.plan.shard_degree != 0 && a.plan.shard_degree != a.plan.copies();
     },
     [](Held) { return std::string("shard_degree in a model of experts"); },
     [](Held) { return std::string("shards of experts in several copies are not modelled"); },
     "shard_degree"},
    {"pad_to_capacity",
     [](Held a) { return a.plan.expert.pad_to_capacity && a.plan.expert.capacity_factor == 0.0; },
     [](Held) { return std::string("pad_to_capacity without capacity_factor"); },
     [](Held) { return std::string("capacity_factor = 1.0 is the mean of all experts"); }},
    {"dispatch_dtype",
     [](Held a) {
       return has_experts(a) && sent_by_nccl(a) &&
              bits_per_element(a.plan.expert.dispatch_dtype) < 16;
     },
     [](Held) { return std::string("tokens of fewer than 16 bits through NCCL"); },
     [](Held) { return std::string("dispatcher = \"node_aware\" sends rows with their scales"); }},
    {"dispatch_dtype",
     [](Held a) {
       const std::int64_t bits = bits_per_element(a.plan.expert.dispatch_dtype);
       return bits < 8 || bits > 16;
     },
     [](Held) { return std::string("tokens are sent in 16 bits or in 8"); },
     [](Held) { return std::string("bf16, fp16, fp8, fp8_block or mxfp8"); }},
    {"exchange_sms",
     [](Held a) { return has_experts(a) && sent_by_nccl(a) && a.plan.expert.exchange_sms > 0; },
     [](Held) { return std::string("exchange_sms with a dispatcher of NCCL's collectives"); },
     [](Held) { return std::string("NCCL takes as many SMs as it has channels: [nccl]"); }},
    {"shared_expert_overlap",
     [](Held a) {
       return a.plan.expert.shared_overlap && has_experts(a) && a.shape.experts.shared_ffn == 0;
     },
     [](Held) { return std::string("shared_expert_overlap without shared experts"); },
     [](Held) { return std::string("the model's shared_expert_ffn is 0"); }},
    {"shared_expert_overlap",
     [](Held a) {
       return a.plan.expert.shared_overlap &&
              (a.plan.expert.dispatcher != Dispatcher::all_to_all || a.plan.expert.degree == 1);
     },
     [](Held) { return std::string("shared_expert_overlap without an all-to-all exchange"); },
     [](Held) {
       return std::string("shared experts run under the exchange of dispatcher = \"all_to_all\"");
     }},
    {"expert_overlap",
     [](Held a) {
       return a.plan.expert.overlap && (!has_experts(a) || a.plan.expert.degree == 1 ||
                                        a.plan.expert.dispatcher == Dispatcher::all_gather);
     },
     [](Held a) {
       return std::string("expert_overlap without ") +
              (!has_experts(a) ? "experts" : "tokens that are sent to other ranks");
     },
     [](Held) {
       return std::string(
           "it hides the exchange of dispatcher = \"all_to_all\", \"node_aware\" or "
           "\"nvlink_domain\" between 2 or more ranks");
     }},
    {"expert_overlap",
     [](Held a) {
       return a.plan.expert.overlap && a.plan.schedule == Schedule::one_f_one_b &&
              a.plan.pipeline > 1 && a.plan.virtual_stages == 1;
     },
     [](Held) { return std::string("expert_overlap in a pipeline with one chunk per stage"); },
     [](Held) {
       return std::string(
           "Megatron pairs the micro-batches of interleaved stages: virtual_stages = 2 or more");
     }},
    {"expert_overlap", [](Held a) { return a.plan.expert.overlap && !pairs_passes(a.plan); },
     [](Held a) {
       return "expert_overlap with schedule = \"" + std::string(name_of(a.plan.schedule)) + "\"";
     },
     [](Held) {
       return std::string("no forward runs beside a backward there; 1f1b, dualpipe, dualpipe_v do");
     }},
    {"expert_overlap",
     [](Held a) {
       return a.plan.expert.overlap &&
              (a.plan.recompute == Recompute::full || recomputes(a, LayerModule::experts));
     },
     [](Held) { return std::string("expert_overlap beside recompute of the exchange"); },
     [](Held) {
       return std::string(
           "backward would send the tokens once more; recompute_modules names parts that do not");
     }},
    {"expert_overlap", [](Held a) { return a.plan.expert.overlap && a.plan.expert.shared_overlap; },
     [](Held) { return std::string("expert_overlap beside shared_expert_overlap"); },
     [](Held) { return std::string("both would fill the time of the same exchange"); }},
    {"delay_wgrad", [](Held a) { return a.plan.expert.delay_wgrad && !a.plan.expert.overlap; },
     [](Held) { return std::string("delay_wgrad without expert_overlap"); },
     [](Held) { return std::string("weight gradients are put off to hide the exchange"); }},
    {"counts",
     [](Held a) {
       const Routing& r = a.plan.routing;
       return has_experts(a) && (r.kind == RoutingKind::counts || !r.counts.empty()) &&
              (r.kind != RoutingKind::counts || std::ssize(r.counts) != a.shape.experts.count ||
               std::accumulate(r.counts.begin(), r.counts.end(), 0.0) <= 0.0);
     },
     [](Held a) {
       return "routing has " + text_of(std::ssize(a.plan.routing.counts)) + " counts for " +
              text_of(a.shape.experts.count) + " experts" +
              (a.plan.routing.kind == RoutingKind::counts ? "" : ", and another kind");
     },
     [](Held) { return std::string("kind = \"counts\" takes one number for each expert"); }},
    {"max_violation",
     [](Held a) {
       const Routing& r = a.plan.routing;
       const ExpertShape& e = a.shape.experts;
       return has_experts(a) && r.kind == RoutingKind::max_violation &&
              (1.0 + r.max_violation) * static_cast<double>(e.per_token) >
                  static_cast<double>(e.count);
     },
     [](Held) {
       return std::string("max_violation gives an expert more rows than there are tokens");
     },
     [](Held a) {
       return "every token to one expert is " + text_of(a.shape.experts.count) + " / " +
              text_of(a.shape.experts.per_token) + " - 1";
     }},
};

}  // namespace

std::span<const Rule<PlanCase>> expert_rules() { return expert_table; }

}  // namespace stepcast::workloads
