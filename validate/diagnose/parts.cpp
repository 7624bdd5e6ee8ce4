#include "validate/diagnose/parts.hpp"

#include <algorithm>
#include <set>

#include "validate/trace/measure.hpp"

namespace stepcast::validate {
namespace {

constexpr double shortest_pause_s = 0.5e-3;  // below, a gap is one of the launches'

std::int64_t ranks_in(const CollectiveFacts& facts) {
  if (facts.group_size > 0) return facts.group_size;
  if (facts.members.find_first_of("0123456789") == std::string::npos) return 0;
  return 1 + std::ranges::count(facts.members, ',');
}

/// Cuts the steps of one rank.
class RankCutter {
 public:
  RankCutter(const std::vector<RankSteps>& ranks, const Meetings& meetings, std::size_t place,
             std::optional<std::int64_t> skip)
      : rank_(ranks[place]),
        transfer_(meetings.transfer[place]),
        last_(meetings.last[place]),
        numbers_(counted_steps(rank_, skip)),
        lanes_(lanes_of(rank_.trace, transfer_)) {
    out_.rank = rank_.trace.rank.value_or(static_cast<std::int64_t>(place));
    out_.alike = rank_.trace.alike;
    for (const TraceKernel& kernel : rank_.trace.kernels) {
      if (rank_.trace.name_of(kernel).kind != TraceKind::optimizer) continue;
      optimizer_begins_.insert(kernel.begin);
      optimizer_ends_.insert(kernel.end());
    }
  }

  RankParts cut() {
    for (const TraceStep& step : rank_.steps.steps)
      if (numbers_.contains(step.number)) add_step(step.span);
    for (std::size_t k = 0; k < rank_.trace.kernels.size(); ++k)
      if (numbers_.contains(rank_.steps.step_of[k])) add_kernel(k);
    finish();
    return std::move(out_);
  }

 private:
  void add_step(const Interval& span) {
    const double step = seconds(span.end - span.begin);
    const double transfer = seconds(lanes_.transferring.within(span));
    out_.step += step;
    out_.compute += seconds(lanes_.compute.within(span));
    out_.transfer += transfer;
    out_.wait += seconds(lanes_.exposed.within(span)) - transfer;
    const Intervals idle = Intervals({span}).minus(lanes_.any);
    for (const Interval& gap : idle.list()) {
      const double length = seconds(gap.end - gap.begin);
      if (gap.begin == span.begin || gap.end == span.end || behind_optimizer(gap)) {
        out_.boundary += length;
      } else if (length > std::max(shortest_pause_s, pause_share * step)) {
        out_.pauses += length;
        out_.longest_pause = std::max(out_.longest_pause, length);
      } else {
        out_.gaps += length;
      }
    }
  }

  void add_kernel(std::size_t k) {
    const TraceKernel& kernel = rank_.trace.kernels[k];
    const KernelName& name = rank_.trace.name_of(kernel);
    ++kernels_;
    if (begins_on_idle(kernel.begin)) ++out_.behind_a_gap;
    if (!name.communication) {
      CallTally& tally = out_.kernels[name.kind];
      ++tally.calls;
      tally.seconds += seconds(kernel.duration);
      return;
    }
    const double hidden = seconds(lanes_.compute.within({kernel.begin, kernel.end()}));
    out_.communicating += seconds(kernel.duration);
    out_.under_compute += hidden;
    const Time moves = kernel.end() - transfer_[k];
    const double waited = seconds(moves - kernel.begin);
    const double exposed_wait = waited - seconds(lanes_.compute.within({kernel.begin, moves}));
    if (last_[k] != nobody && exposed_wait > 0)
      out_.waited_for[static_cast<std::size_t>(last_[k])] += exposed_wait;
    add_exchange(kernel, seconds(transfer_[k]),
                 seconds(transfer_[k]) - seconds(lanes_.compute.within({moves, kernel.end()})));
  }

  void add_exchange(const TraceKernel& kernel, double transfer, double exposed) {
    const auto kind = collective_of(rank_.trace, kernel);
    if (!kind) return;
    ExchangeKind what{*kind, 0};
    double bytes = 0;
    if (kernel.facts >= 0) {
      const CollectiveFacts& facts = rank_.trace.facts[static_cast<std::size_t>(kernel.facts)];
      const bool message = *kind == workloads::CollectiveKind::send_receive;
      what.ranks = message ? 2 : ranks_in(facts);  // whatever group it is sent in
      bytes = bytes_of(facts).value_or(0);
      CallTally& group = out_.groups[{what, facts.members}];
      ++group.calls;
      group.seconds += transfer;
      group.bytes += bytes;
    }
    ExchangeTally& tally = out_.exchanges[what];
    ++tally.calls;
    tally.seconds += transfer;
    tally.bytes += bytes;
    tally.exposed += exposed;
  }

  /// Where ranks are not at the same place of the step when the profiler's next one begins.
  bool behind_optimizer(const Interval& gap) const {
    return optimizer_ends_.contains(gap.begin) && !optimizer_begins_.contains(gap.end);
  }

  bool begins_on_idle(Time at) const {
    const auto& busy = lanes_.any.list();
    const auto one = std::ranges::lower_bound(busy, at, {}, &Interval::begin);
    return one != busy.end() && one->begin == at;
  }

  /// Sums become means; what overlaps itself is scaled to the parts of the step.
  void finish() {
    const auto n = static_cast<double>(numbers_.size());
    for (double* part : {&out_.step, &out_.compute, &out_.transfer, &out_.wait, &out_.boundary,
                         &out_.pauses, &out_.gaps, &out_.communicating})
      *part /= n;
    out_.behind_a_gap /= std::max(1.0, kernels_);
    out_.under_compute /= std::max(1e-12, n * out_.communicating);
    double exposed = 0, waited = 0;
    for (const auto& [kind, tally] : out_.exchanges) exposed += tally.exposed / n;
    for (const auto& [place, time] : out_.waited_for) waited += time / n;
    const auto mean = [n](CallTally& tally) {
      tally.calls /= n;
      tally.seconds /= n;
      tally.bytes /= n;
    };
    for (auto& [kind, tally] : out_.kernels) mean(tally);
    for (auto& [group, tally] : out_.groups) mean(tally);
    for (auto& [kind, tally] : out_.exchanges) {
      mean(tally);
      tally.exposed *= exposed > 0 ? out_.transfer / exposed / n : 0;
    }
    for (auto& [place, time] : out_.waited_for) time *= waited > 0 ? out_.wait / waited / n : 0;
  }

  const RankSteps& rank_;
  const std::vector<Duration>& transfer_;
  const std::vector<std::int32_t>& last_;
  std::set<std::int64_t> numbers_;
  BusyLanes lanes_;
  std::set<Time> optimizer_begins_, optimizer_ends_;
  double kernels_ = 0;
  RankParts out_;
};

}  // namespace

std::vector<RankParts> parts_of(std::vector<RankTrace> traces, std::optional<std::int64_t> skip) {
  std::vector<RankSteps> ranks;
  for (RankTrace& trace : traces) {
    TraceSteps steps = steps_of(trace);
    ranks.push_back({std::move(trace), std::move(steps)});
  }
  const Meetings meetings = meetings_of(ranks);
  std::vector<RankParts> out;
  for (std::size_t place = 0; place < ranks.size(); ++place)
    out.push_back(RankCutter(ranks, meetings, place, skip).cut());
  return out;
}

}  // namespace stepcast::validate
