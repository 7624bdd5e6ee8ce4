// What engineers ask of a step: where its time goes, what would move it, what the times rest on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/handout/memory_sections.hpp"
#include "sim/handout/pipeline_sections.hpp"
#include "sim/handout/step_handout.hpp"
#include "sim/pictures/bar_picture.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/why.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t path_rows = 15;

struct NamedTimes {
  std::string name;
  StageTimes times;
};

ToldSection shares_section(const StepHandout& h) {
  const StepReport& r = h.report;
  std::vector<NamedTimes> rows{{"all ranks", times_of(r)}};
  if (h.stages.size() > 1)
    for (std::size_t i = 0; i < h.stages.size(); ++i)
      rows.push_back({fmt::format("stage {}", i), h.stages[i]});
  BarPicture picture{"step_parts",
                     "Where the step goes",
                     "s",
                     {"compute", "exposed communication", "bubble", "wait", "host"}};
  TextTable table;
  table.column("", "", TextTable::Align::left, "ranks");
  for (const std::string& part : picture.series) table.column(part, "s"), table.column("share");
  for (const auto& [name, t] : rows) {
    const std::vector<double> parts{t.compute_s, t.exposed_s, t.bubble_s, t.wait_s, t.host_s};
    double all = 0;
    for (const double part : parts) all += part;
    TableCells cells{name};
    for (const double part : parts) {
      cells.push_back(rounded(part));
      cells.push_back({percent(all > 0 ? part / all : 0)});
    }
    table.row(std::move(cells));
    picture.rows.push_back({name, parts, percent(t.compute_s / all) + " compute"});
  }
  ToldSection out{"Where the step goes", {}};
  out.blocks.emplace_back(Chart{picture.name, picture.title, bar_picture(picture), std::move(table),
                                "Mean over ranks of disjoint wall time: the parts add up."});
  const ExposedCommunication& e = r.exposed;
  out.blocks.emplace_back(Paragraph{
      fmt::format("Exposed communication: tensor {}, pipeline {}, data {}, expert {}, offload {}.",
                  to_text(e.tensor), to_text(e.pipeline), to_text(e.data), to_text(e.expert),
                  to_text(e.offload))});
  return out;
}

Chart slopes_chart(const Why& why) {
  BarPicture picture{"slopes", "What would move the step", "elasticity"};
  for (const Sensitivity& row : why.slopes.rows)
    if (row.elasticity && std::abs(*row.elasticity) >= 0.001 && picture.rows.size() < 12)
      picture.rows.push_back(
          {row.name, {*row.elasticity}, fmt::format("{:+.3f}", *row.elasticity)});
  return {picture.name, picture.title, bar_picture(picture), slopes_table(why),
          "Per cent of the step per per cent more of the quantity, NCCL's choices frozen; half "
          "and twice are simulated anew."};
}

ToldSection path_section(const Why& why) {
  ToldSection out{"Critical path", {}};
  out.blocks.emplace_back(
      ToldTable{"What the step's length is made of", path_table(why, path_rows)});
  if (!why.slopes.rows.empty()) out.blocks.emplace_back(slopes_chart(why));
  if (!why.levers.empty())
    out.blocks.emplace_back(ToldTable{"What could be otherwise", levers_table(why)});
  return out;
}

ToldSection provenance_section(const StepReport& r) {
  BarPicture picture{"provenance", "What the times rest on", "share, %", {}};
  TextTable table;
  table.column("times of", "", TextTable::Align::left);
  for (int p = 0; p < num_provenances; ++p) {
    picture.series.emplace_back(name_of(static_cast<Provenance>(p)));
    table.column(picture.series.back());
  }
  for (const auto& [name, shares] : {std::pair{"kernels", r.kernel_provenance},
                                     std::pair{"collectives", r.network_provenance}}) {
    BarRow row{name, {}};
    TableCells cells{name};
    for (const double share : shares) {
      row.parts.push_back(100 * share);
      cells.push_back({percent(share)});
    }
    picture.rows.push_back(std::move(row));
    table.row(std::move(cells));
  }
  ToldSection out{"What the times rest on", {}};
  out.blocks.emplace_back(Chart{picture.name, picture.title, bar_picture(picture), std::move(table),
                                "Measured: this shape on this GPU. Datasheet: peaks alone."});
  TextTable notes;
  notes.column("kind", "", TextTable::Align::left);
  notes.column("what", "", TextTable::Align::left);
  for (const std::string& text : assumptions(r.scenario)) notes.row({"assumed", text});
  for (const std::string& text : r.warnings) notes.row({"warning", text});
  if (notes.num_rows() > 0)
    out.blocks.emplace_back(ToldTable{"Assumptions and warnings", std::move(notes)});
  if (const std::string text = goodput_text(r); !text.empty())
    out.blocks.emplace_back(Listing{"Failures and goodput", text, false});
  return out;
}

}  // namespace

std::vector<ToldSection> engineer_sections(const StepHandout& h) {
  std::vector<ToldSection> out{shares_section(h)};
  if (h.why) out.push_back(path_section(*h.why));
  out.push_back(memory_section(h));
  if (!h.stages.empty() && !h.timeline.events.empty()) out.push_back(pipeline_section(h));
  if (!h.timeline.events.empty())
    if (auto section = collectives_section(h)) out.push_back(std::move(*section));
  out.push_back(provenance_section(h.report));
  return out;
}

}  // namespace stepcast::sim
