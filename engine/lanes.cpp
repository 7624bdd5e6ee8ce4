#include "engine/lanes.hpp"

#include <algorithm>
#include <limits>

namespace stepcast::engine {
namespace {

constexpr std::size_t num_buckets = 4096;
constexpr std::uint32_t no_segment = ~std::uint32_t{0};
constexpr std::size_t suffixes_of_block = 4096;

// Maps are kept per speed; with more speeds they would need more memory than they save time.
constexpr std::size_t most_speeds = 8;

std::size_t hash_of(std::span<const SegmentKernel> kernels) {
  std::uint64_t h = 1469598103934665603U;  // FNV-1a, the two words of a kernel at once
  for (const SegmentKernel& k : kernels)
    h = (h ^ (k.work + (static_cast<std::uint64_t>(k.launch.count()) << 20))) * 1099511628211U;
  return (h ^ (h >> 29)) % num_buckets;
}

}  // namespace

/// Sorts one role's calls by lane.
class RoleCompiler {
 public:
  RoleCompiler(Lanes& lanes, const System& system, std::uint32_t role, bool single)
      : lanes_(lanes),
        system_(system),
        program_(system.roles[role]),
        role_(lanes.roles_[role]),
        single_(single),
        open_(program_.num_lanes) {}

  void compile() {
    role_.lanes.resize(program_.num_lanes);
    role_.ends.resize(program_.num_lanes);
    role_.num_events = program_.num_events;
    role_.event_lane.assign(program_.num_events, compute_lane);
    recorded_.resize(program_.num_events);
    auto at = program_.instructions.begin();
    for (const Repeat& repeat : program_.repeats) {
      const auto first = program_.instructions.begin() + repeat.first;
      const auto end = program_.instructions.begin() + repeat.end;
      at = add_all(at, first);
      end_stretch({});
      begin_repeat(repeat);
      at = add_all(at, end);
      end_repeat();
    }
    add_all(at, program_.instructions.end());
    end_stretch({});
    role_.last_epoch = host_;
    role_.num_epochs = epoch_ + 1U;
  }

 private:
  void close(std::uint8_t lane) {
    Open& open = open_[lane];
    if (open.kernels.empty()) return;
    open.head.arg = lanes_.intern(open.kernels);
    role_.lanes[lane].push_back(open.head);
    open.kernels.clear();
  }

  void push(const Instruction& i, LaneOp op) {
    close(i.lane);
    role_.lanes[i.lane].push_back({op, epoch_, i.arg, i.communicator, host_});
  }

  using Calls = std::vector<Instruction>::const_iterator;

  /// Returns `end`.
  Calls add_all(Calls at, Calls end) {
    while (at != end)
      if (at->op == Op::work)
        at = add_works(at, end);
      else
        add(*at++);
    return end;
  }

  /// Kernels of one lane in a row. Returns the call behind them.
  Calls add_works(Calls at, Calls end) {
    const std::uint8_t lane = at->lane;
    Open& open = open_[lane];
    if (!open.kernels.empty() && open.head.epoch != epoch_) close(lane);
    Duration launch = open.kernels.empty() ? Duration{} : host_ - open.head.launch;
    for (; at != end && at->op == Op::work && at->lane == lane; ++at) {
      const Duration cost = system_.host_costs.at(at->host_cost);
      host_ += cost;
      launch += cost;
      if (single_) close(lane);
      if (open.kernels.empty()) {
        open.head = {LaneOp::segment, epoch_, 0, 0, host_};
        launch = Duration{};
      }
      open.kernels.push_back({at->arg, launch});
    }
    return at;
  }

  void add(const Instruction& i) {
    host_ += system_.host_costs.at(i.host_cost);
    switch (i.op) {
      case Op::work:
        break;  // add_works()
      case Op::join:
        push(i, LaneOp::join);
        break;
      case Op::record:
        role_.event_lane.at(i.arg) = i.lane;
        recorded_[i.arg] = role_.mark.empty();
        push(i, LaneOp::record);
        break;
      case Op::wait:
        push(i, LaneOp::wait);
        await(i.arg);
        break;
      case Op::host_wait:
        role_.host_waits.push_back({i.arg, host_});
        await(i.arg);
        expects(epoch_ < std::numeric_limits<std::uint16_t>::max(), "fewer than 65536 host waits");
        ++epoch_;
        host_ = Duration{};
        break;
      case Op::host_work:
        break;
      case Op::mark:
        mark();
        break;
    }
  }

  void mark() {
    expects(role_.mark.empty() && now_.turns == 1, "at most one mark a program, met once");
    for (std::uint8_t l = 0; l < program_.num_lanes; ++l) close(l);
    role_.lanes[compute_lane].push_back({LaneOp::mark, epoch_, 0, 0, host_});
    for (const auto& lane : role_.lanes)
      role_.mark.push_back(static_cast<std::uint32_t>(lane.size()));
    role_.mark_stretch = static_cast<std::uint32_t>(role_.stretches.size());
    role_.mark_epoch = epoch_;
    role_.mark_wait = static_cast<std::uint32_t>(role_.host_waits.size());
  }

  /// Notes how far back in a repeat the event lies, and whether from behind the mark.
  void await(std::uint32_t event) {
    if (!role_.mark.empty() && recorded_.at(event)) role_.events_before_mark.push_back(event);
    if (now_.events > 0 && event < now_.first_event)
      now_.reach = std::max(now_.reach, (now_.first_event - event + now_.events - 1) / now_.events);
    for (Stretch& s : role_.stretches)
      if (s.events > 0 && event >= s.first_event && event < s.first_event + s.turns * s.events)
        s.reach = std::max(s.reach, s.turns - (event - s.first_event) / s.events);
  }

  void begin_repeat(const Repeat& repeat) {
    expects(repeat.first < repeat.end && repeat.count > 0, "something that repeats");
    now_ = {.turns = repeat.count, .events = repeat.events, .first_epoch = epoch_};
    for (std::uint32_t i = repeat.first; i < repeat.end; ++i)
      if (program_.instructions[i].op == Op::record) {
        now_.first_event = program_.instructions[i].arg;
        break;
      }
    before_ = host_;
  }

  void end_repeat() {
    now_.epochs = epoch_ - now_.first_epoch;
    // Launches count from the epoch's begin: a turn must find the host where the one before did.
    expects(now_.epochs == 0 || host_ == before_, "turns that begin alike");
    if (now_.epochs == 0) now_.host = host_ - before_;
    const std::uint32_t again = now_.turns - 1;
    host_ += again * now_.host;
    const std::uint32_t epoch = epoch_ + again * now_.epochs;
    expects(epoch <= std::numeric_limits<std::uint16_t>::max(), "fewer than 65536 host waits");
    epoch_ = static_cast<std::uint16_t>(epoch);
    repeat_events(role_.event_lane);
    repeat_events(recorded_);
    end_stretch(now_);
    now_ = {};
  }

  /// Of all turns of the repeat what was noted of the first one's events.
  void repeat_events(std::vector<std::uint8_t>& of_event) const {
    const auto first = of_event.begin() + now_.first_event;
    expects(of_event.size() - now_.first_event >= std::size_t{now_.turns} * now_.events,
            "events of every turn");
    for (std::uint32_t t = 1; t < now_.turns; ++t)
      std::copy_n(first, now_.events, first + static_cast<std::ptrdiff_t>(t) * now_.events);
  }

  void end_stretch(const Stretch& stretch) {
    for (std::uint8_t l = 0; l < program_.num_lanes; ++l) {
      close(l);
      role_.ends[l].push_back(static_cast<std::uint32_t>(role_.lanes[l].size()));
    }
    role_.host_ends.push_back(static_cast<std::uint32_t>(role_.host_waits.size()));
    role_.stretches.push_back(stretch);
  }

  Lanes& lanes_;
  const System& system_;
  const Program& program_;
  RoleLanes& role_;
  const bool single_;
  struct Open {
    std::vector<SegmentKernel> kernels;
    LaneInstruction head;
  };
  std::vector<Open> open_;              // segments, by lane
  std::vector<std::uint8_t> recorded_;  // by event: before the mark
  Stretch now_;
  Duration host_{}, before_{};  // busy since the epoch began; so at the repeat's first instruction
  std::uint16_t epoch_ = 0;
};

std::span<Suffix> SuffixRows::make(std::size_t size) {
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < size)
    blocks_.emplace_back().reserve(std::max(size, suffixes_of_block));
  std::vector<Suffix>& block = blocks_.back();  // never grows beyond its capacity
  block.resize(block.size() + size);
  return std::span(block).last(size);
}

Lanes::Lanes(const System& system, bool single)
    : system_(system), buckets_(num_buckets, no_segment) {
  sort_speeds();
  roles_.resize(system.roles.size());
  for (std::uint32_t r = 0; r < roles_.size(); ++r)
    RoleCompiler(*this, system, r, single).compile();
  maps_.resize(speeds_.size() * segments_.size() * num_states);
}

void Lanes::sort_speeds() {
  speed_of_rank_.assign(system_.num_ranks(), 0);
  speeds_ = {1.0};
  for (std::size_t r = 0; r < system_.slowness.size(); ++r) {
    const auto at = std::ranges::find(speeds_, system_.slowness[r]);
    speed_of_rank_[r] = static_cast<std::uint32_t>(at - speeds_.begin());
    if (at == speeds_.end()) speeds_.push_back(system_.slowness[r]);
    if (speeds_.size() <= most_speeds) continue;
    maps_know_speeds_ = false;
    speed_of_rank_.assign(system_.num_ranks(), 0);
    speeds_ = {1.0};
    return;
  }
}

std::uint32_t Lanes::intern(std::span<const SegmentKernel> kernels) {
  std::uint32_t& first = buckets_[hash_of(kernels)];
  for (std::uint32_t s = first; s != no_segment; s = segments_[s].next)
    if (std::ranges::equal(this->kernels(s), kernels)) return s;
  const auto s = static_cast<std::uint32_t>(segments_.size());
  segments_.push_back({static_cast<std::uint32_t>(kernels_.size()),
                       static_cast<std::uint32_t>(kernels.size()), first});
  kernels_.insert(kernels_.end(), kernels.begin(), kernels.end());
  return first = s;
}

const Suffix* Lanes::compute_map(std::uint32_t s, std::uint32_t state, std::uint32_t speed) {
  const std::span<const SegmentKernel> kernels = this->kernels(s);
  const std::span<Suffix> map = rows_.make(kernels.size() + 1);
  Suffix rest = map.back() = {Duration{}, Duration{}, Duration::min() / 4};
  for (std::size_t i = kernels.size(); i-- > 0;) {
    const Work& work = system_.works[kernels[i].work];
    const double factor =
        system_.stretch[std::size_t{work.profile} * num_states + state] * speeds_[speed];
    const Duration d = factor == 1.0 ? work.duration : to_duration(seconds(work.duration) * factor);
    const Duration busy = rest.busy + d;
    rest = map[i] = {d, busy, std::max(kernels[i].launch + busy, rest.launched)};
  }
  return maps_[(speed * segments_.size() + s) * num_states + state] = map.data();
}

}  // namespace stepcast::engine
