#include "engine/fluid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::engine {
namespace {

/// Quanta are 1/64 byte/s and time is in picoseconds: bytes x this / quanta = picoseconds.
constexpr double quanta_ps_per_byte = quanta_per_byte_per_second * 1e12;

Duration drain_time(double bytes, Quanta rate) {
  const double ps = std::ceil(bytes * quanta_ps_per_byte / static_cast<double>(rate));
  if (!(ps < 0x1p61)) throw BeyondClock("a transfer of more than 26 days");
  return Duration(static_cast<std::int64_t>(ps));
}

template <class CapacityOf>
Quanta quanta_alone(BytesPerSecond cap, std::span<const LinkLoad> loads, CapacityOf capacity_of) {
  Quanta rate = to_quanta(cap);
  for (const LinkLoad& load : loads) {
    const FixedWeight weight = to_fixed(load.weight);
    const Wide room = widen(capacity_of(load.link));
    expects(weight > 0 && load.weight < 0x1p20, "a weight is positive");
    if (static_cast<Wide>(weight) * rate > room) rate = share(room, weight);
  }
  if (rate <= 0) throw BeyondClock("a transfer at less than 1/64 byte/s");
  return rate;
}

/// Blocks of entries are recycled by size: 2^block_of(count) have room for so many.
std::size_t block_of(std::uint32_t count) {
  return static_cast<std::size_t>(count < 2 ? 0 : std::bit_width(count - 1));
}

}  // namespace

BytesPerSecond rate_alone(BytesPerSecond cap, std::span<const LinkLoad> loads,
                          std::span<const BytesPerSecond> capacities) {
  return to_rate(quanta_alone(
      cap, loads, [&](std::uint32_t link) { return capacity_to_quanta(capacities[link]); }));
}

Time end_alone(Time start, double bytes, BytesPerSecond cap, std::span<const LinkLoad> loads,
               std::span<const BytesPerSecond> capacities) {
  const Time end = start + drain_time(bytes, to_quanta(rate_alone(cap, loads, capacities)));
  if (end.time_since_epoch().count() > last_instant_ps) throw BeyondClock("more than 53 days");
  return end;
}

Fluid::Fluid(std::span<const BytesPerSecond> capacities)
    : more_users_(capacities.size()), free_entries_(33) {
  links_.reserve(capacities.size());
  for (BytesPerSecond c : capacities) links_.push_back({.capacity = capacity_to_quanta(c)});
}

Fluid::Flow Fluid::start(Time now, double bytes, BytesPerSecond cap,
                         std::span<const LinkLoad> loads, std::uint64_t tag) {
  expects(now >= now_ && (started_.empty() || now == now_), "time does not pass before settle()");
  expects(bytes >= 0 && bytes < 0x1p60, "a flow's bytes");
  now_ = now;
  if (num_active_ == 0) next_sequence_ = 0;
  expects(next_sequence_ != none, "fewer than 2^32 starts without a pause");

  const Flow id = new_flow();
  FlowState& flow = flows_[id];
  flow.loads = loads.data();
  flow.num_loads = static_cast<std::uint32_t>(loads.size());
  flow.first_entry = new_entries(flow.num_loads);
  flow.first_overloaded = none;
  flow.sequence = next_sequence_++;
  flow.tag = tag;
  flow.rate = 0;
  flow.remaining = bytes;
  flow.since = now;
  flow.cap = to_quanta(cap);
  if (!attach(id)) {  // rare: the caller usually knows what its links can give
    flow.cap = quanta_alone(cap, loads, [&](std::uint32_t link) { return links_[link].capacity; });
    ensures(attach(id), "no link is overloaded by one flow");
  }
  levels_[id] = 2 * flows_[id].cap;
  started_.push_back(id);
  ++num_active_;
  ++counters_.starts;
  return id;
}

Fluid::Flow Fluid::new_flow() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    levels_.emplace_back();
    return static_cast<Flow>(flows_.size() - 1);
  }
  const Flow id = free_flows_.back();
  free_flows_.pop_back();
  return id;
}

std::uint32_t Fluid::new_entries(std::uint32_t count) {
  std::vector<std::uint32_t>& free = free_entries_[block_of(count)];
  if (free.empty()) {
    const std::size_t first = entries_.size();
    entries_.resize(first + (std::size_t{1} << block_of(count)));
    return static_cast<std::uint32_t>(first);
  }
  const std::uint32_t first = free.back();
  free.pop_back();
  return first;
}

void Fluid::touch(std::uint32_t link) {
  if (links_[link].touched) return;
  links_[link].touched = true;
  touched_.push_back(link);
}

/// Adds the flow to its links. False, and nothing is changed, if its cap is more than one of them
/// can give it alone.
bool Fluid::attach(Flow id) {
  const FlowState flow = flows_[id];
  expects(flow.cap > 0, "a flow can advance by at least 1/64 byte/s");
  for (std::uint32_t i = 0; i < flow.num_loads; ++i) {
    const LinkLoad& load = flow.loads[i];
    Link& link = links_[load.link];
    const FixedWeight weight = to_fixed(load.weight);
    expects(load.weight > 0 && load.weight < 0x1p20, "a weight is positive");
    const Quanta used = usage(weight, flow.cap);
    if (used > link.capacity) {
      while (i > 0) detach(flow, --i);
      flows_[id].first_overloaded = none;
      return false;
    }
    link.demand += used;
    const User user{id, flow.first_entry + i, weight};
    if (link.num_users == 0 && !link.overloaded) {
      link.num_users = 1;
      link.first = user;
    } else {
      attach_to_shared(link, load.link, user);
    }
  }
  return true;
}

/// Also for a link whose last user left in this instant and that still counts as overloaded.
void Fluid::attach_to_shared(Link& link, std::uint32_t index, User user) {
  if (link.num_users == 0)
    link.first = user;
  else
    more_users_[index].push_back(user);
  entries_[user.entry].position = link.num_users++;
  if (link.overloaded) list_overloaded(user, index);
  if (link.demand <= link.capacity) return;
  link.grown = true;
  touch(index);
}

/// The last user of the link takes the place of the one that leaves.
void Fluid::detach(const FlowState& flow, std::uint32_t index) {
  const LinkLoad& load = flow.loads[index];
  Link& link = links_[load.link];
  link.demand -= usage(to_fixed(load.weight), flow.cap);
  if (--link.num_users > 0 || link.overloaded)
    detach_from_shared(link, load.link, flow.first_entry + index);
}

void Fluid::detach_from_shared(Link& link, std::uint32_t index, std::uint32_t entry) {
  if (link.overloaded) touch(index);
  if (link.num_users == 0) return;
  std::vector<User>& more = more_users_[index];
  if (link.first.entry == entry) {
    link.first = more.back();
  } else {
    const std::uint32_t position = entries_[entry].position;
    more[position - 1] = more.back();
    entries_[more.back().entry].position = position;
  }
  more.pop_back();
}

void Fluid::settle(Time now) {
  expects(now >= now_, "time does not run backwards");
  expects(ends_.empty() || ends_.top().time_ps >= now.time_since_epoch().count(),
          "every end is taken at its instant");
  expects(now == now_ || (started_.empty() && touched_.empty()), "settle at the instant itself");
  now_ = now;
  if (!touched_.empty()) {
    refresh_overloads();
    settle_levels();
    touched_.clear();
  }
  for (Flow flow : started_)
    if (flows_[flow].rate == 0) apply_rate(flow, levels_[flow] / 2);
  started_.clear();
}

void Fluid::apply_rate(Flow id, Quanta rate) {
  FlowState& flow = flows_[id];
  if (rate == flow.rate) return;
  expects(rate > 0, "every flow advances by at least 1/64 byte/s");
  const bool is_new = flow.rate == 0;
  if (!is_new) {
    const double elapsed_ps = static_cast<double>((now_ - flow.since).count());
    const double moved = static_cast<double>(flow.rate) * elapsed_ps / quanta_ps_per_byte;
    // A flow that ends now has moved all its bytes, whatever rounding says.
    flow.remaining = flow.end == now_ ? 0 : std::max(0.0, flow.remaining - moved);
    ++counters_.changed_rates;
  }
  flow.rate = rate;
  flow.since = now_;
  flow.end = now_ + drain_time(flow.remaining, rate);
  if (is_new)
    ends_.push(flow.end, flow.sequence, id);
  else
    ends_.move(id, flow.end);
}

std::optional<Time> Fluid::next_end() const {
  if (ends_.empty()) return std::nullopt;
  return Time(Duration(ends_.top().time_ps));
}

void Fluid::take_ended(Time now, std::vector<std::uint64_t>& tags) {
  expects(now >= now_ && (started_.empty() || now == now_), "time does not pass before settle()");
  now_ = now;
  const std::int64_t now_ps = now.time_since_epoch().count();
  expects(ends_.empty() || ends_.top().time_ps >= now_ps, "every end is taken at its instant");
  while (!ends_.empty() && ends_.top().time_ps == now_ps) {
    const Flow id = ends_.top().id;
    ends_.pop();
    tags.push_back(flows_[id].tag);
    remove(id);
  }
}

void Fluid::remove(Flow id) {
  const FlowState flow = flows_[id];
  for (std::uint32_t i = 0; i < flow.num_loads; ++i) detach(flow, i);
  free_entries_[block_of(flow.num_loads)].push_back(flow.first_entry);
  free_flows_.push_back(id);
  --num_active_;
}

std::vector<Fluid::Active> Fluid::settled() const {
  std::vector<Active> out;
  for (const Event& event : ends_.events()) {
    const FlowState& flow = flows_[event.id];
    out.push_back({flow.tag, flow.remaining, flow.since, flow.end, to_rate(flow.rate)});
  }
  std::ranges::sort(out, {}, &Active::tag);
  return out;
}

void Fluid::shift(Duration by) {
  for (FlowState& flow : flows_) {
    flow.since += by;
    flow.end += by;
  }
  ends_.shift(by);
  now_ += by;
}

}  // namespace stepcast::engine
