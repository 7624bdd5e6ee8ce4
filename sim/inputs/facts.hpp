// What a file or log of a framework says of the run, as keys of a scenario. Knows no times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

struct Fact {
  std::string key;  // "plan.tensor"
  TomlValue value;
  std::string source;  // "the log"
};

struct Facts {
  std::vector<Fact> all;  // a key once
  std::optional<std::int64_t> ranks;
  std::string ranks_source;
  std::string gpu;  // CUDA's name
  std::string gpu_source;
  std::int64_t gpus_per_node = 0;
  std::int64_t copies = 1;       // of the sharded state; plan.shard_degree follows from the ranks
  std::int64_t checkpoints = 0;  // layers whose inputs alone are kept: every n-th of the model's
  std::int64_t most_micro_batch = 0;  // of sequences: as many as divide a replica's, 0: batch says
  std::int64_t updates = 1;           // of the weights, in what the framework's log calls a step
  std::vector<std::string> notes;     // what the run did that a scenario cannot say

  const TomlValue* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// Replaces what was said before.
  void set(const std::string& key, TomlValue value, const std::string& source);
  void erase(std::string_view key);
};

/// Of a configuration of Megatron-LM, NeMo, torchtitan, DeepSpeed or FSDP; `source` is its file.
void add_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
               const std::string& source);

}  // namespace stepcast::sim
