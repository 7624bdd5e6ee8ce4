// How Fluid finds the rates after starts and ends: only what changes is looked at.
//
// Levels. Filling (max_min.hpp) raises all rates together. At the rate t the flows freeze first
// whose cap is t, then those that have a link which is full at t: call these two moments the levels
// 2t and 2t + 1. Every flow f freezes at a level a_f; a link l is full at a level b_l, or never.
// Filling gives levels with
//   (1) a_f = the least of twice its cap and the b_l of its links;
//   (2) b_l = the first 2t + 1 with t = share(C - sum of w x, sum of the other w), the first sum
//   over
//       the flows frozen before (a < 2t + 1), at x = a / 2 rounded down; never if there are no
//       others.
// No other levels satisfy both: (1) and (2) decide what happens at a level by what happened at
// lower ones. So whoever finds such levels has the rates of a full solve to the last bit.
//
// The walk. After starts and ends the old levels fail (2) at their links only. Of each such link,
// `next` is what (2) says at present. Links whose `level` is not `next` are visited by the lower of
// the two, all links of one visit level in a round: `level` becomes `next`, their flows move as (1)
// says, and `next` of the other links of these flows is weighed again. What moves at a level
// changes (2) only above it, so what lies below a round is final, and few flows move that do not
// end up at another level than they had. When no link is left, (1) and (2) hold everywhere.
//   A flow that is held by the link itself counts among the others in (2).
//   A flow that freezes earlier than before can only raise `next` of its other links: they are
//   stale, `next` is a lower bound, and they are weighed when visited.
//   A link on which flows only ended is not full before its old level.
#include <algorithm>

#include "engine/check.hpp"
#include "engine/fluid.hpp"

namespace stepcast::engine {

void Fluid::refresh_overloads() {
  for (std::uint32_t l : touched_) {
    Link& link = links_[l];
    link.touched = false;
    const bool overloaded = link.demand > link.capacity;
    if (overloaded == link.overloaded) continue;
    link.overloaded = overloaded;
    each_user(l, [&](const User& user) {
      overloaded ? list_overloaded(user, l) : unlist_overloaded(user);
    });
  }
}

void Fluid::list_overloaded(User user, std::uint32_t link) {
  std::uint32_t& first = flows_[user.flow].first_overloaded;
  Entry& entry = entries_[user.entry];
  entry.link = link;
  entry.previous = none;
  entry.next = first;
  if (first != none) entries_[first].previous = user.entry;
  first = user.entry;
}

void Fluid::unlist_overloaded(User user) {
  const Entry& entry = entries_[user.entry];
  if (entry.next != none) entries_[entry.next].previous = entry.previous;
  (entry.previous == none ? flows_[user.flow].first_overloaded : entries_[entry.previous].next) =
      entry.next;
}

void Fluid::settle_levels() {
  expects(++settle_ != 0, "fewer than 2^32 settles");
  ++counters_.settles;
  moved_.clear();
  for (Flow flow : started_) levels_[flow] = level_of(flow);
  for (std::uint32_t l : touched_) {
    Link& link = links_[l];
    link.next = weigh(l, link.grown ? 0 : link.level);
    link.grown = false;
    queue(l);
  }
  while (!visits_.empty()) take_round(visits_.front().at);
  for (Flow flow : moved_) apply_rate(flow, levels_[flow] / 2);
}

/// As (1) says.
Fluid::Level Fluid::level_of(Flow id) const {
  const FlowState& flow = flows_[id];
  Level level = 2 * flow.cap;
  for (std::uint32_t e = flow.first_overloaded; e != none; e = entries_[e].next)
    level = std::min(level, links_[entries_[e].link].level);
  return level;
}

/// As (2) says, of a link that is not full before the level `from`.
Fluid::Level Fluid::weigh(std::uint32_t l, Level from) {
  const Link& link = links_[l];
  if (!link.overloaded) return never;
  ++counters_.weighed_links;
  counters_.weighed_flows += link.num_users;
  if (rising_.size() <= link.num_users) rising_.resize(link.num_users + 1);
  Rising* end = rising_.data();
  Wide room = widen(link.capacity);
  FixedWeight weight = 0;
  Level lowest = never;  // of those not frozen yet, where another link or the cap says one
  each_user(l, [&, own = link.level](const User& user) {
    const Level at = levels_[user.flow];
    const bool frozen = at < from, elsewhere = !frozen && at != own;
    room -= static_cast<Wide>(user.weight) * (frozen ? at / 2 : 0);
    weight += frozen ? 0 : user.weight;
    *end = {at, user.weight};
    end += elsewhere;
    lowest = std::min(lowest, elsewhere ? at : never);
  });
  while (weight > 0) {
    const Level full = 2 * share(room, weight) + 1;
    if (lowest >= full) return full;
    lowest = never;
    Rising* left = rising_.data();
    for (const Rising* r = left; r != end; ++r) {
      const bool frozen = r->at < full;
      room -= static_cast<Wide>(r->weight) * (frozen ? r->at / 2 : 0);
      weight -= frozen ? r->weight : 0;
      lowest = std::min(lowest, frozen ? never : r->at);
      *left = *r;
      left += !frozen;
    }
    end = left;
  }
  return never;
}

void Fluid::queue(std::uint32_t l) {
  Link& link = links_[l];
  link.queued = link.next != link.level || link.stale;
  if (!link.queued) return;
  visits_.push_back({std::min(link.level, link.next), l});
  std::push_heap(visits_.begin(), visits_.end());
}

void Fluid::take_round(Level at) {
  take_visits(at);
  for (std::uint32_t l : round_) {
    links_[l].raised = links_[l].level == at;
    links_[l].level = links_[l].next;
  }
  lighter_.clear();
  for (std::uint32_t l : round_) links_[l].raised ? let_go(l, at) : hold(l, at);
  for (std::uint32_t l : round_) links_[l].raised = false;
  for (std::uint32_t l : lighter_) {
    links_[l].lighter = links_[l].stale = false;
    links_[l].next = weigh(l, at);
    queue(l);
  }
}

/// The links whose level becomes or ceases to be `at`. A visit that the link's `next` has overtaken
/// is dropped.
void Fluid::take_visits(Level at) {
  round_.clear();
  while (!visits_.empty() && visits_.front().at == at) {
    const std::uint32_t l = visits_.front().link;
    std::pop_heap(visits_.begin(), visits_.end());
    visits_.pop_back();
    Link& link = links_[l];
    if (!link.queued || std::min(link.level, link.next) != at) continue;
    link.queued = false;
    if (link.stale) {
      link.stale = false;
      link.next = weigh(l, at);
    }
    if (link.next == link.level) continue;
    if (std::min(link.level, link.next) == at)
      round_.push_back(l);
    else
      queue(l);
  }
}

/// The link is full from now on.
void Fluid::hold(std::uint32_t l, Level at) {
  each_user(l, [&](const User& user) {
    if (levels_[user.flow] > at) freeze(user.flow, at);
  });
}

/// The link is full later than before, or never.
void Fluid::let_go(std::uint32_t l, Level at) {
  each_user(l, [&](const User& user) {
    if (levels_[user.flow] != at) return;
    const Level to = level_of(user.flow);
    if (to == at)
      note_lighter(l);  // another link holds the flow
    else
      release(user.flow, to, at);
  });
}

void Fluid::freeze(Flow id, Level at) {
  move(id, at);
  for (std::uint32_t e = flows_[id].first_overloaded; e != none; e = entries_[e].next) {
    const std::uint32_t l = entries_[e].link;
    Link& link = links_[l];
    if (link.next <= at || link.next == never || link.stale) continue;
    link.stale = true;
    if (!link.queued) queue(l);
  }
}

/// A link of the round counted the flow among the others already.
void Fluid::release(Flow id, Level to, Level at) {
  move(id, to);
  for (std::uint32_t e = flows_[id].first_overloaded; e != none; e = entries_[e].next) {
    const std::uint32_t l = entries_[e].link;
    const Link& link = links_[l];
    if (link.next > at && !(link.raised && to >= link.next)) note_lighter(l);
  }
}

void Fluid::note_lighter(std::uint32_t l) {
  if (links_[l].lighter) return;
  links_[l].lighter = true;
  lighter_.push_back(l);
}

void Fluid::move(Flow id, Level to) {
  levels_[id] = to;
  ++counters_.moves;
  if (flows_[id].settle == settle_) return;
  flows_[id].settle = settle_;
  moved_.push_back(id);
}

}  // namespace stepcast::engine
