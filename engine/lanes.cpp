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

Lanes::Lanes(const System& system, bool single) : system_(system), buckets_(num_buckets) {
  sort_speeds();
  roles_.resize(system.roles.size());
  for (std::uint32_t r = 0; r < roles_.size(); ++r) compile(system, r, single);
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

void Lanes::compile(const System& system, std::uint32_t role_index, bool single) {
  const Program& program = system.roles[role_index];
  RoleLanes& role = roles_[role_index];
  role.lanes.resize(program.num_lanes);
  role.num_events = program.num_events;
  role.event_lane.assign(program.num_events, compute_lane);
  std::vector<Segment> open(program.num_lanes);
  std::vector<LaneInstruction> head(program.num_lanes);  // of the open segments
  Duration host{};                                       // busy since the epoch began
  std::uint16_t epoch = 0;
  const auto close = [&](std::uint8_t lane) {
    if (open[lane].kernels.empty()) return;
    head[lane].arg = intern(std::move(open[lane]));
    role.lanes[lane].push_back(head[lane]);
    open[lane] = {};
  };
  for (const Instruction& i : program.instructions) {
    host += system.host_costs.at(i.host_cost);
    switch (i.op) {
      case Op::work:
        if (single || (!open[i.lane].kernels.empty() && head[i.lane].epoch != epoch)) close(i.lane);
        if (open[i.lane].kernels.empty()) head[i.lane] = {LaneOp::segment, epoch, 0, 0, host};
        open[i.lane].kernels.push_back({i.arg, host - head[i.lane].launch});
        break;
      case Op::join:
        close(i.lane);
        role.lanes[i.lane].push_back({LaneOp::join, epoch, i.arg, i.communicator, host});
        break;
      case Op::record:
        close(i.lane);
        role.event_lane.at(i.arg) = i.lane;
        if (role.mark.empty()) role.events_before_mark.push_back(i.arg);
        role.lanes[i.lane].push_back({LaneOp::record, epoch, i.arg, 0, host});
        break;
      case Op::wait:
        close(i.lane);
        role.lanes[i.lane].push_back({LaneOp::wait, epoch, i.arg, 0, host});
        break;
      case Op::host_wait:
        role.host_waits.push_back({i.arg, host});
        expects(epoch < std::numeric_limits<std::uint16_t>::max(), "fewer than 65536 host waits");
        ++epoch;
        host = Duration{};
        break;
      case Op::host_work:
        break;
      case Op::mark:
        expects(role.mark.empty(), "at most one mark a program");
        for (std::uint8_t l = 0; l < program.num_lanes; ++l) close(l);
        role.lanes[compute_lane].push_back({LaneOp::mark, epoch, 0, 0, host});
        for (const auto& lane : role.lanes)
          role.mark.push_back(static_cast<std::uint32_t>(lane.size()));
        role.mark_epoch = epoch;
        break;
    }
  }
  for (std::uint8_t l = 0; l < program.num_lanes; ++l) close(l);
  role.last_epoch = host;
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
