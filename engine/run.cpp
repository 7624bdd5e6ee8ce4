#include "engine/run.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <string>

#include "engine/runner.hpp"

namespace stepcast::engine {
namespace {

/// A transfer whose rate changed on the way may end that much earlier than bytes / cap says.
constexpr Duration rounding_of_ends = 1_ns;

}  // namespace

Runner::Runner(const System& system, const RunOptions& options, std::uint32_t steps,
               TimelineSink* timeline)
    : system_(system),
      options_(options),
      last_step_(steps - 1),
      timeline_(timeline),
      compiled_(system, !options.segments),
      fluid_(system.link_capacity),
      meetings_(system, options.closed_forms),
      jitter_(system.jitter) {
  prepare_ranks();
  prepare_own_segments();
  prepare_turns();
}

void Runner::prepare_ranks() {
  const std::uint32_t n = system_.num_ranks();
  for (std::uint32_t role = 0; role < system_.roles.size(); ++role)
    num_lanes_ = std::max(num_lanes_, compiled_.role(role).lanes.size());
  expects(num_lanes_ <= max_lanes, "lanes that the engine has room for");
  ranks_.resize(n);
  lanes_.resize(n * num_lanes_);
  memberships_.resize(n * num_lanes_);
  std::vector<std::uint32_t> events;
  events.reserve(n);
  std::size_t epochs = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    const RoleLanes& role = compiled_.role(system_.role_of_rank[r]);
    ranks_[r].role = &role;
    ranks_[r].speed = compiled_.speed_of(r);
    events.push_back(role.num_events);
    epochs += std::size_t{2} * role.num_epochs;
    ranks_[r].todo = static_cast<LaneSet>((1U << role.lanes.size()) - 1);
    for (std::uint8_t l = 0; l < role.lanes.size(); ++l) enter(r, l, 0);
  }
  events_ = EventTable(events);
  epoch_starts_.resize(epochs);
  Time* starts = epoch_starts_.data();
  for (RankState& rank : ranks_) {
    rank.epoch_starts = starts;
    starts += std::size_t{2} * rank.role->num_epochs;
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    if (!options_.cold && !role_of(r).mark.empty()) enter_after_mark(r);
    note_host_event(r);
  }
}

/// Right after the mark, with all that the host had to launch already launched: checked afterwards,
/// by comparing the state at the end of this step with that of the next.
void Runner::enter_after_mark(std::uint32_t rank) {
  const RoleLanes& role = role_of(rank);
  RankState& state = ranks_[rank];
  for (std::uint8_t l = 0; l < role.lanes.size(); ++l) {
    enter(rank, l, role.mark_stretch);
    lane_of(rank, l).pc = role.mark[l];
  }
  state.host_epoch = role.mark_epoch;
  state.host_place = {role.mark_wait, role.mark_stretch, 0};
  const HostWait* next = next_host_wait(rank);
  const Duration length = next == nullptr ? role.last_epoch : next->after;
  state.epoch_starts[role.mark_epoch] = Time{} - length;
  for (const std::uint32_t e : role.events_before_mark) events_.set(rank, e, 0, Time{});
}

RunResult Runner::run() {
  expects(timeline_ == nullptr || !options_.segments, "a timeline is told kernel by kernel");
  if (timeline_ != nullptr) begin_timeline();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) list(r);
  loop();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (std::uint8_t l = 0; l < role_of(r).lanes.size(); ++l)
      if (lane_of(r, l).block != Block::stop) throw_stalled();
  return result();
}

void Runner::begin_timeline() {
  timeline_->start();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    timeline_->host(r, ranks_[r].epoch_starts[ranks_[r].host_epoch]);
}

void Runner::loop() {
  while (true) {
    drain();
    if (may_skip_) skip_turns();
    const std::optional<Time> flow_end = fluid_.next_end();
    if (queue_.empty() && !flow_end) return;
    Time next = flow_end.value_or(never);
    if (!queue_.empty()) next = std::min(next, queue_.next());
    ensures(next >= now_, "no event in the past");
    now_ = next;
    // Everything of this instant is one batch, then one solve.
    while (true) {
      bool more = false;
      ended_.clear();
      fluid_.take_ended(now_, ended_);
      for (const std::uint64_t c : ended_) {
        more = true;
        complete(static_cast<std::uint32_t>(c),
                 meetings_.group(static_cast<std::uint32_t>(c)).started, now_);
      }
      due_.clear();
      if (!queue_.empty() && queue_.next() == now_) queue_.take(due_);
      for (const TimeQueue::Entry& entry : due_) process(entry);
      more = more || !due_.empty();
      drain();
      if (!queue_.empty() && queue_.next() == now_) continue;
      for (std::size_t i = 0; i < dirty_.size(); ++i) refresh(dirty_[i], now_);
      if (!dirty_.empty()) more = true;
      dirty_.clear();
      if (!more) break;
      drain();
    }
    fluid_.settle(now_);
  }
}

void Runner::drain() {
  while (work_head_ < worklist_.size()) {
    std::uint32_t rank = 0;
    if (options_.last_in_first_out) {
      rank = worklist_.back();
      worklist_.pop_back();
    } else {
      rank = worklist_[work_head_++];
    }
    run_rank(rank);
  }
  worklist_.clear();
  work_head_ = 0;
}

void Runner::list(std::uint32_t rank) {
  if (ranks_[rank].listed) return;
  ranks_[rank].listed = true;
  worklist_.push_back(rank);
}

void Runner::mark_dirty(std::uint32_t rank) {
  if (!ranks_[rank].flight.active || ranks_[rank].dirty) return;
  ranks_[rank].dirty = true;
  dirty_.push_back(rank);
}

void Runner::process(const TimeQueue::Entry& entry) {
  if (entry.id & transfer_bit) {
    start(entry.id & ~transfer_bit, now_);
    return;
  }
  if (entry.id & turn_bit) {
    const std::uint32_t rank = entry.id & ~turn_bit;
    lane_of(rank, compute_lane).block = Block::none;
    ranks_[rank].todo |= 1U;
    list(rank);
    return;
  }
  const Flight& flight = ranks_[entry.id].flight;
  if (flight.active && flight.version == entry.version) mark_dirty(entry.id);
}

/// Joins a transfer; false when it takes others to end it.
bool Runner::join(std::uint32_t rank, std::uint8_t lane_index, const LaneInstruction& i) {
  LaneState& lane = lane_of(rank, lane_index);
  RankState& state = ranks_[rank];
  const Time when = launched_at_least(state, lane.clock, launch_time(state, lane, i));
  const std::uint32_t c = system_.communicator_of[i.communicator][rank];
  expects(c != no_communicator, "the rank has a communicator in this slot");
  if (meetings_.is_beside(c)) {
    pass_beside(c, {rank, lane_index}, i.arg, when);
    return true;
  }
  lane.block = Block::transfer;
  arrive(c, {rank, lane_index}, i.arg, when);
  return false;
}

void Runner::arrive(std::uint32_t c, Member member, std::uint32_t transfer, Time when) {
  GroupState& group = meetings_.group(c);
  if (group.arrived == 0) {
    group.transfer = transfer;
    group.latest = when;
  }
  expects(group.transfer == transfer, "members of a communicator join the same transfer");
  group.latest = std::max(group.latest, when);
  ++group.arrived;
  ++counters_.joins;
  const auto [rank, lane] = member;
  membership_of(rank, lane) = {when, never, c, meetings_.transfer_of(c).interference_class};
  if (lane != compute_lane) {
    ranks_[rank].outstanding |= static_cast<LaneSet>(1U << lane);
    mark_dirty(rank);
  }
  if (meetings_.complete(c)) resolve(c);
}

/// A transfer that the lane has to itself, as a folded group inside a node has: over when its time
/// is, whoever else does what.
void Runner::pass_beside(std::uint32_t c, Member member, std::uint32_t index, Time when) {
  const auto [rank, lane_index] = member;
  const Transfer& transfer = meetings_.transfer(c, index);
  const auto traffic = static_cast<std::uint8_t>(transfer.traffic);
  LaneState& lane = lane_of(rank, lane_index);
  lane.clock = end_alone(when, transfer.bytes, meetings_.cap_of(c, transfer), {}, {});
  ++counters_.joins;
  ++counters_.transfers;
  RankState& state = ranks_[rank];
  state.account.communication[traffic] += lane.clock - when;
  state.side.push_back({when, lane.clock, transfer.interference_class});
  remember(rank, {when, when, lane.clock, traffic, lane_index});
  mark_dirty(rank);
  if (timeline_ != nullptr && lane.step == last_step_)
    timeline_->transfer(rank, lane_index, index, when, when, lane.clock);
}

void Runner::resolve(std::uint32_t c) {
  GroupState& group = meetings_.group(c);
  ++counters_.transfers;
  const bool alone = meetings_.undisturbed(c) ||
                     (meetings_.runs_ahead(c) &&
                      std::ranges::all_of(meetings_.members_of(c), [&](const Member& m) {
                        return ranks_[m.rank].outstanding == 0;
                      }));
  const Transfer& transfer = meetings_.transfer_of(c);
  const Time end = end_alone(group.latest, transfer.bytes, meetings_.cap_of(c, transfer), {}, {});
  if (alone) {
    complete(c, group.latest, end);
    return;
  }
  group.ends_after = end - rounding_of_ends;
  for (const auto [rank, lane] : meetings_.members_of(c))
    membership_of(rank, lane).started = group.latest;
  queue_.push(group.latest, c | transfer_bit, 0);
}

void Runner::start(std::uint32_t c, Time now) {
  GroupState& group = meetings_.group(c);
  const Transfer& transfer = meetings_.transfer_of(c);
  group.started = now;
  ++counters_.flows;
  fluid_.start(now, transfer.bytes, meetings_.cap_of(c, transfer), system_.communicators[c].loads,
               c);
  for (const auto [rank, lane] : meetings_.members_of(c))
    if (lane != compute_lane) mark_dirty(rank);
}

void Runner::complete(std::uint32_t c, Time started, Time ended) {
  const Transfer& transfer = meetings_.transfer_of(c);
  const auto traffic = static_cast<std::size_t>(transfer.traffic);
  meetings_.group(c).arrived = 0;
  for (const auto [rank, lane_index] : meetings_.members_of(c)) {
    RankState& state = ranks_[rank];
    LaneState& lane = lane_of(rank, lane_index);
    const Membership& membership = membership_of(rank, lane_index);
    state.account.communication[traffic] += ended - membership.arrived;
    if (timeline_ != nullptr && lane.step == last_step_)
      timeline_->transfer(rank, lane_index, meetings_.group(c).transfer, membership.arrived,
                          started, ended);
    if (lane_index == compute_lane) {
      state.account.host += membership.arrived - lane.clock;
      (transfer.traffic == Traffic::pipeline ? state.account.bubble : state.account.wait) +=
          started - membership.arrived;
      state.account.exposed[traffic] += ended - started;
    } else {
      state.outstanding &= static_cast<LaneSet>(~(1U << lane_index));
      remember(rank, {membership.arrived, started, ended, static_cast<std::uint8_t>(traffic),
                      lane_index});
      mark_dirty(rank);
    }
    lane.clock = ended;
    lane.block = Block::none;
    pass(rank, lane_index);
    state.todo |= static_cast<LaneSet>(1U << lane_index);
    list(rank);
  }
}

void Runner::throw_stalled() const {
  std::string text = "nothing can run:";
  int named = 0;
  for (std::uint32_t r = 0; r < ranks_.size() && named < 8; ++r)
    for (std::uint8_t l = 0; l < role_of(r).lanes.size(); ++l) {
      const LaneState& lane = lane_of(r, l);
      if (lane.block == Block::stop) continue;
      text += "\n  rank " + std::to_string(r) + " lane " + std::to_string(l) + " instruction " +
              std::to_string(lane.pc) + " of step " + std::to_string(lane.step) + " waits for ";
      if (lane.block == Block::event) {
        text += "event " + std::to_string(lane.event);
      } else if (lane.block == Block::host) {
        text += "its host thread";
      } else {
        const LaneInstruction& i = role_of(r).lanes[l][lane.pc];
        const std::uint32_t c = system_.communicator_of[i.communicator][r];
        text += "transfer " + std::to_string(i.arg) + " of communicator " + std::to_string(c) +
                " (" + std::to_string(meetings_.group(c).arrived) + " of " +
                std::to_string(system_.communicators[c].members.size()) + " members have come)";
      }
      if (++named == 8) break;
    }
  throw Stalled(text);
}

RunResult run(const System& system, const RunOptions& asked, TimelineSink* timeline) {
  RunOptions options = asked;
  options.segments = asked.segments && timeline == nullptr;
  bool marked = !system.roles.empty();
  for (const Program& program : system.roles)
    marked = marked && std::ranges::any_of(program.instructions | std::views::reverse,
                                           [](const Instruction& i) { return i.op == Op::mark; });
  if (options.cold) return Runner(system, options, 1, timeline).run();
  if (options.measured > 0)  // a mark is first met in the second step
    return Runner(system, options, static_cast<std::uint32_t>(options.measured) + (marked ? 2 : 1),
                  timeline)
        .run();
  // With a mark, two entries to it (the second after one whole step) show one period; the state at
  // the end of both decides whether it is the steady one. Without, three ends show two periods.
  const RunResult first = Runner(system, options, marked ? 2 : 3, timeline).run();
  if (first.steady) return first;
  return Runner(system, options, static_cast<std::uint32_t>(std::max(options.max_steps, 3)),
                timeline)
      .run();
}

}  // namespace stepcast::engine
