#include "sim/handout/memory_sections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/units_text.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/run/memory_figures.hpp"

namespace stepcast::sim {
namespace {

double in_gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// Stages with the same parts stand once.
struct StageParts {
  std::int64_t first = 0, last = 0;
  workloads::Memory memory;
  std::string name() const {
    return first == last ? fmt::format("stage {}", first)
                         : fmt::format("stages {} to {}", first, last);
  }
};

bool same_parts(const workloads::Memory& a, const workloads::Memory& b) {
  return std::ranges::equal(a.parts, b.parts, [](const auto& x, const auto& y) {
    return x.name == y.name && x.bytes == y.bytes;
  });
}

std::vector<StageParts> parts_of_stages(const Scenario& s) {
  std::vector<StageParts> out;
  for (std::int64_t stage = 0; stage < s.plan.pipeline; ++stage) {
    workloads::Memory memory = memory_of_stage(s, stage);
    if (!out.empty() && same_parts(out.back().memory, memory))
      out.back().last = stage;
    else
      out.push_back({stage, stage, std::move(memory)});
  }
  return out;
}

Chart parts_chart(const Scenario& s) {
  const std::vector<StageParts> stages = parts_of_stages(s);
  BarPicture picture{"memory_parts", "Memory per GPU against its capacity", "GiB", {}};
  for (const auto& stage : stages)
    for (const workloads::MemoryPart& part : stage.memory.parts)
      if (part.bytes.value > 0 && std::ranges::count(picture.series, part.name) == 0)
        picture.series.push_back(part.name);
  picture.limit = in_gib(s.node.gpu.memory.value);
  picture.limit_text = s.node.gpu.name + ": " + to_text(s.node.gpu.memory);
  TextTable table;
  table.column("", "", TextTable::Align::left, "stage");
  for (const std::string& part : picture.series) table.column(part, "GiB");
  table.column("all", "GiB");
  for (const StageParts& stage : stages) {
    BarRow row{stage.name(), std::vector<double>(picture.series.size()),
               to_text(stage.memory.total())};
    for (const workloads::MemoryPart& part : stage.memory.parts)
      if (part.bytes.value > 0)
        row.parts[static_cast<std::size_t>(std::ranges::find(picture.series, part.name) -
                                           picture.series.begin())] += in_gib(part.bytes.value);
    TableCells cells{row.label};
    for (const double part : row.parts) cells.push_back(rounded(part));
    cells.push_back(rounded(in_gib(stage.memory.total().value)));
    table.row(std::move(cells));
    picture.rows.push_back(std::move(row));
  }
  return {picture.name, picture.title, bar_picture(picture), std::move(table),
          "Parts at the peak of the schedule."};
}

/// The fullest moment of each turn: micro-batches pass forward and backward, then the update.
TextTable turns_table(const std::vector<StageMemory>& stages) {
  constexpr std::size_t most_rows = 400;
  TextTable table;
  table.column("stage");
  table.column("turn", "", TextTable::Align::left);
  for (const char* heading : {"allocated", "reserved"}) table.column(heading, "GiB");
  for (const std::string_view kind : workloads::tensor_kind_names)
    table.column(std::string(kind), "GiB");
  std::size_t rows = 0, left_out = 0;
  for (const StageMemory& stage : stages)
    for (std::size_t turn = 0; turn < stage.turns.size(); ++turn) {
      const MemorySample* fullest = nullptr;
      for (const MemorySample& sample : stage.samples)
        if (sample.turn == turn && (fullest == nullptr || sample.allocated > fullest->allocated))
          fullest = &sample;
      if (fullest == nullptr) continue;
      if (++rows > most_rows) {
        ++left_out;
        continue;
      }
      TableCells cells{counted(stage.stage), stage.turns[turn], rounded(in_gib(fullest->allocated)),
                       rounded(in_gib(fullest->reserved))};
      for (const std::int64_t bytes : fullest->of_kind) cells.push_back(rounded(in_gib(bytes)));
      table.row(std::move(cells));
    }
  if (left_out > 0)
    table.sentence({}, fmt::format("{} further turns: stepcast run --memory-timeline FILE.csv "
                                   "writes all",
                                   left_out));
  return table;
}

}  // namespace

ToldSection memory_section(const StepHandout& h) {
  const StepReport& r = h.report;
  const Scenario& s = r.scenario;
  ToldSection out{"Memory", {}};
  out.blocks.emplace_back(parts_chart(s));
  const workloads::MemoryFigures& f = r.memory;
  out.blocks.emplace_back(Paragraph{
      fmt::format("Fullest stage: allocated {}, reserved {}, process {}, needed {} of {}.",
                  to_text(f.allocated), to_text(f.reserved), to_text(f.process()),
                  to_text(f.needed()), to_text(s.node.gpu.memory))});
  if (h.memory.empty()) return out;
  // Stages in the middle differ little: first and last are drawn, the table has all.
  std::vector<StageMemory> drawn{h.memory.front()};
  if (h.memory.size() > 1) drawn.push_back(h.memory.back());
  const std::string title = "Memory over a step";
  out.blocks.emplace_back(Chart{"memory_over_step", title,
                                memory_svg(drawn, title, s.node.gpu.memory), turns_table(h.memory),
                                "First and last stage; the table has the fullest moment of each "
                                "turn."});
  return out;
}

}  // namespace stepcast::sim
