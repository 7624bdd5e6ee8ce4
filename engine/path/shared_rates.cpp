#include "engine/path/shared_rates.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "engine/check.hpp"
#include "engine/max_min.hpp"

namespace stepcast::engine {
namespace {

// Rates are whole numbers of 1/64 byte/s: those of one level are equal, and a full link has less
// than that left for each of its flows.
constexpr double quantum = 1 / quanta_per_byte_per_second;
// Weights are rounded to 2^-32.
constexpr double rounding = 1e-9;

bool at_cap(const Flowing& flow) { return flow.rate >= flow.cap; }

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
  return {c, turn, {}, to_rate(to_quanta(log_.transfer_of(join).cap))};
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
  if (at_cap(held)) return {};
  const System& system = log_.system();
  Hold best;
  double least = std::numeric_limits<double>::infinity();
  for (const LinkLoad& load : system.communicators[held.communicator].loads) {
    Hold hold{load.link, 0.0, {}, {}};
    const double capacity = system.link_capacity[load.link].value;
    double left = capacity, weights = 0.0;
    bool is_fastest = true;
    for (std::size_t f = 0; f < piece.flows.size(); ++f) {
      const Flowing& other = piece.flows[f];
      const double weight = weight_on(other.communicator, load.link);
      if (weight == 0.0) continue;
      left -= weight * other.rate.value;
      weights += weight;
      is_fastest = is_fastest && other.rate.value <= held.rate.value + quantum;
      const bool with = std::abs((other.rate - held.rate).value) <= quantum && !at_cap(other);
      (with ? hold.frozen : hold.others).push_back(f);
      if (with) hold.weight += weight;
    }
    left -= 2 * quantum * weights + rounding * capacity;
    if (!is_fastest || left > 0 || left / capacity >= least) continue;
    least = left / capacity;
    best = std::move(hold);
  }
  ensures(!best.frozen.empty(), "a full link holds a flow below its cap");
  return {best};
}

}  // namespace stepcast::engine
