// Memory over a step of one rank per pipeline stage: a table, JSON, a picture. Its axis is the
// order of allocations, not seconds: the replay knows no times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "workloads/memory/step_allocations.hpp"

namespace stepcast::sim {

/// After one allocation, or one that was freed.
struct MemorySample {
  std::size_t turn = 0;  // of StageMemory
  std::int64_t allocated = 0, reserved = 0;
  std::array<std::int64_t, workloads::tensor_kind_names.size()> of_kind{};
};

struct StageMemory {
  std::int64_t stage = 0;
  std::vector<std::string> turns;  // "forward 3", with chunks "forward 3.1"; "update"
  std::vector<MemorySample> samples;
};

/// Of the second step, which repeats. Throws InputError where nothing is allocated during a step.
std::vector<StageMemory> memory_timeline(const Scenario& scenario);

std::string memory_csv(const std::vector<StageMemory>& stages);
std::string memory_json(const std::vector<StageMemory>& stages);
/// `memory`: of the GPU, a line across.
std::string memory_svg(const std::vector<StageMemory>& stages, const std::string& title,
                       Bytes memory);

/// As the name of the file ends: .svg, .json, otherwise a table. Throws OutputError.
void write_memory_timeline(const std::string& path, const Scenario& scenario);

}  // namespace stepcast::sim
