// The members of the catalogue's values, each with its key: listed once, used to read a file and to
// write a resolved scenario. needs() is a member that an entry cannot do without.
#pragma once

#include "sim/names.hpp"

namespace stepcast::sim {

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

}  // namespace stepcast::sim
