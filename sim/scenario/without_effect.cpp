#include "sim/scenario/without_effect.hpp"

#include <algorithm>
#include <string_view>

#include "sim/scenario/goal_file.hpp"
#include "topology/fabric_layout.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

using S = const Scenario&;

/// `key` "noise." stands for the whole table. `idle` is whether it does nothing, and then `why`.
struct Rule {
  std::string_view key;
  bool (*idle)(S);
  std::string_view why;
};

bool collective(S s) { return s.collective.has_value(); }
bool one_node(S s) { return s.nodes == 1; }
bool one_stage(S s) { return !collective(s) && s.plan.pipeline == 1; }
bool one_turn(S s) { return one_stage(s) && s.batch.micro_batches == 1; }
bool one_tensor_rank(S s) { return !collective(s) && s.plan.tensor == 1; }
bool sharded(S s) {
  return workloads::StepInputs{s.model, s.plan, s.batch, s.precision, s.software}.sharded();
}
bool units(S s) { return !collective(s) && sharded(s); }
bool no_units(S s) { return !collective(s) && !sharded(s); }
bool ddp(S s) { return s.plan.data == workloads::DataParallel::ddp; }
bool no_buckets(S s) {
  return units(s) ||
         (!collective(s) && !s.software.data.gradient_overlap && (ddp(s) || s.plan.shards() == 1));
}
bool one_tier(S s) {
  return topology::lay_out_fabric(s.fabric, s.node, s.nodes, s.origin).num_tiers() <= 1;
}
bool sixteen_bits(S s) {
  return s.precision.recipe == workloads::Recipe::none ||
         s.precision.recipe == workloads::Recipe::nvfp4;
}
bool no_own_exchange(S s) {
  const workloads::ExpertPlan& experts = s.plan.expert;
  return collective(s) || experts.degree == 1 ||
         experts.dispatcher == workloads::Dispatcher::all_gather ||
         experts.dispatcher == workloads::Dispatcher::all_to_all;
}
bool eager(S s) { return s.software.eager(); }
bool fused(S s) { return s.software.fused(); }
bool rmsnorm(S s) { return s.model.norm == workloads::Norm::rmsnorm; }
bool swiglu(S s) { return s.model.activation == workloads::Activation::swiglu; }
bool no_recipe(S s) { return s.precision.recipe == workloads::Recipe::none; }
bool no_adapters(S s) { return !workloads::adapted(s.model); }
constexpr std::string_view says_no_adapters = "there are no adapters (lora_rank)";
bool always(S) { return true; }
bool no_jitter(S s) { return s.run.without.jitter || s.noise.kernel_sigma == 0.0; }
bool no_draws(S s) { return s.run.without.jitter || (no_jitter(s) && s.noise.gpu_sigma == 0.0); }

bool no_costs(S s) { return !asks_for_costs(s); }
bool no_run(S s) { return !s.goal.on(); }
bool rented(S s) { return no_costs(s) || !s.cost.own; }
bool owned(S s) { return no_costs(s) || s.cost.own; }
bool no_power(S s) { return no_costs(s) || s.power_count == PowerCount::tdp; }
bool no_network_power(S s) { return no_power(s) || s.nodes == 1; }

bool no_experts(S s) { return s.model.experts.count == 0; }
bool one_expert_rank(S s) { return no_experts(s) || s.plan.expert.degree == 1; }
bool not_latent(S s) { return !workloads::latent(s.model); }

using Form = workloads::LayerForm;
template <class Has>
bool has_layer(S s, Has has) {
  return workloads::any_layer(s.model, has);
}
bool no_window(S s) {
  return !has_layer(s, [](const Form& f) { return f.mixer == workloads::Mixer::window; });
}
bool no_index(S s) { return s.model.index.heads == 0; }
bool no_delta(S s) {
  return !has_layer(s, [](const Form& f) { return f.mixer == workloads::Mixer::delta; });
}
bool no_states(S s) {
  return !has_layer(s, [](const Form& f) { return workloads::has_state_space(f.mixer); });
}
constexpr const char* says_no_window = "no layer has a window";
constexpr const char* says_no_index = "attention has no index (index_heads)";
constexpr const char* says_no_delta = "no layer has the gated delta rule (layer_pattern)";
constexpr const char* says_no_states = "no layer has a state space (layer_pattern)";

bool no_offload(S s) {
  return s.plan.offload.activations == 0.0 && s.plan.offload.optimizer == 0.0;
}

bool no_8bit(S s) { return s.plan.optimizer != workloads::Optimizer::adam_8bit; }
constexpr const char* says_no_8bit = "no optimizer has moments of 8 bits (plan.optimizer)";

bool one_graph(S s) {
  return !collective(s) && s.software.host.graphs == workloads::Graphs::iteration;
}

constexpr const char* says_one_graph = "one graph launches all of the step (cuda_graphs)";
constexpr const char* says_no_experts = "the model has no experts";
constexpr const char* says_no_costs = "no whole run and no price is asked for";
constexpr const char* says_rented = "the hardware is rented, or no whole run is asked for";
constexpr const char* says_no_power =
    "no whole run and no price is asked for, or power is counted as TDP";
constexpr const char* says_not_latent = "attention is not latent (latent_kv_rank)";

// clang-format off
constexpr Rule rules[] = {
    {"model.max_positions", [](S s) { return !workloads::learned_positions(s.model); },
     "the model has no learned positions"},
    {"model.ffn_hidden",
     [](S s) { return !has_layer(s, [](const Form& f) { return f.mlp == workloads::Mlp::dense && f.ffn == 0; }); },
     "no layer has a dense MLP of this width"},
    {"model.expert_latent", no_experts, says_no_experts},
    {"model.experts_per_token", no_experts, says_no_experts},
    {"model.expert_ffn", no_experts, says_no_experts},
    {"model.shared_expert_ffn", no_experts, says_no_experts},
    {"model.shared_expert_gate",
     [](S s) { return no_experts(s) || s.model.experts.shared_ffn == 0; },
     "the model has no shared experts"},
    {"model.expert_biases", no_experts, says_no_experts},
    {"model.dense_layers", no_experts, says_no_experts},
    {"model.expert_every", no_experts, says_no_experts},
    {"model.router", [](S) { return true; }, "softmax and sigmoid move the same bytes"},
    {"model.router_bias", no_experts, says_no_experts},
    {"model.router_groups", no_experts, says_no_experts},
    {"model.router_group_limit", no_experts, says_no_experts},
    {"model.latent_q_rank", not_latent, says_not_latent},
    {"model.latent_nope", not_latent, says_not_latent},
    {"model.latent_rope", not_latent, says_not_latent},
    {"model.latent_value", not_latent, says_not_latent},
    {"model.head_dim", [](S s) { return workloads::latent(s.model); },
     "heads of latent attention are latent_nope + latent_rope wide"},
    {"model.qkv_biases", [](S s) { return s.model.biases; }, "all products have biases"},
    {"model.window", [](S s) { return s.model.window >= s.batch.sequence; },
     "no sequence is longer"},
    {"model.window", no_window, says_no_window},
    {"model.window_heads", no_window, says_no_window},
    {"model.window_kv_heads", no_window, says_no_window},
    {"model.window_head_dim", no_window, says_no_window},
    {"model.index_dim", no_index, says_no_index},
    {"model.index_top", no_index, says_no_index},
    {"model.index_top", [](S s) { return s.model.index.top >= s.batch.sequence; },
     "no sequence has more keys"},
    {"model.delta_key_heads", no_delta, says_no_delta},
    {"model.delta_value_heads", no_delta, says_no_delta},
    {"model.delta_key_dim", no_delta, says_no_delta},
    {"model.delta_value_dim", no_delta, says_no_delta},
    {"model.ssm_heads", no_states, says_no_states},
    {"model.ssm_head_dim", no_states, says_no_states},
    {"model.ssm_groups", no_states, says_no_states},
    {"model.ssm_state", no_states, says_no_states},
    {"model.logit_cap", [](S s) { return s.software.loss_is_one_kernel(); },
     "the loss's kernel has it"},
    {"model.window_every",
     [](S s) { return s.model.window == 0 || s.model.window >= s.batch.sequence; },
     "there is no window that a sequence is longer than"},

    {"plan.sequence_parallel", one_tensor_rank, "there is one tensor rank"},
    {"plan.tensor_overlap", one_tensor_rank, "there is one tensor rank"},
    {"plan.optimizer_offload_overlap", [](S s) { return s.plan.offload.optimizer == 0.0; },
     "no optimizer is offloaded"},
    {"plan.schedule", one_turn, "there is one pipeline stage and one micro-batch"},
    {"plan.reduce",
     [](S s) { return s.batch.micro_batches == 1 && s.plan.reduce != workloads::usual_reduction(s.plan, s.software); },
     "there is one micro-batch"},
    {"plan.prefetch", no_units, "no parameters are gathered unit by unit (zero2, zero3)"},

    {"precision.bf16_first_layers", no_recipe, "no recipe of low precision is on"},
    {"precision.bf16_last_layers", no_recipe, "no recipe of low precision is on"},
    {"precision.fp8_parameters", no_recipe, "no recipe of low precision is on"},

    {"model.lora_targets", no_adapters, says_no_adapters},
    {"model.lora_base", no_adapters, says_no_adapters},
    {"model.lora_dropout", no_adapters, says_no_adapters},
    {"model.lora_experts",
     [](S s) { return no_adapters(s) || no_experts(s) || !workloads::adapted_mlp(s.model); },
     "there are no adapters of gate, up or down in a model of experts"},
    {"software.cuts_layers", [](S s) { return s.plan.tensor * s.plan.context == 1; },
     "no plan cuts layers that it could allow"},
    {"software.use_megatron_fsdp", [](S s) { return ddp(s) || s.plan.data == workloads::DataParallel::zero1; },
     "it is about zero2 and zero3"},
    {"software.experts", no_experts, says_no_experts},
    {"software.recipes", always, "it says what may be asked for"},
    {"software.tensor_overlaps", always, "it says what may be asked for"},
    {"software.bf16_moments", always, "it says what may be asked for"},
    {"software.dispatchers", [](S s) { return no_experts(s) || s.plan.expert.degree == 1; },
     "no experts are on other ranks"},
    {"plan.dispatcher", [](S s) { return no_experts(s) || s.plan.expert.degree == 1; },
     "no experts are on other ranks"},
    {"plan.dispatch_dtype", [](S s) { return no_experts(s) || s.plan.expert.degree == 1 || workloads::bits_per_element(s.plan.expert.dispatch_dtype) == 16; },
     "no experts are on other ranks, or tokens go as they are"},
    {"plan.exchange_sms", [](S s) { return no_experts(s) || s.plan.expert.degree == 1; },
     "no experts are on other ranks"},
    {"plan.capacity_factor", no_experts, says_no_experts},
    {"plan.pad_to_capacity", no_experts, says_no_experts},
    {"plan.shared_expert_overlap", no_experts, says_no_experts},
    {"plan.expert_overlap", [](S s) { return s.plan.expert.overlap && s.batch.micro_batches == 1; },
     "there is one micro-batch, and no other to hide it under"},
    {"routing.", no_experts, says_no_experts},
    {"routing.kind", one_expert_rank, "a rank has all experts"},
    {"routing.seed", [](S s) { return one_expert_rank(s) || s.plan.routing.kind == workloads::RoutingKind::balanced || s.plan.routing.kind == workloads::RoutingKind::counts; },
     "nothing is drawn at random, or a rank has all experts"},
    {"routing.max_violation", [](S s) { return one_expert_rank(s) || s.plan.routing.kind != workloads::RoutingKind::max_violation; },
     "it is about kind = \"max_violation\", and a rank that has not all experts"},

    {"software.grouped_gemm", no_experts, says_no_experts},
    {"software.router_fused", no_experts, says_no_experts},
    {"software.permute_fused", no_experts, says_no_experts},
    {"software.host_sync", [](S s) { return no_experts(s) || s.plan.expert.pad_to_capacity; },
     "no host asks how many rows come"},
    {"software.nccl", [](S s) { return std::ranges::count(s.changed, "cluster.nccl") > 0; },
     "cluster.nccl says which"},
    {"software.reduce_each", [](S s) { return s.reduce.has_value() || s.batch.micro_batches == 1; },
     "plan.reduce says when, or there is one micro-batch"},
    {"software.reduce_each_in_pipeline",
     [](S s) { return s.reduce.has_value() || s.plan.pipeline == 1 || s.batch.micro_batches == 1; },
     "plan.reduce says when, or there is one pipeline stage or micro-batch"},
    {"software.stage_split",
     [](S s) { return !s.stage_layers.empty() || s.plan.pipeline == 1; },
     "plan.stage_layers says how, or there is one pipeline stage"},

    {"software.fused_norm",
     [](S s) { return !eager(s) || (s.software.composite_blocks && !rmsnorm(s)); },
     "it is about eager code with a norm of several kernels"},
    {"software.composite_blocks",
     [](S s) { return eager(s) && rmsnorm(s) && !s.software.norm.fused && swiglu(s); },
     "it is about layer norm and GELU"},
    {"software.fused_loss",
     [](S s) { return s.software.compiled() || s.software.own(); },
     "the loss is one kernel as it is"},
    {"software.loss_chunks",
     [](S s) { return s.software.loss.form != workloads::LossForm::chunks; },
     "loss_form is not \"chunks\""},
    {"software.loss_chunk_tokens",
     [](S s) { return s.software.loss.form != workloads::LossForm::checkpointed; },
     "loss_form is not \"checkpointed\""},
    {"software.selective_recompute",
     [](S s) { return s.plan.recompute != workloads::Recompute::selective; },
     "plan.recompute is not \"selective\""},
    {"software.master_remainders",
     [](S s) { return s.precision.moments != workloads::Dtype::bf16; },
     "precision.moments is not \"bf16\""},
    {"software.weighed_back", [](S s) { return !fused(s) || s.model.experts.count == 0; },
     "it is about fused kernels of experts"},
    {"software.weighed_wide",
     [](S s) { return fused(s) || s.software.own() || s.model.experts.count == 0; },
     "it is about experts of torch's operators"},
    {"software.operator_norms",
     [](S s) {
       return !fused(s) || s.model.experts.count == 0 ||
              s.model.norm_place != workloads::NormPlace::both;
     },
     "it is about fused kernels and experts with norms on both sides"},
    {"software.embedding_unit",
     [](S s) {
       return no_units(s) || s.model.tied_embeddings ||
              s.software.data.flat_parameters == workloads::FlatParameters::buckets;
     },
     "it is about FSDP's units and an embedding that is not tied"},
    {"software.expandable_segments",
     [](S s) {
       return s.software.memory.allocator == workloads::Allocator::planned || s.software.own();
     },
     "memory is planned before the run"},
    {"run.refuse_below", always, "the plan is not refused, which is all that it decides"},
    {"run.fits", [](S s) { return s.open.empty(); }, "no plan is searched for"},
    {"software.repeats_kv",
     [](S s) { return !s.software.eager() || s.model.kv_heads == s.model.heads; },
     "it is about eager code and groups of q heads"},
    {"software.gathered_logits", one_tensor_rank, "there is one tensor rank"},
    {"software.tensor_overlap", one_tensor_rank, "there is one tensor rank"},
    {"software.accumulation_fusion", [](S s) { return !fused(s) || sharded(s); },
     "it is about fused kernels and gradients that live in buckets"},
    {"software.keeps_exchanges",
     [](S s) {
       return !workloads::operators_again(s.plan, s.software) || s.model.experts.count == 0 ||
              s.plan.expert.degree == 1;
     },
     "no layer with experts on other ranks is recomputed by operators"},
    {"software.optimizer",
     [](S s) {
       return s.plan.optimizer == workloads::Optimizer::adam_8bit ||
              s.plan.optimizer == workloads::Optimizer::adafactor;
     },
     "plan.optimizer has kernels of its own"},
    {"software.moments_block", no_8bit, says_no_8bit},
    {"software.wide_embedding_moments", no_8bit, says_no_8bit},
    {"software.optimizer_states",
     [](S s) {
       return sharded(s) || s.software.own() || s.software.data.autocast ||
              workloads::bytes_per_element(s.precision.compute) == 4 ||
              (ddp(s) && s.precision.compute == s.precision.gradient_reduce);
     },
     "it is about 16-bit parameters that are not sharded, and gradients that are widened"},
    {"software.regathers_inputs",
     [](S s) {
       return fused(s) || s.software.own() || s.plan.tensor == 1 || !s.plan.sequence_parallel;
     },
     "it is about inputs that tensor ranks have cut, and fused kernels gather them again anyway"},
    {"software.reducer_buckets",
     [](S s) {
       return fused(s) || sharded(s) || s.software.own() || s.software.data.autocast ||
              s.plan.copies() == 1;
     },
     "it is about 16-bit gradients that torch DDP reduces"},
    {"software.pipeline_buffers",
     [](S s) { return s.plan.pipeline == 1 || s.batch.micro_batches == 1; },
     "there is one pipeline stage or micro-batch"},
    {"software.recompute_stops",
     [](S s) { return s.plan.recompute != workloads::Recompute::full; },
     "no layer is recomputed in full"},
    {"software.reentrant_recompute",
     [](S s) {
       return s.plan.recompute != workloads::Recompute::full || !sharded(s) ||
              !s.software.data.fsdp1() || !workloads::adapted(s.model);
     },
     "no layer of frozen weights that FSDP1 shards is recomputed in full"},
    {"software.flat_parameters",
     [](S s) { return ddp(s) || s.plan.data == workloads::DataParallel::zero1; },
     "parameters are not sharded"},
    {"software.gather_each_tensor", no_units, "no parameters are gathered unit by unit"},
    {"software.explicit_prefetch",
     [](S s) { return no_units(s) || (!collective(s) && s.software.data.gather_each_tensor); },
     "no parameters are gathered unit by unit, ahead of their use"},
    {"software.unit_overhead", no_units, "no parameters are gathered unit by unit"},
    {"software.rng_fork", [](S s) { return s.plan.tensor > 1 && s.plan.sequence_parallel; },
     "tensor ranks cut the sequence and draw alike"},
    {"software.gradient_hook", units, "gradients are reduced unit by unit"},
    {"software.reduce_copy_compute",
     [](S s) { return !sharded(s) || s.software.data.fsdp1(); },
     "it is about FSDP2"},
    {"software.pipeline_sync",
     [](S s) { return s.plan.pipeline == 1 || s.plan.virtual_stages > 1; },
     "it is about pipeline stages without virtual ones"},
    {"software.interleaved_overlap", [](S s) { return s.plan.virtual_stages == 1; },
     "there are no virtual stages"},
    {"software.scatter_gather_p2p",
     [](S s) { return s.plan.pipeline == 1 || s.plan.tensor == 1 || s.plan.sequence_parallel; },
     "it is about tensor ranks with whole activations between pipeline stages"},
    {"software.context_exchange", [](S s) { return s.plan.context == 1; },
     "there is one context rank"},
    {"software.ddp_bucket_bytes", no_buckets, "gradients are reduced unit by unit, or all at once"},
    {"software.ddp_bucket_bytes_per_rank", no_buckets, "gradients are reduced unit by unit, or all at once"},
    {"software.gradient_overlap", units, "gradients are reduced unit by unit"},
    {"software.autocast", units, "parameters are sharded in fp32 and gathered in 16 bits"},
    {"software.clips_each_micro_batch", units, "gradients are reduced unit by unit"},
    {"software.widened_reduction",
     [](S s) { return sharded(s) || s.precision.compute == s.precision.gradient_reduce; },
     "gradients are reduced unit by unit, or in the type that they have"},
    {"software.exchange", [](S s) { return sharded(s) || ddp(s) || s.plan.shards() == 1; },
     "it is about zero1"},
    {"software.gather_overlap", [](S s) { return s.software.data.owners() || sharded(s) || ddp(s) || s.plan.shards() == 1; },
     "no parameters are gathered after the optimizer (zero1)"},
    {"software.shard_group",
     [](S s) { return s.plan.data != workloads::DataParallel::zero1 || s.plan.shard_degree != 0 || s.model.experts.count > 0; },
     "it is about zero1 without plan.shard_degree, of a model without experts"},
    {"software.gather_whole", [](S s) { return s.software.data.owners() || s.software.data.gather_overlap || sharded(s) || ddp(s) || s.plan.shards() == 1; },
     "no parameters are gathered after the optimizer (zero1)"},
    {"software.reduce_scatter", [](S s) { return sharded(s) || ddp(s) || s.plan.copies() == 1; },
     "it is about zero1"},
    {"software.clip_gradients",
     [](S s) { return s.software.optimizer.lamb() || s.plan.optimizer_in_backward; },
     "LAMB takes the norm anyway, an update inside backward never does"},
    {"software.host_factor", one_graph, says_one_graph},
    {"software.launch_kernel", [](S s) { return s.measured_launch; },
     "the launch is measured ([calibration] launch)"},
    {"software.launch_kernel", one_graph, says_one_graph},
    {"software.forward_call", one_graph, says_one_graph},
    {"software.module_call", one_graph, says_one_graph},
    {"software.rng_fork", one_graph, says_one_graph},
    {"software.gradient_hook", one_graph, says_one_graph},
    {"software.launch_collective", one_graph, says_one_graph},
    {"software.event_call", one_graph, says_one_graph},
    {"software.unit_overhead", one_graph, says_one_graph},

    {"cluster.exchange", no_own_exchange, "no kernels but NCCL's send tokens to experts"},
    {"cluster.placement", one_tier, "all nodes meet the same switches"},
    {"cluster.placement_seed", [](S s) { return s.fabric.job.placement == topology::Placement::packed; },
     "places are not drawn at random"},
    {"cluster.placement_seed", one_tier, "all nodes meet the same switches"},
    {"cluster.fabric_nodes", one_node, "one node has no network"},
    {"cluster.other_jobs", one_tier, "no switch has uplinks"},
    {"cluster.fabric.kind", one_node, "one node has no network"},
    {"cluster.fabric.tiers", one_node, "one node has no network"},
    {"cluster.fabric.link", one_node, "one node has no network"},
    {"cluster.fabric.sharp", one_node, "one node has no network"},
    {"cluster.fabric.ecmp_seed",
     [](S s) { return s.fabric.routing != topology::Routing::ecmp; }, "routing is not ecmp"},
    {"cluster.fabric.oversubscription", one_tier, "no switch has uplinks"},
    {"cluster.fabric.routing", one_tier, "no switch has uplinks"},
    {"cluster.node.network", one_node, "one node has no network"},
    {"cluster.node.host_link", no_offload, "nothing is offloaded"},
    {"cluster.node.host_memory", no_offload, "nothing is offloaded"},
    {"cluster.node.gpu.fp8_peak", sixteen_bits, "no product is computed in fp8"},
    {"cluster.node.gpu.fp4_peak",
     [](S s) { return s.precision.recipe != workloads::Recipe::nvfp4; },
     "no product is computed in fp4"},
    {"cluster.node.gpu.tf32_peak",
     [](S s) { return s.precision.compute != workloads::Dtype::tf32; }, "nothing is computed in tf32"},
    {"cluster.node.gpu.fp32_peak",
     [](S s) { return s.precision.compute != workloads::Dtype::fp32; }, "nothing is computed in fp32"},
    {"cluster.node.gpu.sms", collective, "a collective alone runs no kernel of a model"},
    {"cluster.node.gpu.tensor_peak", collective, "a collective alone runs no kernel of a model"},
    {"cluster.node.gpu.kernel_floor", collective, "a collective alone runs no kernel of a model"},
    {"cluster.node.gpu.memory", collective, "a collective alone keeps nothing in memory"},
    {"cluster.node.gpu.memory_bandwidth", collective, "a collective is timed by its links"},
    {"cluster.node.gpu.tdp", collective, "a collective alone says nothing of power"},
    {"cluster.node.gpu.idle", collective, "a collective alone says nothing of power"},

    {"calibration.runs", collective, "own runs are of training steps"},
    {"calibration.launch", collective, "a collective alone is launched by no framework"},
    {"calibration.launch", one_graph, says_one_graph},
    {"noise.", [](S s) { return s.run.without.jitter; }, "it is left out (run.without)"},
    {"noise.distribution", no_draws, "nothing is drawn from it"},
    {"noise.steps", [](S s) { return no_jitter(s) || s.run.steps == Steps::cold; },
     "the steps are all alike"},
    {"run_goal.today", no_costs, says_no_costs},
    {"run_goal.goodput", no_costs, says_no_costs},
    {"run_goal.goodput", [](S s) { return s.failures.on; }, "[failures] say what is left of the run"},
    {"cost.price", owned, "the hardware is owned"},
    {"cost.price_low", owned, "the hardware is owned, or no whole run is asked for"},
    {"cost.price_high", owned, "the hardware is owned, or no whole run is asked for"},
    {"cost.capex", rented, says_rented},
    {"cost.capex_low", rented, says_rented},
    {"cost.capex_high", rented, says_rented},
    {"cost.overhead", rented, says_rented},
    {"cost.years", rented, says_rented},
    {"cost.interest", rented, says_rented},
    {"cost.utilisation", rented, says_rented},
    {"cost.opex", rented, says_rented},
    {"cost.electricity", rented, says_rented},
    {"cost.source", no_costs, says_no_costs},
    {"cost.date", no_costs, says_no_costs},
    {"site.carbon", no_run, "no whole run is asked for"},
    {"site.", no_costs, says_no_costs},
    {"power.count", no_costs, says_no_costs},
    {"cluster.fabric.switch_power", no_network_power, says_no_power},
    {"cluster.fabric.transceiver_power", no_network_power, says_no_power},
    {"failures.repair", [](S s) { return !s.failures.spares; }, "there is always a spare (spares)"},
    {"failures.empty", [](S s) { return !s.failures.spares; }, "there is always a spare (spares)"},
    {"failures.watchdog", [](S s) { return std::ranges::none_of(s.failures.rates.causes, &FailureCause::hangs); },
     "no cause of these rates hangs"},
    {"failures.detection", [](S s) { return std::ranges::all_of(s.failures.rates.causes, &FailureCause::hangs); },
     "all causes of these rates hang"},
    {"failures.slow.", [](S s) { return s.failures.slow.per_1000_node_days == 0.0; },
     "no node turns slow (per_1000_node_days)"},
    {"failures.slow.", [](S s) { return s.failures.slow.slowdown == 1.0 || s.run.without.jitter; },
     "a slow node is no slower (slowdown), or noise is left out (run.without)"},
    {"failures.flap.", [](S s) { return s.failures.flap.per_1000_node_days == 0.0 || s.failures.flap.lasts == Duration{}; },
     "no link is gone, or for no time"},
    {"run.seed",
     [](S s) { return collective(s) || (no_draws(s) && !s.failures.on); },
     "nothing is drawn at random"},
    {"run.steps", collective, "a collective has no steps"},
    {"run.without",
     [](S s) { return s.run.without == Ablation{.jitter = true} && !s.noise.on() && s.failures.slow.per_1000_node_days == 0.0; },
     "there is no noise to leave out"},
};
// clang-format on

bool concerns(const Rule& rule, const std::string& key) {
  return rule.key.ends_with('.') ? key.starts_with(rule.key) : key == rule.key;
}

}  // namespace

std::vector<std::string> without_effect(const Scenario& scenario) {
  std::vector<std::string> out;
  for (const std::string& key : scenario.changed)
    for (const Rule& rule : rules)
      if (concerns(rule, key) && rule.idle(scenario)) {
        out.push_back(key + " has no effect here: " + std::string(rule.why));
        break;
      }
  return out;
}

}  // namespace stepcast::sim
