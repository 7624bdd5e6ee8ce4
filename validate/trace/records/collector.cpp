#include "validate/trace/records/collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

constexpr std::string_view step_name = "ProfilerStep#";

}  // namespace

bool is_gpu(std::string_view category) {
  return category == "kernel" || category == "Kernel" || category == "gpu_memcpy" ||
         category == "Memcpy" || category == "gpu_memset" || category == "Memset";
}

bool is_launch(std::string_view category) {
  return category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime";
}

void TraceCollector::fail(const TraceEvent& event, const std::string& what) const {
  throw InputError(fmt::format("{}: {}[{}]", trace_.file, event.list, event.index), what);
}

void TraceCollector::add(TraceEvent& event) {
  if (event.phase != "X") return;
  if (is_gpu(event.category)) return add_kernel(event);
  if (event.name.starts_with(step_name)) return add_mark(event);
  if (is_launch(event.category) && event.correlation && event.begin)
    launches_.push_back({*event.correlation, *event.begin});
}

void TraceCollector::add_kernel(TraceEvent& event) {
  if (!event.begin || !event.duration) fail(event, "a kernel without ts or dur in microseconds");
  if (*event.duration < 0) fail(event, "a kernel of negative duration");
  if (event.name.empty()) fail(event, "a kernel without a name");
  RawKernel raw{*event.begin, *event.duration, event.device, {}};
  raw.kernel.name = name_index(event.name);
  raw.kernel.stream = event.stream ? *event.stream : event.thread.value_or(0);
  raw.kernel.correlation = event.correlation.value_or(-1);
  if (event.has_facts) raw.kernel.facts = facts_index(event.facts);
  kernels_.push_back(raw);
}

void TraceCollector::add_mark(const TraceEvent& event) {
  const auto number = integer_of(event.name.substr(step_name.size()));
  if (!number || !event.begin || !event.duration) return;
  const bool gpu = event.category == "gpu_user_annotation";
  marks_.push_back({*number, *event.begin, *event.duration, gpu});
}

std::uint32_t TraceCollector::name_index(std::string_view name) {
  if (const auto at = name_indexes_.find(name); at != name_indexes_.end()) return at->second;
  const auto index = static_cast<std::uint32_t>(trace_.names.size());
  trace_.names.push_back(named_kernel(std::string(name)));
  name_indexes_.emplace(name, index);
  return index;
}

/// Successive collectives are often alike; those of a step are few.
std::int64_t TraceCollector::facts_index(CollectiveFacts& facts) {
  const auto recent = std::min<std::size_t>(trace_.facts.size(), 64);
  for (std::size_t i = trace_.facts.size() - recent; i < trace_.facts.size(); ++i)
    if (trace_.facts[i] == facts) return static_cast<std::int64_t>(i);
  trace_.facts.push_back(std::move(facts));
  return static_cast<std::int64_t>(trace_.facts.size()) - 1;
}

/// A process may touch a second GPU (peer copies); its rank is the one with most kernels.
void TraceCollector::keep_main_device() {
  std::map<std::int64_t, std::size_t> counts;
  for (const RawKernel& k : kernels_) ++counts[k.device];
  const auto most = std::ranges::max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(kernels_, [&](const RawKernel& k) { return k.device != most->first; });
}

std::int64_t TraceCollector::first() const {
  std::int64_t out = kernels_.front().begin;
  for (const RawKernel& k : kernels_) out = std::min(out, k.begin);
  for (const RawMark& m : marks_) out = std::min(out, m.begin);
  for (const RawLaunch& l : launches_) out = std::min(out, l.at);
  return out;
}

RankTrace TraceCollector::finish() {
  if (kernels_.empty()) throw InputError(trace_.file, "holds no GPU kernel", profile_hint);
  keep_main_device();
  const std::int64_t base = first();
  const auto time = [&](std::int64_t ns) {
    constexpr std::int64_t longest = std::int64_t{90} * 86400 * 1'000'000'000;
    if (ns - base > longest) throw InputError(trace_.file, "spans more than 90 days", "");
    return Time(std::chrono::nanoseconds(ns - base));
  };
  for (RawKernel& k : kernels_) {
    k.kernel.begin = time(k.begin);
    k.kernel.duration = time(k.begin + k.duration) - k.kernel.begin;
    trace_.kernels.push_back(k.kernel);
  }
  for (const RawMark& m : marks_)
    (m.gpu ? trace_.gpu_marks : trace_.host_marks)
        .push_back({m.number, time(m.begin), time(m.begin + m.duration)});
  for (const RawLaunch& l : launches_) trace_.launches.push_back({l.correlation, time(l.at)});
  std::ranges::stable_sort(trace_.kernels, {}, &TraceKernel::begin);
  std::ranges::stable_sort(trace_.gpu_marks, {}, &StepMark::begin);
  std::ranges::stable_sort(trace_.host_marks, {}, &StepMark::begin);
  std::ranges::stable_sort(trace_.launches, {}, &Launch::correlation);
  return std::move(trace_);
}

}  // namespace stepcast::validate
