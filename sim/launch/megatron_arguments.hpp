// Words that Megatron's arguments share with what is written beside them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

/// DeepSpeed's number for it.
std::int64_t zero_stage(workloads::DataParallel data);

/// "Ettt|tttt|tttL": embedding, layers of each part, loss; --pipeline-model-parallel-layout.
/// Without "t*3", which a shell may take for names of files.
std::string pipeline_layout(const std::vector<std::int64_t>& layers);

}  // namespace stepcast::sim
