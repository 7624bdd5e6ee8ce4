// The members of a scenario's values, each with its key: listed once, walked to read a file, to
// write a resolved scenario and its results, for options, help and `show keys`. Knows no TOML.
#pragma once

#include <optional>

#include "sim/names.hpp"

namespace stepcast::sim {

/// A key as a user writes it, and the option of the command line that sets it, if one does.
struct Key {
  // NOLINTNEXTLINE(google-explicit-constructor): visit.may("biases", ...) reads well
  constexpr Key(const char* key_name, const char* key_help = "", const char* key_option = "",
                const char* option_argument = "")
      : name(key_name), help(key_help), option(key_option), argument(option_argument) {}

  const char* name;      // "global", in [batch]
  const char* help;      // one line; empty: the name and its words say it
  const char* option;    // "global-batch"; empty: --set alone
  const char* argument;  // "N"; empty: a switch
};

/// What a member may be: an entry cannot do without it; left open, but not zero; or anything.
enum class Bound : std::uint8_t { needed, positive, not_negative };

/// What every visitor offers; `Self` has member(key, bound, value, choices...), degree(key, value,
/// best) and part(key).
template <class Self>
class MemberVisitor {
 public:
  template <class T, class... Choices>
  void needs(const Key& key, T& value, const Choices&... choices) {
    self().member(key, Bound::needed, value, choices...);
  }
  template <class T, class... Choices>
  void positive(const Key& key, T& value, const Choices&... choices) {
    self().member(key, Bound::positive, value, choices...);
  }
  template <class T, class... Choices>
  void may(const Key& key, T& value, const Choices&... choices) {
    self().member(key, Bound::not_negative, value, choices...);
  }
  /// A size that is kept as a plain number.
  template <class T>
  void may_bytes(const Key& key, T& bytes) {
    Bytes value(bytes);
    self().member(key, Bound::positive, value);
    if constexpr (!std::is_const_v<T>) bytes = value.value;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

template <class Spec, class Visitor>
void visit_gpu(Spec& gpu, Visitor&& visit) {
  visit.needs("architecture", gpu.architecture, architecture_names);
  visit.needs("sms", gpu.sms);
  visit.needs("tensor_peak", gpu.tensor_peak);
  visit.may("tf32_peak", gpu.tf32_peak);
  visit.may("fp8_peak", gpu.fp8_peak);
  visit.needs("fp32_peak", gpu.fp32_peak);
  visit.needs("memory", gpu.memory);
  visit.needs("memory_bandwidth", gpu.memory_bandwidth);
  visit.may("nvlink", gpu.nvlink);
  visit.may("nvlink_links", gpu.nvlink_links);
  visit.needs("tdp", gpu.tdp);
  visit.needs("idle", gpu.idle);
  visit.may("nccl_since", gpu.nccl_since);
}

/// Without its GPU, which is an entry of its own.
template <class Spec, class Visitor>
void visit_node(Spec& node, Visitor&& visit) {
  visit.needs("kind", node.kind, node_kind_names);
  visit.needs("gpus", node.gpus);
  visit.may("nvswitches", node.nvswitches);
  visit.may("nvlinks", node.nvlinks);
  visit.may("nvlink_per_link", node.nvlink_per_link);
  visit.may("nvlink_latency", node.nvlink_latency);
  visit.needs("nics", node.nics);
  visit.needs("nic", node.nic);
  visit.may("nic_latency", node.nic_latency);
  visit.may("network", node.network, network_names);
  visit.needs("pcie_switches", node.pcie_switches);
  visit.needs("pcie", node.pcie);
  visit.may("pcie_latency", node.pcie_latency);
  visit.may("sockets", node.sockets);
  visit.may("socket", node.socket);
  visit.may("socket_latency", node.socket_latency);
  visit.may("gpu_direct", node.gpu_direct);
  visit.may("cpu", node.cpu);
  visit.may("max_power", node.max_power);
}

template <class Spec, class Visitor>
void visit_fabric(Spec& fabric, Visitor&& visit) {
  visit.needs("kind", fabric.kind, fabric_kind_names);
  visit.may("ports", fabric.ports);
  visit.may("tiers", fabric.tiers);
  visit.may("oversubscription", fabric.oversubscription);
  visit.may("link", fabric.link);
  visit.may("switch_latency", fabric.switch_latency);
  visit.may("cable_latency", fabric.cable_latency);
  visit.may("sharp", fabric.sharp);
  visit.may("routing", fabric.routing, routing_names);
  visit.may("ecmp_seed", fabric.ecmp_seed);
}

template <class Spec, class Visitor>
void visit_model(Spec& model, Visitor&& visit) {
  visit.needs("layers", model.layers);
  visit.needs("hidden", model.hidden);
  visit.needs("heads", model.heads);
  visit.may("kv_heads", model.kv_heads);
  visit.may("head_dim", model.head_dim);
  visit.needs("ffn_hidden", model.ffn_hidden);
  visit.needs("vocab", model.vocab);
  visit.may("norm", model.norm, norm_names);
  visit.may("activation", model.activation, activation_names);
  visit.may("biases", model.biases);
  visit.may("rope", model.rope);
  visit.may("alibi", model.alibi);
  visit.may("max_positions", model.max_positions);
  visit.may("tied_embeddings", model.tied_embeddings);
  visit.may("dropout", model.dropout);
  visit.may("objective", model.objective, objective_names);
}

/// Without framework and version, which name the entry.
template <class Spec, class Visitor>
void visit_software(Spec& software, Visitor&& visit) {
  visit.may("nccl", software.nccl);
  visit.may("data_kinds", software.data_kinds, data_parallel_names);
  visit.may("pipeline_data_kinds", software.pipeline_data_kinds, data_parallel_names);
  visit.may("cuts_layers", software.cuts_layers);
  visit.may("use_megatron_fsdp", software.use_megatron_fsdp);
  visit.may("reduce_each", software.reduce_each, data_parallel_names);
  visit.may("reduce_each_in_pipeline", software.reduce_each_in_pipeline);
  visit.may("fusion", software.fusion, fusion_names);
  visit.may("packed_projections", software.packed_projections);
  visit.may("fused_norm", software.fused_norm);
  visit.may("composite_blocks", software.composite_blocks);
  visit.may("gathered_logits", software.gathered_logits);
  visit.may("accumulation_fusion", software.accumulation_fusion);
  visit.may("recompute_stops", software.recompute_stops);
  visit.may("optimizer", software.optimizer, optimizer_names);
  visit.may("flat_parameters", software.flat_parameters, flat_parameters_names);
  visit.may("attention", software.attention, attention_names);
  visit.may("tensor_overlap", software.tensor_overlap);
  visit.may("explicit_prefetch", software.explicit_prefetch);
  visit.may("pipeline_sync", software.pipeline_sync);
  visit.may("interleaved_overlap", software.interleaved_overlap);
  visit.may("scatter_gather_p2p", software.scatter_gather_p2p);
  visit.may("context_exchange", software.context_exchange, context_exchange_names);
  visit.may("step_sync", software.step_sync);
  visit.may_bytes("ddp_bucket_bytes", software.ddp_bucket_bytes);
  visit.may_bytes("ddp_bucket_bytes_per_rank", software.ddp_bucket_bytes_per_rank);
  visit.may("gradient_overlap", software.gradient_overlap);
  visit.may("gather_overlap", software.gather_overlap);
  visit.may("reduce_scatter", software.reduce_scatter);
  visit.may("reduce_copy_compute", software.reduce_copy_compute);
  visit.may("autocast", software.autocast);
  visit.may("widened_reduction", software.widened_reduction);
  visit.may("clip_gradients", software.clip_gradients);
  visit.may("clips_each_micro_batch", software.clips_each_micro_batch);
  visit.may("collectives_hold_core", software.collectives_hold_core);
  visit.needs("launch_kernel", software.launch_kernel);
  visit.needs("launch_collective", software.launch_collective);
  visit.may("event_call", software.event_call);
  visit.may("unit_overhead", software.unit_overhead);
  visit.may("step_overhead", software.step_overhead);
}

/// The keys of [software] that choose an entry.
template <class Spec, class Visitor>
void visit_software_name(Spec& software, Visitor&& visit) {
  visit.may({"framework", "framework of the catalogue; --framework NAME[@VERSION]"},
            software.framework);
  visit.may({"version", "its version"}, software.version);
}

/// The keys of [model] beside the shape.
template <class Scenario, class Visitor>
void visit_model_use(Scenario& scenario, Visitor&& visit) {
  visit.part({"name", "model of the catalogue (stepcast show models)", "model", "NAME"});
  visit.positive({"sequence", "tokens per sequence", "sequence", "TOKENS"},
                 scenario.batch.sequence);
}

template <class Scenario, class Visitor>
void visit_cluster(Scenario& scenario, Visitor&& visit) {
  visit.part({"node", "node of the catalogue, or a file (stepcast show clusters)", "node", "NAME"});
  visit.positive({"nodes", "number of nodes", "nodes", "N"}, scenario.nodes);
  visit.positive({"gpus", "all of the nodes', or fewer on one node"}, scenario.gpus);
  visit.part({"fabric", "fabric of the catalogue, or a file", "fabric", "NAME"});
  visit.may({"nccl", "NCCL version, as in 2.20", "nccl", "VERSION"}, scenario.nccl);
}

template <class Scenario, class Visitor>
void visit_plan(Scenario& scenario, Visitor&& visit) {
  auto& plan = scenario.plan;
  visit.may({"data", "", "data", "KIND"}, plan.data, data_parallel_names);
  visit.degree({"tensor", "tensor-parallel degree, or best", "tensor", "N"}, plan.tensor,
               scenario.best_tensor);
  visit.may({"sequence_parallel", "cut the sequence between tensor ranks", "sequence-parallel"},
            plan.sequence_parallel);
  visit.positive(
      {"context", "context-parallel degree: ranks that share each sequence", "context", "N"},
      plan.context);
  visit.degree({"pipeline", "pipeline stages, or best", "pipeline", "N"}, plan.pipeline,
               scenario.best_pipeline);
  visit.positive(
      {"virtual_stages", "model chunks per stage (interleaved 1f1b)", "virtual-stages", "N"},
      plan.virtual_stages);
  visit.may({"stage_layers", "layers of each part of the model, in its order"}, plan.stage_layers);
  visit.positive({"shard_degree", "ranks that share one copy (hsdp)", "shard-degree", "N"},
                 plan.shard_degree);
  visit.may({"schedule", "", "schedule", "KIND"}, plan.schedule, schedule_names);
  visit.may({"recompute", "", "recompute", "KIND"}, plan.recompute, recompute_names);
  visit.positive({"recompute_every", "full: of each part's layers only every n-th"},
                 plan.recompute_every);
  visit.may(
      {"reduce", "gradients: once per step, or for each micro-batch; default: the software's"},
      scenario.reduce, reduce_names);
  visit.may({"prefetch", "units gathered ahead of their use"}, plan.prefetch);
}

/// [batch] as it may be written: global or local, and what is left open follows from the plan.
struct BatchKeys {
  std::optional<std::int64_t> global;  // sequences per step
  std::optional<double> local;         // per GPU and step
  MicroBatching micro;
};

template <class Batch, class Visitor>
void visit_batch(Batch& batch, Visitor&& visit) {
  visit.positive({"local", "sequences per GPU and step", "local-batch", "N"}, batch.local);
  visit.positive({"global", "sequences per step", "global-batch", "N"}, batch.global);
  visit.positive({"micro_batch", "sequences per replica and micro-batch", "micro-batch", "N"},
                 batch.micro.micro_batch);
  visit.positive({"micro_batches", "micro-batches per step", "micro-batches", "N"},
                 batch.micro.micro_batches);
}

template <class Precision, class Visitor>
void visit_precision(Precision& precision, Visitor&& visit) {
  visit.may({"compute", "type of products and activations"}, precision.compute, dtype_names);
  visit.may({"gradient_reduce", "type that gradients are summed in"}, precision.gradient_reduce,
            dtype_names);
  visit.may({"loss_scaling", "a check of all gradients per step; default: with fp16"},
            precision.loss_scaling);
}

template <class Query, class Visitor>
void visit_collective(Query& query, Visitor&& visit) {
  visit.needs({"kind", "the collective"}, query.kind, collective_names);
  visit.needs({"bytes", "message of nccl-tests: 64MiB", "bytes", "SIZE"}, query.bytes);
  visit.may({"dtype", "bf16, fp16, fp32, fp8", "dtype", "TYPE"}, query.dtype, dtype_names);
}

template <class Scenario, class Visitor>
void visit_calibration(Scenario& scenario, Visitor&& visit) {
  visit.may({"tables", "calibration files, later ones win; \"published\" is shipped"},
            scenario.tables);
  visit.may({"launch", "host time of a launch: the software's own, or the tables'"},
            scenario.measured_launch, launch_names);
}

template <class Noise, class Visitor>
void visit_noise(Noise& noise, Visitor&& visit) {
  visit.may({"distribution", "of kernel times"}, noise.distribution, distribution_names);
  visit.may({"kernel_sigma", "of every kernel: 0.02 is two percent"}, noise.kernel_sigma);
  visit.may({"gpu_sigma", "between GPUs, drawn once"}, noise.gpu_sigma);
  visit.may({"pace_sigma", "the same, all at the pace of the slowest"}, noise.pace_sigma);
  visit.positive({"steps", "with kernel_sigma: steps that the report is the mean of"}, noise.steps);
  visit.part({"straggler", "[[noise.straggler]]: rank or node, and its slowdown"});
}

template <class RunOptions, class Visitor>
void visit_run(RunOptions& run, Visitor&& visit) {
  visit.may({"steps", "in steady state, or the first step alone"}, run.steps, steps_names);
  visit.may({"seed", "of [noise]: the same seed gives the same picosecond", "seed", "N"}, run.seed);
  visit.may({"without", "leave out interference, latency, bandwidth, jitter, sharing", "without",
             "WHAT[,WHAT]"},
            run.without);
  visit.part({"jitter", "\"none\", as in old files; [noise] says how kernels vary"});
}

/// All of a scenario: `at("cluster.node")` makes the visitor of that table. Of a catalogue's entry
/// the keys stand beside its name.
template <class Scenario, class Batch, class Query, class At>
void visit_scenario(Scenario& scenario, Batch& batch, Query& query, At at) {
  visit_model_use(scenario, at("model"));
  visit_model(scenario.model, at("model"));
  visit_cluster(scenario, at("cluster"));
  visit_node(scenario.node, at("cluster.node"));
  visit_gpu(scenario.node.gpu, at("cluster.node.gpu"));
  visit_fabric(scenario.fabric, at("cluster.fabric"));
  visit_plan(scenario, at("plan"));
  visit_batch(batch, at("batch"));
  visit_precision(scenario.precision, at("precision"));
  visit_software_name(scenario.software, at("software"));
  visit_software(scenario.software, at("software"));
  visit_calibration(scenario, at("calibration"));
  visit_noise(scenario.noise, at("noise"));
  visit_run(scenario.run, at("run"));
  visit_collective(query, at("collective"));
}

}  // namespace stepcast::sim
