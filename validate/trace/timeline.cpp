#include "validate/trace/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "validate/trace/measure.hpp"

namespace stepcast::validate {
namespace {

KernelName name_of(const sim::TimelineEvent& e) {
  KernelName out{e.name, e.is_collective()};
  if (out.communication)
    out.collective = sim::meaning_of(sim::collective_names, e.kind);
  else if (e.family)
    out.kind = kind_of(*e.family);
  return out;
}

/// Sizes are nccl-tests' already.
CollectiveFacts facts_of(const sim::TimelineEvent& e) {
  CollectiveFacts out;
  out.group = e.group;
  out.in = e.bytes.value;
  out.dtype = "Byte";
  return out;
}

/// The step twice, as the run repeats it: what of it lies after the next one's beginning is then
/// beside that one's events, as it was.
class Repeated {
 public:
  Repeated(const sim::Timeline& timeline, std::int64_t rank, const std::string& file)
      : step_(timeline.step) {
    trace_.file = file;
    trace_.rank = rank;
    trace_.alike = timeline.ranks.at(rank);
  }

  void add(const sim::TimelineEvent& e) {
    const auto [at, added] =
        names_.try_emplace({e.name, e.kind}, static_cast<std::uint32_t>(trace_.names.size()));
    if (added) trace_.names.push_back(name_of(e));
    std::int64_t facts = -1;
    if (e.is_collective()) {
      facts = static_cast<std::int64_t>(trace_.facts.size());
      trace_.facts.push_back(facts_of(e));
    }
    for (const Duration shift : {Duration{}, step_}) {
      trace_.kernels.push_back(
          {Time(e.start + shift), e.duration, at->second, e.lane, no_correlation, facts});
      waits_.push_back(e.waited);
    }
  }

  RankTrace finish() {
    for (std::int64_t n = 0; n <= 2; ++n)
      trace_.gpu_marks.push_back({n, Time(n * step_), Time((n + 1) * step_)});
    std::vector<std::size_t> order(waits_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return trace_.kernels[i].begin; });
    std::vector<TraceKernel> kernels;
    for (const std::size_t i : order) {
      kernels.push_back(trace_.kernels[i]);
      trace_.waits.push_back(waits_[i]);
    }
    trace_.kernels = std::move(kernels);
    return std::move(trace_);
  }

 private:
  static constexpr std::int64_t no_correlation = -1;
  Duration step_;
  RankTrace trace_;
  std::vector<Duration> waits_;
  // A product and the collective behind it may share a name.
  std::map<std::pair<std::string, std::string>, std::uint32_t> names_;
};

}  // namespace

bool is_timeline(TraceFile& file) { return file.ahead().starts_with(sim::timeline_head); }

sim::Timeline read_timeline(const std::string& path) {
  std::vector<sim::Timeline> all = sim::read_timelines(path);
  if (all.empty()) throw InputError(path, "shows no rank");
  const auto measured = std::ranges::find(all, "measured", &sim::Timeline::title);
  return std::move(measured == all.end() ? all.front() : *measured);
}

std::vector<RankTrace> traces_of(const sim::Timeline& timeline, const std::string& file) {
  if (timeline.events.empty() || timeline.step <= Duration{})
    throw InputError(file, "shows no step");
  std::map<std::int64_t, Repeated> ranks;
  for (const auto& [rank, alike] : timeline.ranks) ranks.try_emplace(rank, timeline, rank, file);
  for (const sim::TimelineEvent& e : timeline.events) ranks.at(e.rank).add(e);
  std::vector<RankTrace> out;
  for (auto& [rank, repeated] : ranks) out.push_back(repeated.finish());
  return out;
}

MeasuredStep measure_timeline(const sim::Timeline& timeline, const std::string& file) {
  std::vector<RankTrace> traces = traces_of(timeline, file);
  std::int64_t all = 0;
  for (const RankTrace& trace : traces) all += trace.alike;
  MeasuredStep out = measure_traces(std::move(traces), 1);
  out.notes = {fmt::format("Timeline \"{}\" of {} rank{}: one step.", timeline.title, all,
                           all == 1 ? "" : "s")};
  return out;
}

}  // namespace stepcast::validate
