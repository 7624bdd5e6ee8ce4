// Configurations that are one JSON object, as facts: DeepSpeed's, and what stepcast launch writes
// for scripts that call PyTorch's FSDP themselves (docs/launch.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/trace/facts.hpp"

namespace stepcast::validate {

void add_deepspeed_facts(Facts& facts, const Settings& settings, const std::string& source);
void add_fsdp_facts(Facts& facts, const Settings& settings, const std::string& source);

/// [20, 20, 19, 21] as plan.stage_layers and plan.virtual_stages; equal parts as the latter alone.
void set_parts(Facts& facts, const std::vector<std::int64_t>& layers, const std::string& source);

/// The whole numbers of a text, whatever stands between them.
std::vector<std::int64_t> numbers_in(std::string_view text);

}  // namespace stepcast::validate
