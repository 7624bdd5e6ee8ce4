#include "engine/shared_rates.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/check.hpp"
#include "engine/max_min.hpp"

namespace stepcast::engine {
namespace {

// Rates are whole numbers of 1/64 byte/s: two that differ by less than this share are one.
constexpr double same_rate = 1e-9;
// A link with less than this share of its capacity left is full.
constexpr double full = 1e-7;

bool alike(const RatePiece& a, const RatePiece& b) {
  return std::ranges::equal(a.flows, b.flows, [](const Flowing& x, const Flowing& y) {
    return x.communicator == y.communicator && x.turn == y.turn && x.rate == y.rate;
  });
}

}  // namespace

SharedRates::SharedRates(const StepLog& log) : log_(log) {
  const std::vector<Communicator>& all = log.system().communicators;
  std::vector<std::uint32_t> root(all.size());
  std::iota(root.begin(), root.end(), std::uint32_t{0});
  const auto find = [&](std::uint32_t c) {
    while (root[c] != c) c = root[c] = root[root[c]];
    return c;
  };
  std::vector<std::uint32_t> first(log.system().link_capacity.size(), no_communicator);
  for (std::uint32_t c = 0; c < all.size(); ++c)
    for (const LinkLoad& load : all[c].loads) {
      if (first[load.link] == no_communicator) first[load.link] = c;
      root[find(c)] = find(first[load.link]);
    }
  component_.resize(all.size());
  members_.resize(all.size());
  for (std::uint32_t c = 0; c < all.size(); ++c) members_[component_[c] = find(c)].push_back(c);
}

std::int64_t SharedRates::first_turn(std::uint32_t c) const { return log_.first_turn(c); }

const std::vector<SharedRates::Span>& SharedRates::spans(std::uint32_t c) const {
  const auto [at, fresh] = spans_.try_emplace(c);
  if (!fresh) return at->second;
  for (std::int64_t turn = first_turn(c); turn < log_.turns_in_run(c); ++turn) {
    const LaneCall join = log_.join_of(log_.system().communicators[c].members.front(), c, turn);
    at->second.push_back({log_.started(c, turn), log_.clock(join)});
  }
  return at->second;
}

SharedRates::Span SharedRates::span(std::uint32_t c, std::int64_t turn) const {
  return spans(c).at(static_cast<std::size_t>(turn - first_turn(c)));
}

Flowing SharedRates::flowing(std::uint32_t c, std::int64_t turn) const {
  const LaneCall join = log_.join_of(log_.system().communicators[c].members.front(), c, turn);
  return {c, turn, {}, log_.transfer_of(join).cap};
}

double SharedRates::weight_on(std::uint32_t c, std::uint32_t link) const {
  for (const LinkLoad& load : log_.system().communicators[c].loads)
    if (load.link == link) return load.weight;
  return 0.0;
}

/// The flow of a communicator, if it has one throughout the piece.
void SharedRates::add_flows(RatePiece& piece, std::uint32_t c) const {
  const std::vector<Span>& all = spans(c);
  const auto after = std::ranges::upper_bound(all, piece.from, {}, &Span::from);
  if (after == all.begin() || std::prev(after)->to <= piece.from) return;
  piece.flows.push_back(flowing(c, first_turn(c) + (std::prev(after) - all.begin())));
}

void SharedRates::share(const System& system, RatePiece& piece) {
  std::vector<Variable> variables;
  for (const Flowing& flow : piece.flows)
    variables.push_back({flow.cap, system.communicators[flow.communicator].loads});
  const std::vector<BytesPerSecond> rates = max_min(system.link_capacity, variables);
  for (std::size_t f = 0; f < rates.size(); ++f) piece.flows[f].rate = rates[f];
}

std::vector<RatePiece> SharedRates::pieces(std::uint32_t c, std::int64_t turn) const {
  const Span own = span(c, turn);
  std::set<Time> instants{own.from, own.to};
  for (const std::uint32_t other : members_[component_[c]]) {
    if (other == c) continue;
    const std::vector<Span>& all = spans(other);
    auto at = std::ranges::lower_bound(all, own.from, {}, &Span::to);
    for (; at != all.end() && at->from < own.to; ++at)
      for (const Time t : {at->from, at->to})
        if (own.from < t && t < own.to) instants.insert(t);
  }
  std::vector<RatePiece> out;
  for (auto at = instants.begin(); std::next(at) != instants.end(); ++at) {
    RatePiece piece{*at, *std::next(at), {flowing(c, turn)}};
    for (const std::uint32_t other : members_[component_[c]])
      if (other != c) add_flows(piece, other);
    share(log_.system(), piece);
    if (!out.empty() && alike(out.back(), piece))
      out.back().to = piece.to;
    else
      out.push_back(std::move(piece));
  }
  return out;
}

std::vector<Hold> SharedRates::hold(const RatePiece& piece, std::size_t flow) const {
  const Flowing& held = piece.flows[flow];
  if (held.rate.value >= held.cap.value * (1 - same_rate)) return {};
  const System& system = log_.system();
  Hold best;
  double least = full;
  for (const LinkLoad& load : system.communicators[held.communicator].loads) {
    Hold hold{load.link, 0.0, {}, {}};
    double left = system.link_capacity[load.link].value, fastest = 0.0;
    for (std::size_t f = 0; f < piece.flows.size(); ++f) {
      const Flowing& other = piece.flows[f];
      const double weight = weight_on(other.communicator, load.link);
      if (weight == 0.0) continue;
      left -= weight * other.rate.value;
      fastest = std::max(fastest, other.rate.value);
      const bool at_cap = other.rate.value >= other.cap.value * (1 - same_rate);
      const bool with = std::abs(other.rate.value / held.rate.value - 1) < same_rate && !at_cap;
      (with ? hold.frozen : hold.others).push_back(f);
      if (with) hold.weight += weight;
    }
    left /= system.link_capacity[load.link].value;
    if (left >= least || fastest > held.rate.value * (1 + same_rate)) continue;
    least = left;
    best = std::move(hold);
  }
  ensures(!best.frozen.empty(), "a full link holds a flow below its cap");
  return {best};
}

}  // namespace stepcast::engine
