// Configurations that are one JSON object, as facts: DeepSpeed's, and what stepcast launch writes
// for scripts that call PyTorch's FSDP themselves (docs/launch.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/inputs/facts.hpp"

namespace stepcast::sim {

/// Of Megatron-LM, Megatron-DeepSpeed and, with the prefix "model.", NeMo.
void add_megatron_facts(Facts& facts, const Settings& settings, const std::string& prefix,
                        const std::string& source);
/// Windows, gates, sinks and linear layers of the model; modules that are recomputed, what lies on
/// the host, exchanges that overlap: as above.
void add_megatron_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                        const std::string& source);
void add_megatron_plan_parts(Facts& facts, const Settings& settings, const std::string& prefix,
                             const std::string& source);
/// Layers of each part of the pipeline that --hybrid-layer-pattern says; empty: there is none.
std::vector<std::int64_t> layers_of_letters(const Settings& settings, const std::string& prefix);
void add_torchtitan_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                          const std::string& source);
void add_deepspeed_facts(Facts& facts, const Settings& settings, const std::string& source);
/// What stepcast launch writes for scripts that call PyTorch's FSDP themselves (docs/launch.md).
void add_fsdp_facts(Facts& facts, const Settings& settings, const std::string& source);

/// [20, 20, 19, 21] as plan.stage_layers and plan.virtual_stages; equal parts as the latter alone.
void set_parts(Facts& facts, const std::vector<std::int64_t>& layers, const std::string& source);

/// The word of plan.schedule for a name of torch.distributed.pipelining's, or a file's.
std::string schedule_of_torch(const std::string& name);

/// The whole numbers of a text, whatever stands between them.
std::vector<std::int64_t> numbers_in(std::string_view text);

}  // namespace stepcast::sim
