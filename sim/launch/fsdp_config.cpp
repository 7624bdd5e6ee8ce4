// What a script of one's own hands to PyTorch's FSDP: degrees of the device mesh, arguments of
// fully_shard or FullyShardedDataParallel, of the pipeline's schedule, of recompute. The JSON's
// layout is ours (docs/launch.md), its words are torch's: torch/distributed/fsdp/api.py
// (ShardingStrategy, MixedPrecision), _fully_shard (reshard_after_forward, MixedPrecisionPolicy,
// set_requires_gradient_sync), torch/distributed/pipelining (ScheduleGPipe, Schedule1F1B).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/fsdp_script.hpp"

namespace stepcast::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;
using workloads::DataParallel;
using workloads::Recompute;

bool first_fsdp(const Scenario& s) { return s.software.data.fsdp1(); }

constexpr Refusal fsdp_refusals[] = {
    {[](const Scenario& s) { return !mesh_refusal(s).empty(); },
     [](const Scenario& s) { return mesh_refusal(s); }},
    {[](const Scenario& s) {
       return asks_gpipe(s) && (s.plan.pipeline == 1 || s.plan.virtual_stages > 1);
     },
     [](const Scenario&) {
       return std::string("ScheduleGPipe is one of pipeline stages with a part of the model each");
     }},
    {not_torch_schedule, torch_schedule_refusal},
};

OrderedJson mesh_of(const Scenario& s) {
  const DataMesh mesh = data_mesh(s);
  return {{"pp", s.plan.pipeline},
          {"dp_replicate", mesh.replicate},
          {"dp_shard", mesh.shard},
          {"cp", s.plan.context},
          {"tp", s.plan.tensor}};
}

OrderedJson dtypes_of(const Scenario& s) {
  return {{"param_dtype", torch_dtype(s.precision.compute)},
          {"reduce_dtype", torch_dtype(s.precision.gradient_reduce)}};
}

std::string sharding_strategy(const Scenario& s) {
  const bool copies = s.plan.shard_replicas() > 1;
  if (s.plan.data == DataParallel::ddp) return "NO_SHARD";
  if (s.plan.data == DataParallel::zero3) return copies ? "HYBRID_SHARD" : "FULL_SHARD";
  return copies ? "_HYBRID_SHARD_ZERO2" : "SHARD_GRAD_OP";
}

/// Under its own name: the arguments of the call.
void add_sharding(const Scenario& s, OrderedJson& out) {
  if (first_fsdp(s)) {
    out["FullyShardedDataParallel"] = {{"sharding_strategy", sharding_strategy(s)},
                                       {"mixed_precision", dtypes_of(s)}};
  } else if (s.plan.data == DataParallel::ddp) {
    out["replicate"] = {{"mp_policy", dtypes_of(s)}};
  } else {
    out["fully_shard"] = {{"reshard_after_forward", s.plan.data == DataParallel::zero3},
                          {"mp_policy", dtypes_of(s)}};
    if (s.plan.prefetch != 1)
      out["fully_shard"]["set_modules_to_forward_prefetch"] = s.plan.prefetch;
  }
}

std::string schedule_class(const Scenario& s) {
  if (s.plan.schedule == workloads::Schedule::listed) return s.plan.orders.list->file;
  if (const std::string torch = torch_schedule(s.plan.schedule); !torch.empty())
    return "Schedule" + torch;
  if (s.plan.schedule == workloads::Schedule::gpipe) return "ScheduleGPipe";
  return s.plan.virtual_stages > 1 ? "ScheduleInterleaved1F1B" : "Schedule1F1B";
}

OrderedJson training_of(const Scenario& s) {
  return {{"sequence_length", s.batch.sequence},
          {"global_batch_size", s.global_batch},
          {"micro_batch_size", s.batch.micro_batch},
          {"num_micro_batches", s.batch.micro_batches},
          {"set_requires_gradient_sync", word_for(reduce_names, s.plan.reduce)},
          {"compile", s.software.compiled()}};
}

OrderedJson model_of(const Scenario& s) {
  OrderedJson out{{"name", s.model.name},
                  {"layers", s.model.layers},
                  {"hidden", s.model.hidden},
                  {"heads", s.model.heads},
                  {"kv_heads", s.model.kv_heads},
                  {"head_dim", s.model.head_dim},
                  {"ffn_hidden", s.model.ffn_hidden},
                  {"vocab", s.model.vocab},
                  {"norm", word_for(norm_names, s.model.norm)},
                  {"activation", word_for(activation_names, s.model.activation)},
                  {"biases", s.model.biases},
                  {"tied_embeddings", s.model.tied_embeddings},
                  {"rope", s.model.rope}};
  if (workloads::learned_positions(s.model)) out["max_positions"] = s.model.max_positions;
  return out;
}

OrderedJson document_of(const Scenario& s) {
  OrderedJson out;
  out["framework"] = s.software.framework;
  out["version"] = s.software.version;
  out["model"] = model_of(s);
  out["init_device_mesh"] = mesh_of(s);
  add_sharding(s, out);
  out["parallelize_module"] = {{"sequence_parallel", s.plan.sequence_parallel}};
  if (s.plan.pipeline > 1)
    out["pipelining"] = {{"schedule", schedule_class(s)},
                         {"n_microbatches", s.batch.micro_batches},
                         {"layers_per_part", part_layers(s)}};
  out["checkpoint_wrapper"] = {{"mode", word_for(recompute_names, s.plan.recompute)},
                               {"every", s.plan.recompute_every}};
  out["training"] = training_of(s);
  return out;
}

}  // namespace

Launch fsdp_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, fsdp_refusals);
  if (!out.why_not.empty()) return out;
  if (first_fsdp(s))
    out.notes = common_notes(s, {"software.fusion", "plan.reduce"});
  else
    out.notes = common_notes(s, {"software.fusion", "plan.reduce", "plan.prefetch"});
  if (s.plan.mlp_tiles > 1)
    out.notes.push_back(fmt::format("plan.mlp_tiles = {} is not said.", s.plan.mlp_tiles));
  if (!s.precision.masters) out.notes.emplace_back("precision.masters = false is not said.");
  const std::string lacks = first_fsdp(s) ? "" : fsdp_script_lacks(s);
  const bool scripted = !first_fsdp(s) && lacks.empty();
  if (!lacks.empty())
    out.notes.push_back("train_fsdp2.py has not " + lacks + ": a script of yours reads fsdp.json.");
  out.files.push_back(
      {"fsdp.json", json_text(document_of(s), 2) + "\n",
       torchrun(s, scripted ? "train_fsdp2.py fsdp.json" : "your_script.py fsdp.json")});
  if (scripted) out.files.push_back({"train_fsdp2.py", fsdp_script(), "what reads fsdp.json"});
  return out;
}

}  // namespace stepcast::sim
