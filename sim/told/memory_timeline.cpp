#include "sim/told/memory_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/units_text.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/whole_file.hpp"
#include "workloads/memory/figures.hpp"
#include "workloads/memory/replay.hpp"

namespace stepcast::sim {
namespace {

using workloads::AllocationTurn;
using workloads::StepAllocations;

double to_gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string name_of(const AllocationTurn& turn, std::int64_t chunks) {
  if (!turn.turn) return "update";
  constexpr std::string_view passes[] = {"forward", "backward", "input gradients",
                                         "weight gradients"};
  std::string out = fmt::format("{} {}", passes[static_cast<std::size_t>(turn.turn->pass)],
                                turn.turn->micro_batch);
  if (chunks > 1) out += fmt::format(".{}", turn.turn->chunk);
  return out;
}

StageMemory memory_of(const StepAllocations& steps, std::int64_t stage, std::int64_t chunks) {
  StageMemory out{stage, {}, {}};
  std::vector<std::int64_t> bytes(steps.tensors);
  std::vector<workloads::TensorKind> kinds(steps.tensors);
  MemorySample now;
  std::size_t turn = 0;  // the next to begin
  workloads::replay(steps, [&](std::size_t i, const workloads::CachingAllocator& allocator) {
    const workloads::Allocation& a = steps.order[i];
    if (a.bytes > 0) bytes[a.tensor] = a.bytes, kinds[a.tensor] = a.kind;
    now.of_kind[static_cast<std::size_t>(kinds[a.tensor])] +=
        a.bytes > 0 ? a.bytes : -bytes[a.tensor];
    while (turn < steps.turns.size() && steps.turns[turn].first <= i) {
      if (steps.turns[turn].step == 1) out.turns.push_back(name_of(steps.turns[turn], chunks));
      ++turn;
    }
    if (out.turns.empty()) return;
    now.turn = out.turns.size() - 1;
    now.allocated = allocator.allocated();
    now.reserved = allocator.reserved();
    out.samples.push_back(now);
  });
  return out;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::vector<StageMemory> memory_timeline(const Scenario& s) {
  if (workloads::allocates_once(s.plan, s.software))
    throw InputError("--memory-timeline",
                     "memory of " + s.software.framework + " is planned before the step",
                     "it does not change: see memory_allocated_gib");
  std::vector<StageMemory> out;
  for (std::int64_t stage = 0; stage < s.plan.pipeline; ++stage)
    out.push_back(memory_of(
        workloads::step_allocations({s.model, s.plan, s.batch, s.precision, s.software}, stage),
        stage, s.plan.virtual_stages));
  return out;
}

std::string memory_csv(const std::vector<StageMemory>& stages) {
  std::string out = "stage,event,turn,allocated_gib,reserved_gib";
  for (const std::string_view kind : workloads::tensor_kind_names) {
    std::string column(kind);
    std::replace(column.begin(), column.end(), ' ', '_');
    out += "," + column + "_gib";
  }
  out += "\n";
  for (const StageMemory& stage : stages)
    for (std::size_t i = 0; i < stage.samples.size(); ++i) {
      const MemorySample& sample = stage.samples[i];
      out += fmt::format("{},{},{},{:.6g},{:.6g}", stage.stage, i, stage.turns[sample.turn],
                         to_gib(sample.allocated), to_gib(sample.reserved));
      for (const std::int64_t bytes : sample.of_kind) out += fmt::format(",{:.6g}", to_gib(bytes));
      out += "\n";
    }
  return out;
}

std::string memory_json(const std::vector<StageMemory>& stages) {
  using TimelineJson = nlohmann::ordered_json;
  TimelineJson list = TimelineJson::array();
  for (const StageMemory& stage : stages) {
    TimelineJson one{{"stage", stage.stage},
                     {"turn", TimelineJson::array()},
                     {"allocated_gib", TimelineJson::array()},
                     {"reserved_gib", TimelineJson::array()}};
    for (const std::string_view kind : workloads::tensor_kind_names)
      one["parts_gib"][std::string(kind)] = TimelineJson::array();
    for (const MemorySample& sample : stage.samples) {
      one["turn"].push_back(stage.turns[sample.turn]);
      one["allocated_gib"].push_back(to_gib(sample.allocated));
      one["reserved_gib"].push_back(to_gib(sample.reserved));
      for (std::size_t k = 0; k < sample.of_kind.size(); ++k)
        one["parts_gib"][std::string(workloads::tensor_kind_names[k])].push_back(
            to_gib(sample.of_kind[k]));
    }
    list.push_back(std::move(one));
  }
  return json_text(TimelineJson{{"stages", std::move(list)}});
}

void write_memory_timeline(const std::string& path, const Scenario& s) {
  const std::vector<StageMemory> stages = memory_timeline(s);
  if (ends_with(path, ".json")) return write_whole(path, memory_json(stages));
  if (!ends_with(path, ".svg")) return write_whole(path, memory_csv(stages));
  const std::string title =
      fmt::format("{}, micro-batch {}: memory over a step", s.model.name, s.batch.micro_batch);
  write_whole(path, memory_svg(stages, title, s.node.gpu.memory));
}

}  // namespace stepcast::sim
