// The members of a scenario's values, each with its key: listed once, walked to read a file, to
// write a resolved scenario and its results, for options, help and `show keys`. Knows no TOML.
#pragma once

#include <optional>
#include <string_view>

#include "sim/files/key.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/failure_members.hpp"
#include "sim/scenario/goal_members.hpp"
#include "sim/scenario/model_members.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/software_members.hpp"

namespace stepcast::sim {

inline constexpr Names<Steps, 2> steps_names{{
    {"steady", Steps::steady},
    {"cold", Steps::cold},
}};

/// What a member may be: an entry cannot do without it; left open, but not zero; or anything.
enum class Bound : std::uint8_t { needed, positive, not_negative };

/// What every visitor offers; `Self` has member(key, bound, value, choices...) and part(key).
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
  visit.needs({"architecture", "what else is asked of its generation"}, gpu.architecture.name);
  visit.needs(Key{"sms", "streaming multiprocessors"}.within(1, 10'000), gpu.sms);
  visit.needs({"tensor_peak", "dense, the 16-bit type of training"}, gpu.tensor_peak);
  visit.may({"tf32_peak", "dense"}, gpu.tf32_peak);
  visit.may({"fp8_peak", "dense"}, gpu.fp8_peak);
  visit.may({"fp4_peak", "dense"}, gpu.fp4_peak);
  visit.needs({"fp32_peak", "outside tensor cores"}, gpu.fp32_peak);
  visit.needs({"memory", "of one GPU"}, gpu.memory);
  visit.needs({"memory_bandwidth", "of its memory"}, gpu.memory_bandwidth);
  visit.may(Key{"kernel_floor", "factor on the time a kernel takes whatever its size"}.within(
                0.001, 1'000),
            gpu.kernel_floor);
  visit.may({"nvlink", "all links, one direction"}, gpu.nvlink);
  visit.may(Key{"nvlink_links", "of one GPU"}.within(1, 1'000), gpu.nvlink_links);
  visit.needs(Key{"tdp", "power under full load"}.within(1, 100'000), gpu.tdp);
  visit.needs(Key{"idle", "power of an empty card"}.within(0.1, 100'000), gpu.idle);
  visit.may({"announced", "not released: nobody has measured its figures"}, gpu.announced);
  visit.may({"nccl_since", "first NCCL that knows it"}, gpu.nccl_since);
}

/// Without its GPU, which is an entry of its own.
template <class Spec, class Visitor>
void visit_node(Spec& node, Visitor&& visit) {
  visit.needs({"kind", "how GPUs are joined inside"}, node.kind, node_kind_names);
  visit.needs(Key{"gpus", "of one node"}.within(1, 576), node.gpus);
  visit.positive({"gpus_per_tray", "of a rack: trays that NVLink alone joins; default: one box"},
                 node.gpus_per_tray);
  visit.may("nvswitches", node.nvswitches);
  visit.may({"nvlinks", "hybrid_cube_mesh: links between GPU i and j"}, node.nvlinks);
  visit.may({"nvlink_per_link", "one direction"}, node.nvlink_per_link);
  visit.may(Key{"nvlink_latency", "one link: GPU to GPU, or to an NVSwitch"}.within(0, 1),
            node.nvlink_latency);
  visit.needs({"nics", "of one node"}, node.nics);
  visit.needs({"nic", "one NIC, one direction"}, node.nic);
  visit.may(Key{"nic_latency", "one pass through a NIC"}.within(0, 1), node.nic_latency);
  visit.may({"network", "what the NICs speak"}, node.network, network_names);
  visit.needs("pcie_switches", node.pcie_switches);
  visit.needs({"pcie", "one x16 link, one direction"}, node.pcie);
  visit.may(Key{"pcie_latency", "one link"}.within(0, 1), node.pcie_latency);
  visit.may({"sockets", "processors"}, node.sockets);
  visit.may({"socket", "between two of them, one direction"}, node.socket);
  visit.may(Key{"socket_latency", "between two of them"}.within(0, 1), node.socket_latency);
  visit.may({"peer_access", "GPUs read each other over PCIe, not through host memory"},
            node.peer_access);
  visit.may({"gpu_direct", "NICs read GPU memory past the CPU"}, node.gpu_direct);
  visit.may({"low_latency_protocols", "NCCL's plugin allows LL and LL128"},
            node.low_latency_protocols);
  visit.may(Key{"plugin_latency", "that the plugin tells NCCL, for its choice"}.within(0, 1),
            node.plugin_latency);
  visit.may({"cpu", "intel or amd"}, node.cpu);
  visit.may({"max_power", "of the node; 0: not known"}, node.max_power);
  visit.may({"host_link", "GPU to its processor, one direction; 0: through the PCIe switches"},
            node.host_link);
  visit.may({"host_memory", "bandwidth of all sockets' memory; 0: not known"}, node.host_memory);
}

template <class Spec, class Visitor>
void visit_fabric(Spec& fabric, Visitor&& visit) {
  visit.needs({"kind", "what the NICs of a node meet"}, fabric.kind, fabric_kind_names);
  visit.may({"ports", "of a switch"}, fabric.ports);
  visit.may({"tiers", "0: as few as it takes"}, fabric.tiers);
  visit.may({"oversubscription", "down over up at a leaf"}, fabric.oversubscription);
  visit.may({"link", "one cable; 0: as the NIC"}, fabric.link);
  visit.may(Key{"switch_latency", "one switch"}.within(0, 1), fabric.switch_latency);
  visit.may(Key{"cable_latency", "one cable"}.within(0, 1), fabric.cable_latency);
  visit.may({"switch_power", "of one switch, without its cables; 0: not known"},
            fabric.switch_power);
  visit.may({"transceiver_power", "of one port's end of a cable; 0: not known"},
            fabric.transceiver_power);
  visit.may({"sharp", "switches sum on the way"}, fabric.sharp);
  visit.may({"routing", "which of equal uplinks"}, fabric.routing, routing_names);
  visit.may({"ecmp_seed", "another seed, other collisions"}, fabric.ecmp_seed);
}

template <class Spec, class Visitor>
void visit_model(Spec& model, Visitor&& visit) {
  visit.needs(Key("layers").within(1, 2'000), model.layers);
  visit.needs("hidden", model.hidden);
  visit.needs("heads", model.heads);
  visit.may({"kv_heads", "0: as heads"}, model.kv_heads);
  visit.may({"head_dim", "0: hidden / heads"}, model.head_dim);
  visit.may({"ffn_hidden", "width inside the MLP; 0: every layer has experts"}, model.ffn_hidden);
  visit.needs("vocab", model.vocab);
  visit.may({"layer_pattern", "a word a layer, repeated: \"G- G- G- *-\" (docs/models.md)"},
            model.pattern);
  visit.may("norm", model.norm, norm_names);
  visit.may({"norm_place", "of each half of a layer"}, model.norm_place, norm_place_names);
  visit.may("activation", model.activation, activation_names);
  visit.may({"biases", "of products"}, model.biases);
  visit.may({"rope", "rotary positions; else learned ones"}, model.rope);
  visit.may({"alibi", "instead of positions"}, model.alibi);
  visit.may({"max_positions", "learned ones"}, model.max_positions);
  visit.may({"tied_embeddings", "embedding and head are one"}, model.tied_embeddings);
  visit.may({"dropout", "of embedding, attention and residuals"}, model.dropout);
  visit.may({"objective", "what is predicted"}, model.objective, objective_names);
  visit_experts(model.experts, visit);
  visit_attention(model, visit);
  visit_mixers(model, visit);
  visit.may({"logit_cap", "logits pass a tanh"}, model.logit_cap);
  visit.may({"mtp_layers", "modules that predict the tokens after the next"}, model.mtp_layers);
  visit_lora(model.lora, visit);
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
  visit.part(
      {"name", "model of the catalogue (stepcast show models), or a config.json", "model", "NAME"});
  visit.positive(
      Key{"sequence", "tokens per sequence: 4096, or 4k", "sequence", "TOKENS"}.within(1, 1 << 24),
      scenario.batch.sequence);
}

template <class Scenario, class Visitor>
void visit_cluster(Scenario& scenario, Visitor&& visit) {
  visit.part({"node", "node of the catalogue, or a file (stepcast show clusters)", "node", "NAME"});
  visit.positive({"nodes", "number of nodes", "nodes", "N"}, scenario.nodes);
  visit.positive(
      {"gpus", "instead of nodes: all GPUs, whole nodes of them or fewer than one", "gpus", "N"},
      scenario.gpus);
  visit.positive(
      {"gpus_per_domain", "GPUs of each node in use: 64 of a rack's 72; or more, what if"},
      scenario.gpus_per_domain);
  visit.part({"fabric", "fabric of the catalogue, or a file", "fabric", "NAME"});
  visit.may({"placement", "of the job's nodes in the fabric: packed, or random"},
            scenario.fabric.job.placement, job_placement_names);
  visit.may({"placement_seed", "another seed, other places"}, scenario.fabric.job.seed);
  visit.may({"fabric_nodes", "that the fabric joins, this job's among them; 0: this job's alone"},
            scenario.fabric.job.fabric_nodes);
  visit.may({"other_jobs", "share of every link between switches that others take"},
            scenario.fabric.job.other_jobs);
  visit.may({"exchange", "kernels that send tokens to experts: deepep-v1, deepep-v2, hybridep"},
            scenario.exchange);
  visit.may({"nccl", "NCCL version, as in 2.20", "nccl", "VERSION"}, scenario.nccl);
}

template <class Scenario, class Visitor>
void visit_plan(Scenario& scenario, Visitor&& visit) {
  auto& plan = scenario.plan;
  visit.may(searched({"data", "", "data", "KIND"}), plan.data, data_parallel_names);
  visit.positive(searched({"tensor", "tensor-parallel degree, or best", "tensor", "N"}),
                 plan.tensor);
  visit.may(
      searched({"sequence_parallel", "cut the sequence between tensor ranks", "sequence-parallel"}),
      plan.sequence_parallel);
  visit.positive(searched({"context", "context-parallel degree: ranks that share each sequence",
                           "context", "N"}),
                 plan.context);
  visit.positive(searched({"pipeline", "pipeline stages, or best", "pipeline", "N"}),
                 plan.pipeline);
  visit.positive(
      searched({"virtual_stages", "model chunks per stage (interleaved; zb_v and dualpipe have 2)",
                "virtual-stages", "N"}),
      plan.virtual_stages);
  visit.may(searched({"stage_layers",
                      "layers of each part of the model, in its order; default: the software's"}),
            scenario.stage_layers);
  visit.part({"stages", "the same as Megatron's layout, E t m L and |: Et*3|(tt|)*29mL", "stages",
              "LAYOUT"});
  visit.positive(
      searched({"shard_degree", "ranks that share one copy (hsdp)", "shard-degree", "N"}),
      plan.shard_degree);
  visit.may(
      searched({"schedule", "order of the stages' turns, or a CSV file of it", "schedule", "KIND"}),
      plan.schedule, schedule_names);
  visit.may(searched({"recompute", "", "recompute", "KIND"}), plan.recompute, recompute_names);
  visit.positive(searched({"recompute_every", "full: of each part's layers only every n-th"}),
                 plan.recompute_every);
  visit.may(
      searched(
          {"reduce", "gradients: once per step, or for each micro-batch; default: the software's"}),
      scenario.reduce, reduce_names);
  visit.may(searched({"prefetch", "units gathered ahead of their use"}), plan.prefetch);
  visit.may({"recompute_modules", "parts of a layer that backward runs again, beside recompute"},
            plan.recompute_modules, layer_module_names);
  visit.may(searched({"tensor_overlap", "tensor collectives in parts beside their products",
                      "tensor-overlap", "KIND"}),
            plan.tensor_overlap, tensor_overlap_names);
  visit.may(searched({"optimizer", "adam, adam_8bit, adafactor, muon or sgd", "optimizer", "NAME"}),
            plan.optimizer, optimizer_form_names);
  visit.may({"optimizer_in_backward", "each tensor is updated when its gradient is there"},
            plan.optimizer_in_backward);
  visit.may(searched({"activation_offload", "share of layers' activations that lies in host memory",
                      "activation-offload", "SHARE"}),
            plan.offload.activations);
  visit.may(
      searched({"optimizer_offload", "share of the optimizer that host memory and processors have",
                "optimizer-offload", "SHARE"}),
      plan.offload.optimizer);
  visit.may({"parameter_offload", "zero3: share of the shards that host memory has",
             "parameter-offload", "SHARE"},
            plan.offload.parameters);
  visit.positive({"mlp_tiles", "parts of the sequence that a dense MLP takes one by one"},
                 plan.mlp_tiles);
  visit.may({"optimizer_offload_overlap", "its copies and updates go on piece by piece"},
            plan.offload.optimizer_overlap);
  visit_expert_plan(plan.expert, visit);
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
  visit.positive(
      searched({"micro_batch", "sequences per replica and micro-batch", "micro-batch", "N"}),
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
  visit.may(searched({"recipe", "low precision of products: fp8_current, fp8_block, mxfp8",
                      "recipe", "NAME"}),
            precision.recipe, recipe_names);
  visit.may({"bf16_first_layers", "that the recipe leaves in 16 bits"},
            precision.bf16_first_layers);
  visit.may({"bf16_last_layers", "that the recipe leaves in 16 bits"}, precision.bf16_last_layers);
  visit.may({"fp8_parameters", "weights are kept and gathered in the recipe's type"},
            precision.fp8_parameters);
  visit.may({"moments", "type of Adam's moments: fp32 or bf16"}, precision.moments, dtype_names);
  visit.may({"masters", "fp32 masters of 16-bit weights; false: all states are in 16 bits"},
            precision.masters);
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
  visit.may({"runs", "CSV files of your own measured steps, which narrow the error bars"},
            scenario.runs);
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
  visit.positive(
      {"confidence", "how often error bars hold: 0.8 is four cases of five", "confidence", "SHARE"},
      run.confidence);
  visit.may({"refuse_below",
             "probability to fit below which a plan is refused: 0.02 unasked, 0.5 in a search",
             "refuse-below", "SHARE"},
            run.refuse_below);
  visit.may(
      {"fits", "probability to fit from which a search puts plans in their order: 0.9 unasked",
       "fits", "SHARE"},
      run.fits);
  visit.may({"no_limit", "go on with more micro-batches, calls or points than the budget allows",
             "no-limit"},
            run.no_limit);
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
  visit_routing(scenario.plan.routing, at("routing"));
  visit_batch(batch, at("batch"));
  visit_precision(scenario.precision, at("precision"));
  visit_software_name(scenario.software, at("software"));
  visit_software(scenario.software, at("software"));
  visit_calibration(scenario, at("calibration"));
  visit_noise(scenario.noise, at("noise"));
  visit_failures(scenario.failures, at("failures"));
  visit_slow_nodes(scenario.failures.slow, at("failures.slow"));
  visit_link_flaps(scenario.failures.flap, at("failures.flap"));
  visit_run(scenario.run, at("run"));
  visit_run_goal(scenario.goal, at("run_goal"));
  visit_cost(scenario.cost, at("cost"));
  visit_site(scenario.site, at("site"));
  visit_power(scenario, at("power"));
  visit_collective(query, at("collective"));
}

}  // namespace stepcast::sim
