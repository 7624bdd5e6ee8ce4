#include "validate/diagnose/recorded_traces.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/plan/axes.hpp"

namespace stepcast::validate {
namespace {

constexpr std::int64_t no_launch = -1;

KernelName name_of(const workloads::Kernel& kernel) {
  return {kernel.name, false, kind_of(kernel.family)};
}

KernelName name_of(const workloads::Collective& collective) {
  return {collective.name, true, TraceKind::other, collective.kind};
}

}  // namespace

void TraceRecorder::start() {
  ranks_.assign(system_.num_ranks(), {});
  facts_.assign(system_.num_ranks(), std::vector<std::int64_t>(2 * program_.collectives.size(), 0));
  std::vector<KernelName> names;
  for (const workloads::Kernel& kernel : program_.kernels) names.push_back(name_of(kernel));
  for (const workloads::Collective& one : program_.collectives) names.push_back(name_of(one));
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].file = fmt::format("rank{}", r);
    ranks_[r].rank = static_cast<std::int64_t>(r);
    ranks_[r].world_size = static_cast<std::int64_t>(ranks_.size());
    ranks_[r].names = names;
  }
}

void TraceRecorder::work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from,
                         Time to) {
  ranks_[rank].kernels.push_back({from, to - from, work, lane, no_launch, -1});
}

void TraceRecorder::transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer,
                             Time arrived, Time, Time ended) {
  const auto name = static_cast<std::uint32_t>(program_.kernels.size() + transfer);
  ranks_[rank].kernels.push_back(
      {arrived, ended - arrived, name, lane, no_launch, facts_of(rank, lane, transfer)});
}

std::int64_t TraceRecorder::facts_of(std::uint32_t rank, std::uint8_t lane,
                                     std::uint32_t transfer) {
  const workloads::Collective& collective = program_.collectives[transfer];
  const workloads::Axis& axis = workloads::axis_of(collective.group);
  const bool pair = axis.meeting == workloads::Meeting::pair;
  const bool receives = pair && lane == axis.receiving_lane;
  std::int64_t& place = facts_[rank][2 * transfer + (receives ? 1 : 0)];
  if (place > 0) return place - 1;
  const std::uint32_t slot = workloads::slot_of(collective.group, receives);
  const std::uint32_t communicator = system_.communicator_of[slot][rank];
  CollectiveFacts facts;
  facts.group = axis.name;
  facts.in = collective.bytes.value;
  facts.dtype = "Byte";
  if (communicator != engine::no_communicator) {
    const auto& members = system_.communicators[communicator].members;
    facts.members = fmt::format("[{}]", fmt::join(members, ", "));
    facts.group_size = static_cast<std::int64_t>(members.size());
    if (pair && members.size() == 2) {
      if (receives) facts.source = members.front();
      if (!receives) facts.destination = members.back();
    }
  }
  ranks_[rank].facts.push_back(std::move(facts));
  place = static_cast<std::int64_t>(ranks_[rank].facts.size());
  return place - 1;
}

std::vector<RankTrace> TraceRecorder::take(Duration step) {
  Time first = Time::max();
  for (const RankTrace& rank : ranks_)
    for (const TraceKernel& kernel : rank.kernels) first = std::min(first, kernel.begin);
  const Duration begin = first.time_since_epoch();
  for (RankTrace& rank : ranks_) {
    const std::size_t once = rank.kernels.size();
    for (std::size_t k = 0; k < once; ++k) {
      rank.kernels[k].begin -= begin;
      TraceKernel again = rank.kernels[k];
      again.begin += step;
      rank.kernels.push_back(again);
    }
    std::ranges::stable_sort(rank.kernels, {}, &TraceKernel::begin);
    for (std::int64_t n = 0; n <= 2; ++n)
      rank.gpu_marks.push_back({n, Time(n * step), Time((n + 1) * step)});
  }
  return std::move(ranks_);
}

}  // namespace stepcast::validate
