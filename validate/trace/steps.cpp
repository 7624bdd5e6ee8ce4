#include "validate/trace/steps.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/check.hpp"
#include "validate/trace/records/kernels.hpp"

namespace stepcast::validate {
namespace {

/// Number of the mark around an instant.
std::int64_t mark_at(const std::vector<StepMark>& marks, Time at) {
  const auto after = std::ranges::upper_bound(marks, at, {}, &StepMark::begin);
  if (after == marks.begin() || std::prev(after)->end <= at) return no_step;
  return std::prev(after)->number;
}

std::optional<Time> launch_of(const RankTrace& trace, const TraceKernel& kernel) {
  const auto at =
      std::ranges::lower_bound(trace.launches, kernel.correlation, {}, &Launch::correlation);
  if (at == trace.launches.end() || at->correlation != kernel.correlation) return std::nullopt;
  return at->at;
}

/// The host runs ahead of its GPU: a kernel belongs to the step that launched it.
std::vector<std::int64_t> by_launch(const RankTrace& trace) {
  std::vector<std::int64_t> out;
  for (const TraceKernel& kernel : trace.kernels) {
    const auto launch = launch_of(trace, kernel);
    out.push_back(launch ? mark_at(trace.host_marks, *launch) : no_step);
  }
  return out;
}

/// One mark per number: a step has a mark on each stream that it used.
std::vector<StepMark> merged(const std::vector<StepMark>& marks) {
  std::map<std::int64_t, StepMark> by_number;
  for (const StepMark& mark : marks) {
    StepMark& one = by_number.try_emplace(mark.number, mark).first->second;
    one.begin = std::min(one.begin, mark.begin);
    one.end = std::max(one.end, mark.end);
  }
  std::vector<StepMark> out;
  for (const auto& [number, mark] : by_number) out.push_back(mark);
  std::ranges::stable_sort(out, {}, &StepMark::begin);
  return out;
}

std::vector<StepMark> marks_of_kernels(const RankTrace& trace,
                                       const std::vector<std::int64_t>& step_of) {
  std::vector<StepMark> out;
  for (std::size_t k = 0; k < step_of.size(); ++k)
    if (step_of[k] != no_step)
      out.push_back({step_of[k], trace.kernels[k].begin, trace.kernels[k].end()});
  return merged(out);
}

/// A step lasts to the beginning of the next.
std::vector<TraceStep> periods(const std::vector<StepMark>& marks) {
  std::vector<TraceStep> out;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i)
    if (marks[i + 1].number == marks[i].number + 1)
      out.push_back({marks[i].number, {marks[i].begin, marks[i + 1].begin}});
  if (out.empty() && !marks.empty())
    out.push_back({marks.back().number, {marks.back().begin, marks.back().end}});
  return out;
}

std::vector<std::int64_t> by_time(const RankTrace& trace, const std::vector<StepMark>& marks) {
  std::vector<std::int64_t> out;
  for (const TraceKernel& kernel : trace.kernels) {
    const auto after = std::ranges::upper_bound(marks, kernel.begin, {}, &StepMark::begin);
    const bool inside =
        after != marks.begin() && (after != marks.end() || kernel.begin < std::prev(after)->end);
    out.push_back(inside ? std::prev(after)->number : no_step);
  }
  return out;
}

/// What stands between the ends of successive optimizers; the first counts if it is the only one,
/// for a trace may begin anywhere.
std::vector<StepMark> marks_of_optimizer(const RankTrace& trace) {
  std::vector<Time> ends;
  Time last{};
  bool seen = false;
  for (const TraceKernel& kernel : trace.kernels) {
    const TraceKind kind = trace.name_of(kernel).kind;
    if (kind == TraceKind::optimizer) last = std::max(last, kernel.end()), seen = true;
    if (kind == TraceKind::gemm && seen) ends.push_back(last), seen = false;
  }
  if (seen) ends.push_back(last);
  std::vector<StepMark> out;
  if (ends.size() == 1) out.push_back({0, trace.kernels.front().begin, ends[0]});
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    out.push_back({static_cast<std::int64_t>(i), ends[i], ends[i + 1]});
  return out;
}

}  // namespace

TraceSteps steps_of(const RankTrace& trace) {
  TraceSteps out;
  if (!trace.host_marks.empty()) out.step_of = by_launch(trace);
  std::vector<StepMark> marks = marks_of_kernels(trace, out.step_of);
  out.told_by = "ProfilerStep marks and launches";
  if (marks.empty()) {
    marks = merged(trace.gpu_marks.empty() ? trace.host_marks : trace.gpu_marks);
    out.told_by = trace.gpu_marks.empty() ? "ProfilerStep marks of the host alone"
                                          : "ProfilerStep marks of the GPU";
    out.step_of = by_time(trace, marks);
  }
  if (!marks.empty()) {
    out.steps = periods(marks);
    return out;
  }
  out.told_by = "the optimizer's kernels";
  marks = marks_of_optimizer(trace);
  if (marks.empty())
    throw InputError(trace.file, "shows no steps: neither ProfilerStep marks nor an optimizer",
                     "call profiler.step() after every step");
  out.step_of = by_time(trace, marks);
  for (const StepMark& mark : marks) out.steps.push_back({mark.number, {mark.begin, mark.end}});
  return out;
}

}  // namespace stepcast::validate
