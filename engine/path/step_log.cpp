#include "engine/path/step_log.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::engine {

StepLog::StepLog(const System& system, bool cold) : system_(system), cold_(cold) {
  expects(!system.jitter.on(), "a step that repeats: without jitter");
  for (std::uint32_t role = 0; role < system.roles.size(); ++role)
    roles_.push_back(step_calls(system, role));
}

void StepLog::start() {
  lanes_.assign(system_.num_ranks(), {});
  for (std::uint32_t r = 0; r < system_.num_ranks(); ++r)
    lanes_[r].resize(calls_of(r).lanes.size());
  epochs_.assign(system_.num_ranks(), {});
  pending_.assign(system_.num_ranks(), {});
  besides_.clear();
}

void StepLog::passed(std::uint32_t rank, std::uint8_t lane, Time clock) {
  std::vector<Time>& times = lanes_[rank][lane];
  if (lane == compute_lane && !pending_[rank].empty()) {
    const LaneCall call{rank, lane, 0};
    const auto number = first(call) + static_cast<std::int64_t>(times.size());
    besides_[{rank, lane, number}] = std::move(pending_[rank]);
    pending_[rank].clear();
  }
  times.push_back(clock);
}

void StepLog::host(std::uint32_t rank, Time when) { epochs_[rank].push_back(when); }

void StepLog::beside(std::uint32_t rank, Time when, std::uint32_t state) {
  pending_[rank].push_back({when, state});
}

std::int64_t StepLog::first(const LaneCall& c) const {
  const StepCalls& calls = calls_of(c.rank);
  return cold_ || !calls.marked ? 0 : calls.entry[c.lane];
}

std::uint32_t StepLog::index(const LaneCall& c) const {
  return calls_of(c.rank).lanes[c.lane][static_cast<std::size_t>(c.number % calls_in_step(c))];
}

bool StepLog::in_run(const LaneCall& c) const { return c.number >= first(c); }

bool StepLog::was_run(const LaneCall& c) const {
  return in_run(c) && c.number - first(c) < std::ssize(times(c));
}

LaneCall StepLog::first_after(std::uint32_t rank, std::uint8_t lane, Time when) const {
  LaneCall out{rank, lane, 0};
  if (calls_in_step(out) == 0) return {rank, lane, -1};
  const std::vector<Time>& all = times(out);
  out.number = first(out) + (std::ranges::upper_bound(all, when) - all.begin());
  return out;
}

Time StepLog::clock(const LaneCall& c) const {
  if (!in_run(c)) return Time{};
  return times(c).at(static_cast<std::size_t>(c.number - first(c)));
}

bool StepLog::epoch_in_run(std::uint32_t rank, std::int64_t epoch) const {
  const StepCalls& calls = calls_of(rank);
  return epoch >= (cold_ || !calls.marked ? 0 : calls.entry_epoch);
}

bool StepLog::is_entry_epoch(std::uint32_t rank, std::int64_t epoch) const {
  const StepCalls& calls = calls_of(rank);
  return calls.marked && !cold_ && epoch == calls.entry_epoch;
}

Time StepLog::epoch_begin(std::uint32_t rank, std::int64_t epoch) const {
  const StepCalls& calls = calls_of(rank);
  const std::int64_t before = cold_ || !calls.marked ? 0 : calls.entry_epoch;
  return epochs_[rank].at(static_cast<std::size_t>(epoch - before));
}

std::int64_t StepLog::epoch_of(const LaneCall& c) const {
  return step_of(c) * calls_of(c.rank).num_epochs() + call(c).epoch;
}

Time StepLog::launch(const LaneCall& c) const {
  return epoch_begin(c.rank, epoch_of(c)) + call(c).launch;
}

LaneCall StepLog::recorder(std::uint32_t rank, std::uint32_t event, std::int64_t step) const {
  const StepCalls& calls = calls_of(rank);
  const StepCall& record = calls.calls[calls.recorder[event]];
  LaneCall out{rank, record.what.lane, 0};
  out.number = step * calls_in_step(out) + record.place;
  return out;
}

LaneCall StepLog::recorder(const LaneCall& c) const {
  return recorder(c.rank, call(c).what.arg, step_of(c));
}

std::span<const Beside> StepLog::beside_of(const LaneCall& c) const {
  const auto found = besides_.find(c);
  if (found == besides_.end()) return {};
  return found->second;
}

std::uint32_t StepLog::communicator_of(const LaneCall& join) const {
  return system_.communicator_of[call(join).what.communicator][join.rank];
}

const Transfer& StepLog::transfer_of(const LaneCall& join) const {
  const std::uint32_t pattern = system_.communicators[communicator_of(join)].pattern;
  return system_.transfers[std::size_t{call(join).what.arg} * system_.num_patterns + pattern];
}

const StepLog::Joins& StepLog::joins_of(std::uint32_t rank, std::uint32_t communicator) const {
  const auto [at, fresh] = joins_.try_emplace({rank, communicator});
  if (!fresh) return at->second;
  for (const StepCall& call : calls_of(rank).calls) {
    if (call.what.op != Op::join) continue;
    if (system_.communicator_of[call.what.communicator][rank] != communicator) continue;
    at->second.lane = call.what.lane;
    at->second.places.push_back(call.place);
  }
  return at->second;
}

std::int64_t StepLog::turn_of(const LaneCall& join) const {
  const std::vector<std::uint32_t>& places = joins_of(join.rank, communicator_of(join)).places;
  const auto at = std::ranges::lower_bound(places, call(join).place) - places.begin();
  return step_of(join) * std::ssize(places) + at;
}

LaneCall StepLog::join_of(std::uint32_t rank, std::uint32_t communicator, std::int64_t turn) const {
  const Joins& joins = joins_of(rank, communicator);
  expects(!joins.places.empty(), "a member that joins");
  LaneCall out{rank, joins.lane, 0};
  const std::int64_t in_step = std::ssize(joins.places);
  out.number =
      turn / in_step * calls_in_step(out) + joins.places[static_cast<std::size_t>(turn % in_step)];
  return out;
}

Time StepLog::started(std::uint32_t communicator, std::int64_t turn) const {
  Time last = Time::min();
  for (const std::uint32_t rank : system_.communicators[communicator].members)
    last = std::max(last, ready(join_of(rank, communicator, turn)));
  return last;
}

std::int64_t StepLog::first_turn(std::uint32_t communicator) const {
  const std::uint32_t rank = system_.communicators[communicator].members.front();
  const Joins& joins = joins_of(rank, communicator);
  const std::int64_t before = first({rank, joins.lane, 0});
  return std::ranges::lower_bound(joins.places, static_cast<std::uint32_t>(before)) -
         joins.places.begin();
}

std::int64_t StepLog::turns_in_run(std::uint32_t communicator) const {
  const std::uint32_t rank = system_.communicators[communicator].members.front();
  return (last_step_ + 1) * std::ssize(joins_of(rank, communicator).places);
}

StepLog::Boundary StepLog::boundary(std::int64_t step) const {
  Boundary out;
  const bool enters = calls_of(0).marked && !cold_;
  if (step < (enters ? 1 : 0)) return out;
  out.when = Time::min();
  for (std::uint32_t r = 0; r < system_.num_ranks(); ++r) {
    LaneCall end{r, compute_lane, 0};
    const bool mark = calls_of(r).marked && !cold_;
    end.number =
        step * calls_in_step(end) + (mark ? calls_of(r).last_place() : calls_in_step(end) - 1);
    const Time when = clock(end);
    if (when > out.when) out.last.clear();
    out.when = std::max(out.when, when);
    if (when == out.when) out.last.push_back(end);
  }
  return out;
}

}  // namespace stepcast::engine
