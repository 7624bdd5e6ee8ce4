#include "sim/chakra/export.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <list>
#include <map>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/chakra/rank_trace.hpp"
#include "sim/chakra/trace_folder.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

NumberedGroups numbered_groups(const StepSystem& step, EtGroups& groups) {
  NumberedGroups out;
  std::int64_t last = 0;
  const std::vector<engine::Communicator>& all = step.system.communicators;
  for (std::size_t c = 0; c < all.size(); ++c) {
    const bool meets = all[c].members.size() > 1;
    out.number.push_back(meets ? ++last : 0);
    if (!meets) continue;
    out.of_kind[step.layout->kind_of(c)].push_back(last);
    groups[std::to_string(last)] = {all[c].members.begin(), all[c].members.end()};
  }
  return out;
}

/// Which ranks each file stands for: all that do as it does, where one of each class was asked for.
std::map<std::int64_t, std::vector<std::int64_t>> ranks_of_files(const Timeline& timeline,
                                                                 const BoundStep& bound) {
  std::map<std::int64_t, std::vector<std::int64_t>> out;
  if (timeline.asked.kind != RankChoice::Kind::representatives) {
    for (const auto& [rank, simulated] : timeline.to_show()) out[rank] = {rank};
    return out;
  }
  const auto classes = bound.step.layout->classes_of(bound.step.system);
  std::map<std::uint32_t, std::int64_t> first;
  for (std::size_t r = 0; r < classes->ranks.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    out[first.try_emplace(classes->ranks[r], rank).first->second].push_back(rank);
  }
  return out;
}

std::map<std::string, std::string> facts_of(const Timeline& timeline, const NumberedGroups& groups,
                                            const std::vector<std::int64_t>& ranks) {
  std::map<std::string, std::string> out{
      {"source", "stepcast"},
      {std::string(fact_step), std::to_string(timeline.step.count())},
      {std::string(fact_ranks), number_list(ranks)}};
  for (const auto& [kind, numbers] : groups.of_kind)
    out[std::string(fact_groups) + std::string(workloads::axis_of(kind).name)] =
        number_list(numbers);
  return out;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    throw InputError(folder, "is there and not empty", "nothing is overwritten: give a new folder");
  fs::create_directories(folder, error);
  if (error) throw OutputError(folder, "cannot be written", error.message());
}

}  // namespace

Bytes estimated_trace(const TimelineSize& size) {
  // Of a node and the host's before it, as traces of llama2-7b on 8 to 64 H100 came out (2026-11).
  constexpr std::int64_t per_event = 152;
  return Bytes(per_event * size.events + size.name_bytes);
}

ChakraExport export_trace(const Scenario& scenario, Session& session, const std::string& folder,
                          const RankChoice& ranks, Bytes most) {
  if (scenario.noise.on() && !scenario.run.without.jitter)
    throw InputError("[noise]", "makes every step another, a trace is one",
                     "take it out of the scenario");
  Timeline timeline;
  timeline.asked = ranks;
  const StepReport report = session.timeline(scenario, timeline, [&](const TimelineSize& size) {
    const Bytes about = estimated_trace(size);
    if (about > most)
      throw InputError(folder,
                       fmt::format("would be about {} ({} of {} ranks)", to_text(about), size.ranks,
                                   size.all_ranks),
                       "one file for all ranks that do the same: --ranks classes; or allow it by "
                       "--limit");
  });
  const BoundStep bound = session.bound_step(report.scenario);
  make_folder(folder);
  EtGroups groups;
  const NumberedGroups numbers = numbered_groups(bound.step, groups);
  std::map<std::int64_t, std::vector<const TimelineEvent*>> events_of;
  for (const TimelineEvent& e : timeline.events) events_of[e.rank].push_back(&e);
  const auto shown = timeline.to_show();
  ChakraExport out;
  out.groups = groups.size();
  std::list<WholeFile> files;
  const auto add = [&](const std::string& name, std::string_view text) {
    WholeFile& file = files.emplace_back((fs::path(folder) / name).string());
    file.write(text);
    file.seal();
  };
  for (const auto& [rank, alike] : ranks_of_files(timeline, bound)) {
    EtWriter file(facts_of(timeline, numbers, alike));
    RankTrace(bound, numbers, rank, events_of[shown.at(rank)], [&](const EtNode& node) {
      file.add(node);
      ++out.nodes;
    }).write();
    add(fmt::format("step.{}.et", rank), file.text());
    ++out.files;
    out.bytes += file.text().size();
  }
  add(std::string(comm_group_file), comm_group_json(groups));
  keep_together(files);
  return out;
}

}  // namespace stepcast::sim
