#include "validate/trace/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

/// Sums over the steps of all ranks, in seconds, each rank as often as it stands for others; a mean
/// at the end.
class Sums {
 public:
  void add_steps(const RankSteps& rank, const std::vector<Duration>& transfer,
                 const std::set<std::int64_t>& numbers);
  StepBreakdown mean(bool waiting_known) const;

 private:
  void add_kernel(const RankTrace& trace, const TraceKernel& kernel, Duration transfer);

  double steps_ = 0;
  double step_ = 0, compute_ = 0, communication_ = 0, exposed_ = 0, transferring_ = 0, idle_ = 0;
  struct Sum {
    double seconds = 0, calls = 0, bytes = 0, parts = 0;
    bool sized = true;
    StepTally mean(double n) const {
      return {to_duration(seconds / n), calls / n, bytes / n, sized, parts / n};
    }
  };
  std::map<TraceKind, Sum> kernels_;
  std::map<workloads::CollectiveKind, Sum> collectives_;
};

void Sums::add_steps(const RankSteps& rank, const std::vector<Duration>& transfer,
                     const std::set<std::int64_t>& numbers) {
  const BusyLanes lanes = lanes_of(rank.trace, transfer);
  for (const TraceStep& step : rank.steps.steps) {
    if (!numbers.contains(step.number)) continue;
    const Duration length = step.span.end - step.span.begin;
    const auto alike = static_cast<double>(rank.trace.alike);
    steps_ += alike;
    step_ += alike * seconds(length);
    compute_ += alike * seconds(lanes.compute.within(step.span));
    exposed_ += alike * seconds(lanes.exposed.within(step.span));
    transferring_ += alike * seconds(lanes.transferring.within(step.span));
    idle_ += alike * seconds(length - lanes.any.within(step.span));
  }
  for (std::size_t k = 0; k < rank.trace.kernels.size(); ++k)
    if (numbers.contains(rank.steps.step_of[k]))
      add_kernel(rank.trace, rank.trace.kernels[k], transfer[k]);
}

void Sums::add_kernel(const RankTrace& trace, const TraceKernel& kernel, Duration transfer) {
  const KernelName& name = trace.name_of(kernel);
  const auto alike = static_cast<double>(trace.alike);
  if (!name.communication) {
    Sum& sum = kernels_[name.kind];
    sum.seconds += alike * seconds(kernel.duration);
    sum.calls += alike;
    if (name.part) sum.parts += alike;
    return;
  }
  communication_ += alike * seconds(kernel.duration);
  const auto kind = collective_of(trace, kernel);
  if (!kind) return;
  Sum& sum = collectives_[*kind];
  sum.seconds += alike * seconds(transfer);
  sum.calls += alike;
  const auto bytes = kernel.facts < 0
                         ? std::nullopt
                         : bytes_of(trace.facts[static_cast<std::size_t>(kernel.facts)]);
  sum.bytes += alike * bytes.value_or(0);
  sum.sized = sum.sized && bytes;
}

StepBreakdown Sums::mean(bool waiting_known) const {
  const auto part = [&](double sum) { return to_duration(sum / steps_); };
  StepBreakdown out;
  out.step = part(step_);
  out.compute = part(compute_);
  out.communication = part(communication_);
  out.exposed = part(exposed_);
  out.idle = part(idle_);
  if (waiting_known) {
    out.transferring = part(transferring_);
    out.waiting = part(exposed_ - transferring_);
  }
  for (const auto& [kind, sum] : kernels_) out.kernels[kind] = sum.mean(steps_);
  for (const auto& [kind, sum] : collectives_) out.collectives[kind] = sum.mean(steps_);
  return out;
}

void check_ranks(const std::vector<RankTrace>& traces) {
  std::map<std::int64_t, std::string> files;
  for (const RankTrace& trace : traces) {
    if (!trace.rank) continue;
    const auto [at, added] = files.try_emplace(*trace.rank, trace.file);
    if (!added)
      throw InputError(trace.file, fmt::format("is of rank {}, as is {}", *trace.rank, at->second),
                       "give one file per rank");
  }
}

std::vector<std::string> notes_of(const Meetings& meetings, std::size_t ranks) {
  std::vector<std::string> out;
  if (meetings.met + meetings.alone == 0) return out;
  if (ranks < 2)
    out.emplace_back(
        "One rank alone: the time of a collective includes waiting for its peers. Give the traces "
        "of several ranks to tell them apart.");
  if (ranks > 1 && meetings.alone > 0)
    out.push_back(fmt::format(
        "{} of {} collective kernels found no peer in the given traces: their waiting counts as "
        "transfer.",
        meetings.alone, meetings.met + meetings.alone));
  if (ranks > 1 && !meetings.communicators_known)
    out.emplace_back(
        "Some collectives name no process group: the n-th of a stream is taken to be one "
        "collective of all given ranks.");
  return out;
}

}  // namespace

BusyLanes lanes_of(const RankTrace& trace, const std::vector<Duration>& transfer) {
  std::vector<Interval> compute, communication, moving;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    const TraceKernel& kernel = trace.kernels[k];
    const KernelName& name = trace.name_of(kernel);
    if (name.communication) {
      communication.push_back({kernel.begin, kernel.end()});
      moving.push_back({kernel.end() - transfer[k], kernel.end()});
    } else if (name.kind != TraceKind::host_copy) {
      compute.push_back({kernel.begin, kernel.end()});
    }
  }
  std::vector<Interval> all = compute;
  all.insert(all.end(), communication.begin(), communication.end());
  BusyLanes out{Intervals(std::move(compute)), Intervals(std::move(all)), {}, {}};
  out.exposed = Intervals(std::move(communication)).minus(out.compute);
  out.transferring = Intervals(std::move(moving)).minus(out.compute);
  return out;
}

std::set<std::int64_t> counted_steps(const RankSteps& rank, std::optional<std::int64_t> skip) {
  const std::vector<TraceStep>& steps = rank.steps.steps;
  const auto there = static_cast<std::int64_t>(steps.size());
  const std::int64_t left_out = skip.value_or(there >= 2 ? 1 : 0);
  if (left_out >= there)
    throw InputError(rank.trace.file,
                     fmt::format("has {} whole step{}, {} to be left out", there,
                                 there == 1 ? "" : "s", left_out),
                     "profile more steps, or lower --skip");
  std::set<std::int64_t> out;
  for (std::int64_t i = left_out; i < there; ++i)
    out.insert(steps[static_cast<std::size_t>(i)].number);
  return out;
}

std::optional<double> bytes_of(const CollectiveFacts& facts) {
  struct Size {
    std::string_view name;
    double bytes;
  };
  // c10::ScalarType, as Kineto prints it.
  constexpr std::array<Size, 12> sizes{{{"Float", 4},
                                        {"BFloat16", 2},
                                        {"Half", 2},
                                        {"Double", 8},
                                        {"Int", 4},
                                        {"Long", 8},
                                        {"Byte", 1},
                                        {"Char", 1},
                                        {"Short", 2},
                                        {"Bool", 1},
                                        {"Float8_e4m3fn", 1},
                                        {"Float8_e5m2", 1}}};
  if (facts.in < 0 && facts.out < 0) return std::nullopt;
  for (const Size& size : sizes)
    if (size.name == facts.dtype)
      return size.bytes * static_cast<double>(std::max(facts.in, facts.out));
  return std::nullopt;
}

MeasuredStep measure_traces(std::vector<RankTrace> traces, std::optional<std::int64_t> skip) {
  expects(!traces.empty(), "a trace to measure");
  check_ranks(traces);
  std::vector<RankSteps> ranks;
  for (RankTrace& trace : traces) {
    TraceSteps steps = steps_of(trace);
    ranks.push_back({std::move(trace), std::move(steps)});
  }
  const Meetings meetings = meetings_of(ranks);
  Sums sums;
  std::size_t least = ~std::size_t{0}, most = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::set<std::int64_t> numbers = counted_steps(ranks[r], skip);
    least = std::min(least, numbers.size());
    most = std::max(most, numbers.size());
    sums.add_steps(ranks[r], meetings.transfer[r], numbers);
  }
  MeasuredStep out{sums.mean(meetings.met > 0), {}};
  out.notes.push_back(
      fmt::format("Traces of {} rank{}, {} step{} each, told by {}.", ranks.size(),
                  ranks.size() == 1 ? "" : "s",
                  least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most),
                  most == 1 ? "" : "s", ranks.front().steps.told_by));
  for (std::string& note : notes_of(meetings, ranks.size())) out.notes.push_back(std::move(note));
  return out;
}

}  // namespace stepcast::validate
