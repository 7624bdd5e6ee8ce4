#include "engine/lanes.hpp"

#include <algorithm>
#include <limits>

namespace stepcast::engine {
namespace {

constexpr std::size_t num_buckets = 4096;

// Maps are kept per speed; with more speeds they would need more memory than they save time.
constexpr std::size_t most_speeds = 8;

std::size_t hash_of(const Segment& segment) {
  std::uint64_t h = 1469598103934665603U;  // FNV-1a
  const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 1099511628211U; };
  for (const SegmentKernel& k : segment.kernels) {
    mix(k.work);
    mix(static_cast<std::uint64_t>(k.launch.count()));
  }
  return (h ^ (h >> 29)) % num_buckets;
}

bool equal(const Segment& a, const Segment& b) {
  return std::ranges::equal(a.kernels, b.kernels, [](const auto& x, const auto& y) {
    return x.work == y.work && x.launch == y.launch;
  });
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
        open_(program_.num_lanes),
        head_(program_.num_lanes) {}

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
      for (; at != first; ++at) add(*at);
      end_stretch({});
      begin_repeat(repeat);
      for (; at != end; ++at) add(*at);
      end_repeat();
    }
    for (; at != program_.instructions.end(); ++at) add(*at);
    end_stretch({});
    role_.last_epoch = host_;
    role_.num_epochs = epoch_ + 1U;
  }

 private:
  void close(std::uint8_t lane) {
    if (open_[lane].kernels.empty()) return;
    head_[lane].arg = lanes_.intern(std::move(open_[lane]));
    role_.lanes[lane].push_back(head_[lane]);
    open_[lane] = {};
  }

  void push(const Instruction& i, LaneOp op) {
    close(i.lane);
    role_.lanes[i.lane].push_back({op, epoch_, i.arg, i.communicator, host_});
  }

  void add(const Instruction& i) {
    host_ += system_.host_costs.at(i.host_cost);
    switch (i.op) {
      case Op::work:
        if (single_ || (!open_[i.lane].kernels.empty() && head_[i.lane].epoch != epoch_))
          close(i.lane);
        if (open_[i.lane].kernels.empty()) head_[i.lane] = {LaneOp::segment, epoch_, 0, 0, host_};
        open_[i.lane].kernels.push_back({i.arg, host_ - head_[i.lane].launch});
        break;
      case Op::join:
        push(i, LaneOp::join);
        break;
      case Op::record:
        for (std::uint32_t t = 0, e = i.arg; t < now_.turns; ++t, e += now_.events) {
          role_.event_lane.at(e) = i.lane;
          recorded_[e] = role_.mark.empty();
        }
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
    end_stretch(now_);
    now_ = {};
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
  std::vector<Segment> open_;
  std::vector<LaneInstruction> head_;  // of the open segments
  std::vector<bool> recorded_;         // by event: before the mark
  Stretch now_;
  Duration host_{}, before_{};  // busy since the epoch began; so at the repeat's first instruction
  std::uint16_t epoch_ = 0;
};

Lanes::Lanes(const System& system, bool single) : system_(system), buckets_(num_buckets) {
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

std::uint32_t Lanes::intern(Segment segment) {
  std::vector<std::uint32_t>& bucket = buckets_[hash_of(segment)];
  for (const std::uint32_t s : bucket)
    if (equal(segments_[s], segment)) return s;
  segments_.push_back(std::move(segment));
  bucket.push_back(static_cast<std::uint32_t>(segments_.size() - 1));
  return bucket.back();
}

const SegmentMap& Lanes::compute_map(std::uint32_t s, std::uint32_t state, std::uint32_t speed) {
  const std::vector<SegmentKernel>& kernels = segments_[s].kernels;
  auto map = std::make_unique<SegmentMap>();
  map->duration.resize(kernels.size());
  map->busy.assign(kernels.size() + 1, Duration{});
  map->launched.assign(kernels.size() + 1, Duration::min() / 4);
  for (std::size_t i = kernels.size(); i-- > 0;) {
    const Work& work = system_.works[kernels[i].work];
    const double factor =
        system_.stretch[std::size_t{work.profile} * num_states + state] * speeds_[speed];
    const Duration d = factor == 1.0 ? work.duration : to_duration(seconds(work.duration) * factor);
    map->duration[i] = d;
    map->busy[i] = map->busy[i + 1] + d;
    map->launched[i] = std::max(kernels[i].launch + map->busy[i], map->launched[i + 1]);
  }
  auto& slot = maps_[(speed * segments_.size() + s) * num_states + state];
  slot = std::move(map);
  return *slot;
}

}  // namespace stepcast::engine
