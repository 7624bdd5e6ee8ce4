// The members of [software], each with its key: what frameworks do unasked, whose values stand in
// scenarios/software; and those of experts in the tables of plan and routing. Knows no TOML.
#pragma once

#include "sim/files/key.hpp"
#include "sim/files/names.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"

namespace stepcast::sim {

/// Keys of [plan] about experts.
template <class Expert, class Visitor>
void visit_expert_plan(Expert& expert, Visitor& visit) {
  visit.positive(searched({"expert", "expert-parallel degree: ranks that share a layer's experts",
                           "expert", "N"}),
                 expert.degree);
  visit.positive(searched({"expert_tensor", "ranks that share each expert; default: as tensor",
                           "expert-tensor", "N"}),
                 expert.tensor);
  visit.may(searched({"dispatcher", "how tokens travel to experts", "dispatcher", "KIND"}),
            expert.dispatcher, dispatcher_names);
  visit.may({"dispatch_dtype", "type of tokens on their way to experts"}, expert.dispatch_dtype,
            dtype_names);
  visit.may({"exchange_sms", "SMs that the exchange holds; 0: the library's usual number"},
            expert.exchange_sms);
  visit.may(
      searched({"capacity_factor", "most rows of an expert over the mean; 0: no token is dropped"}),
      expert.capacity_factor);
  visit.may(searched({"pad_to_capacity", "experts take as many rows whatever comes"}),
            expert.pad_to_capacity);
  visit.may(searched({"shared_expert_overlap", "shared experts run beside the exchange"}),
            expert.shared_overlap);
  visit.may(searched({"expert_overlap", "the exchange runs under another micro-batch's compute",
                      "expert-overlap"}),
            expert.overlap);
  visit.may(
      searched({"delay_wgrad", "weight gradients apart, where they hide more of the exchange"}),
      expert.delay_wgrad);
}

template <class Routing, class Visitor>
void visit_routing(Routing& routing, Visitor&& visit) {
  visit.may({"kind", "where tokens go", "routing", "KIND"}, routing.kind, token_routing_names);
  visit.positive({"seed", "of random routing"}, routing.seed);
  visit.may({"max_violation", "rows of the fullest expert over the mean, less one"},
            routing.max_violation);
  visit.may({"counts", "tokens of each expert, an array, or a CSV file with a column tokens"},
            routing.counts);
}

template <class Experts, class Visitor>
void visit_expert_software(Experts& experts, Visitor& visit) {
  visit.may({"experts", "has layers of experts"}, experts.runs);
  visit.may({"dispatchers", "ways of tokens to experts that it has"}, experts.dispatchers,
            dispatcher_names);
  visit.may({"grouped_gemm", "products of a rank's experts: a call each, or one kernel"},
            experts.products, grouped_product_names);
  visit.may({"router_fused", "scores, top-k and counts in one kernel"}, experts.fused_router);
  visit.may({"permute_fused", "rows move to experts in one kernel"}, experts.fused_permute);
  visit.may({"weighed_back", "fused: rows are weighed when they are back, and kept for backward"},
            experts.weighed_back);
  visit.may({"weighed_wide", "not fused: rows are weighed so in fp32, and kept in fp32 for it"},
            experts.weighed_wide);
  visit.may({"operator_norms", "fused: norms on both sides of experts are operators in fp32"},
            experts.operator_norms);
  visit.may({"host_sync", "whether the host reads the rows of experts in every layer"},
            experts.host_counts, host_sync_names);
}

/// Without framework and version, which name the entry.
template <class Spec, class Visitor>
void visit_software(Spec& software, Visitor&& visit) {
  visit.may({"nccl", "that users of this version run"}, software.nccl);
  visit.may({"data_kinds", "what it can run"}, software.data.kinds, data_parallel_names);
  visit.may({"pipeline_data_kinds", "of them, with pipeline stages"}, software.data.pipeline_kinds,
            data_parallel_names);
  visit.may({"cuts_layers", "has tensor and context parallelism"}, software.tensor.cuts_layers);
  visit.may({"use_megatron_fsdp", "Megatron's flag: zero2 and zero3 as well"},
            software.data.use_megatron_fsdp);
  visit.may({"reduce_each", "kinds that reduce each micro-batch unasked"},
            software.data.reduce_each, data_parallel_names);
  visit.may({"reduce_each_in_pipeline", "... with stages as well"},
            software.data.reduce_each_in_pipeline);
  visit.may({"stage_split", "what stages share equally"}, software.pipeline.stage_split,
            stage_split_names);
  visit.may(
      {"fusion", "torch.compile, yes or no; as a key also: kernels eager, compiled, fused, own",
       "compile", "yes|no"},
      software.fusion, fusion_names);
  visit.may({"packed_projections", "one GEMM for q,k,v, one for gate,up"},
            software.products.packed);
  visit.may({"fused_norm", "eager code with a norm of one kernel"}, software.norm.fused);
  visit.may({"composite_blocks", "layer norm and GELU of operators in fp32"},
            software.composite_blocks);
  visit.may({"fused_loss", "cross-entropy in one kernel"}, software.loss.fused);
  visit.may({"gathered_logits", "the loss sees whole logits"}, software.loss.gathered_logits);
  visit_expert_software(software.experts, visit);
  visit.may({"loss_memory", "copies of the logits"}, software.loss.memory, loss_memory_names);
  visit.may({"loss_form", "head and loss of a micro-batch at once, or part by part"},
            software.loss.form, loss_form_names);
  visit.positive({"loss_chunks", "chunks: parts of a micro-batch"}, software.loss.chunks);
  visit.positive({"loss_chunk_tokens", "checkpointed: tokens of a part"},
                 software.loss.chunk_tokens);
  visit.may({"recipes", "of low precision that it can run"}, software.products.recipes,
            recipe_names);
  visit.may({"accumulation_fusion", "GEMMs add weight gradients to the buffer"},
            software.products.accumulate);
  visit.may({"deterministic", "every new tensor is filled first; delta rules by operators"},
            software.deterministic);
  visit.may({"recompute_stops", "before the layer's last product"}, software.recompute_stops);
  visit.may({"reentrant_recompute", "frozen FSDP1 units hold a layer's input and its gradient"},
            software.reentrant_recompute);
  visit.may({"selective_recompute", "what recompute = \"selective\" runs again"},
            software.selective, selective_names);
  visit.may({"keeps_exchanges", "recompute by operators keeps what all-to-alls leave"},
            software.keeps_exchanges);
  visit.may("optimizer", software.optimizer.kernel, optimizer_names);
  visit.may({"optimizer_states", "what is kept in fp32"}, software.optimizer.states,
            optimizer_states_names);
  visit.may({"flat_parameters", "where zero2 and zero3 keep parameters"},
            software.data.flat_parameters, flat_parameters_names);
  visit.may("attention", software.attention.kernel, attention_names);
  visit.may({"repeats_kv", "eager code gives attention k and v of every q head"},
            software.attention.repeats_kv);
  visit.may({"tensor_overlap", "collectives under the wgrad GEMM"}, software.tensor.overlap);
  visit.may({"tensor_overlaps", "kinds of plan.tensor_overlap that it can run"},
            software.tensor.overlaps, tensor_overlap_names);
  visit.may({"regathers_inputs", "eager tensor ranks gather a product's input again in backward"},
            software.tensor.regathers_inputs);
  visit.may({"gather_each_tensor", "zero2, zero3: a message for each tensor, one after the other"},
            software.data.gather_each_tensor);
  visit.may({"explicit_prefetch", "the next unit's gather is issued ahead"},
            software.data.explicit_prefetch);
  visit.may({"schedules", "orders of pipeline stages that it runs; listed: from files"},
            software.pipeline.schedules, schedule_kind_names);
  visit.may({"pipeline_sync", "the host waits for every exchange"}, software.pipeline.sync);
  visit.may({"interleaved_overlap", "exchanges run beside compute"},
            software.pipeline.interleaved_overlap);
  visit.may({"scatter_gather_p2p", "tensor ranks send 1/t each"}, software.pipeline.scatter_gather);
  visit.may({"pipeline_buffers", "micro-batches kept, times the stages; 0: those in flight"},
            software.pipeline.buffers);
  visit.may({"context_exchange", "how keys and values travel"}, software.attention.exchange,
            context_exchange_names);
  visit.may(searched({"cuda_graphs",
                      "what they replay: of each layer all up to its exchange, or the step"}),
            software.host.graphs, graphs_names);
  visit.may({"step_sync", "the host reads loss or norm once a step"}, software.host.step_sync);
  visit.may_bytes(Key{"ddp_bucket_bytes", "of gradients"}.within(1 << 16, 1e15),
                  software.data.bucket_bytes);
  visit.may_bytes({"ddp_bucket_bytes_per_rank", "at least that times the ranks"},
                  software.data.bucket_bytes_per_rank);
  visit.may({"gradient_overlap", "buckets are reduced while backward runs"},
            software.data.gradient_overlap);
  visit.may({"gather_overlap", "zero1: gathered while forward runs"}, software.data.gather_overlap);
  visit.may({"exchange", "zero1: slices of every bucket, or whole tensors of an owner"},
            software.data.exchange, zero_exchange_names);
  visit.may(Key{"shard_group", "zero1: ranks that share one copy unasked; 0: all"}.within(0, 1e6),
            software.data.shard_group);
  visit.may({"gather_whole", "zero1: all parameters in one collective, not by buckets"},
            software.data.gather_whole);
  visit.may({"reduce_scatter", "zero1; false: all-reduce, then slice"},
            software.data.reduce_scatter);
  visit.may({"reduce_copy_compute", "FSDP2: copy-in on the compute stream"},
            software.data.reduce_copy_compute);
  visit.may({"autocast", "fp32 weights, cast in every forward"}, software.data.autocast);
  visit.may({"widened_reduction", "16-bit gradients, widened to be reduced"},
            software.data.widened_reduction);
  visit.may({"reducer_buckets", "torch DDP keeps gradients once more"},
            software.data.reducer_buckets);
  visit.may({"clip_gradients", "a norm over all ranks"}, software.optimizer.clips);
  visit.may({"logs_statistics", "zeros of gradients, norm of parameters, tensor by tensor"},
            software.optimizer.logs_statistics);
  visit.may({"bf16_moments", "it can keep Adam's moments so"}, software.optimizer.bf16_moments);
  visit.may({"master_remainders", "with bf16 moments masters are 16 bits beside the weights"},
            software.optimizer.remainders);
  visit.positive({"moments_block", "adam_8bit: moments that share a scale"},
                 software.optimizer.moments_block);
  visit.may({"wide_embedding_moments", "adam_8bit: the embedding's moments are in fp32"},
            software.optimizer.wide_embedding_moments);
  visit.may({"clips_each_micro_batch", "before gradients are added up"},
            software.optimizer.clips_each_micro_batch);
  visit.may({"launch_blocking", "the host waits for each kernel: CUDA_LAUNCH_BLOCKING=1"},
            software.host.launch_blocking);
  visit.may({"collective_checks",
             "hosts of a group meet before each collective: TORCH_DISTRIBUTED_DEBUG=DETAIL"},
            software.host.collective_checks);
  visit.may({"collectives_hold_core", "no overlap with compute"},
            software.host.collectives_hold_core);
  visit.may({"embedding_unit", "FSDP: the embedding is a unit of its own, apart from the head"},
            software.data.embedding_unit);
  visit.may({"expandable_segments", "PyTorch's allocator grows and shrinks its segments"},
            software.memory.expandable);
  visit.may({"allocator", "PyTorch's caching one, or planned before the run"},
            software.memory.allocator, allocator_names);
  visit.may({"lazy_modules", "CUDA loads kernels as they are called"},
            software.memory.lazy_modules);
  visit.may(
      Key{"host_factor", "host time of calls in a step, over that in a hot loop"}.within(0, 100),
      software.host.factor);
  visit.needs(Key{"launch_kernel", "host time per launch"}.within(0, 0.1),
              software.host.launch_kernel);
  visit.may(Key{"forward_call", "more host time per launch in forward: Python"}.within(0, 0.1),
            software.host.forward_call);
  visit.may(Key{"module_call", "host time per product or attention and pass"}.within(0, 0.1),
            software.host.module_call);
  visit.may(Key{"rng_fork", "host time per attention and forward to exchange random states"}.within(
                0, 0.1),
            software.host.rng_fork);
  visit.may(Key{"gradient_hook", "host time per parameter tensor and backward"}.within(0, 0.1),
            software.host.gradient_hook);
  visit.needs(Key{"launch_collective", "host time per collective"}.within(0, 0.1),
              software.host.launch_collective);
  visit.may(Key{"event_call", "host time per record or wait"}.within(0, 0.1),
            software.host.event_call);
  visit.may(Key{"unit_overhead", "host time per FSDP unit and pass"}.within(0, 10),
            software.host.unit_overhead);
  visit.may(Key{"step_overhead", "host time per step beside the model"}.within(0, 3'600),
            software.host.step_overhead);
}

}  // namespace stepcast::sim
