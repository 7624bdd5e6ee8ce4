// The forms that launch.cpp chooses from, and what they share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/launch.hpp"

namespace stepcast::sim {

Launch megatron_launch(const Scenario& scenario);
Launch nemo_launch(const Scenario& scenario);
Launch torchtitan_launch(const Scenario& scenario);         // TOML of 2024 and 2025
Launch torchtitan_python_launch(const Scenario& scenario);  // since 2026
Launch trl_launch(const Scenario& scenario);
Launch bridge_launch(const Scenario& scenario);  // NeMo since 25.11
Launch fsdp_launch(const Scenario& scenario);
Launch deepspeed_launch(const Scenario& scenario);

/// What a form cannot say: true where the scenario asks for it, and the reason.
struct Refusal {
  bool (*asked)(const Scenario&);
  std::string (*why)(const Scenario&);
};

/// The first that the scenario runs into; empty: none.
template <class Refusals>
std::string refused(const Scenario& scenario, const Refusals& refusals) {
  for (const Refusal& refusal : refusals)
    if (refusal.asked(scenario)) return refusal.why(scenario);
  return "";
}

/// Layers of each part of the model, in its order.
std::vector<std::int64_t> part_layers(const Scenario& scenario);
bool equal_parts(const Scenario& scenario);

/// What torch.distributed.pipelining calls it, after "Schedule", for zero-bubble schedules and
/// DualPipeV; else empty.
std::string torch_schedule(workloads::Schedule);
bool not_torch_schedule(const Scenario&);
std::string torch_schedule_refusal(const Scenario&);

/// A schedule that is another than 1F1B and makes a difference.
bool asks_gpipe(const Scenario& scenario);

/// Degrees of torch's device mesh: FSDP shards over data and context ranks together, so that a copy
/// of the sharded state spans dp_shard x cp ranks (ParallelDims of torchtitan, parallel_dims.py).
struct DataMesh {
  std::int64_t replicate = 1, shard = 1;
};
DataMesh data_mesh(const Scenario& scenario);
/// Why the mesh cannot have them; empty: it can.
std::string mesh_refusal(const Scenario& scenario);

/// As YAML has it.
inline const char* true_or_false(bool value) { return value ? "true" : "false"; }
/// "bfloat16", as torch has it.
std::string torch_dtype(workloads::Dtype dtype);

/// That gradients are summed in another type than precision.gradient_reduce.
std::string other_reduction(const Scenario& scenario, workloads::Dtype summed);

/// Megatron's "block" recomputes the first layers of a part, not every n-th.
std::string first_layers_note(const Scenario& scenario);

/// Recompute that is a flag: of all layers, or none.
bool recomputes_all_or_none(const Scenario& scenario);

/// A load of experts that no router can be told: [routing] of counts, or of a maximum.
bool stated_routing(const Scenario& scenario);
std::string routing_note();

/// Layers that a recipe of low precision leaves in 16 bits have no key there.
bool leaves_layers(const Scenario& scenario);
std::string left_layers_note(const Scenario& scenario);

/// Megatron core's words for the parts of a layer that are run again; one at least is.
std::string recompute_module_words(const Scenario& scenario, std::string_view between);

/// Megatron core's word for how context ranks exchange keys and values.
std::string_view context_exchange_word(const Scenario& scenario);

/// "torchrun --nnodes 4 --nproc-per-node 8 " and the program.
std::string torchrun(const Scenario& scenario, const std::string& program);

/// Sentences on a framework that nobody named, and on what no form says: when gradients are
/// reduced, what is gathered ahead, keys of [software] that the user changed but for `said`, NCCL's
/// variables.
std::vector<std::string> common_notes(const Scenario& scenario,
                                      std::initializer_list<std::string_view> said);

}  // namespace stepcast::sim
