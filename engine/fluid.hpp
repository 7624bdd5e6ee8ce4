// Amounts that drain through shared links in simulated time: the state of the time-ordered layer.
// Rates are max-min fair (max_min.hpp). Knows no clock of its own: the caller walks from instant to
// instant, and at each one takes what ended, starts what starts, and settles once.
//
// What makes it fast
//   Demand. A link's demand is the sum of weight x cap of its flows, where a cap is first bounded
//   by what the flow's links could give it alone. A link with demand <= capacity is never a
//   bottleneck: it couples nobody. A flow without an overloaded link runs at its cap; its end is
//   closed form. Levels. A start or an end is followed from link to link, by the rates at which
//   they are full (fluid_rates.cpp): next to nothing is looked at but flows whose rate changes and
//   their links.
// Exactness
//   Demands, capacities and rates are integers (max_min.hpp), so a demand returns exactly to what
//   it was when a flow leaves, for any weights; rates do not depend on the order of starts and
//   ends. An end is now + remaining / rate, rounded up to a picosecond.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engine/event_heap.hpp"
#include "engine/max_min.hpp"
#include "engine/units.hpp"

namespace stepcast::engine {

class Fluid {
 public:
  using Flow = std::uint32_t;  // recycled after its end was taken

  /// What was done so far; for benches and reports.
  struct Counters {
    std::uint64_t starts = 0;
    std::uint64_t settles = 0;        // of instants that touched an overloaded link
    std::uint64_t weighed_links = 0;  // overloaded ones, each time
    std::uint64_t weighed_flows = 0;  // on them
    std::uint64_t moves = 0;          // of flows from level to level
    std::uint64_t changed_rates = 0;  // of flows already under way
  };

  explicit Fluid(std::span<const BytesPerSecond> capacities);

  /// The flow takes part from `now` on, at a rate that the next settle(now) decides. `loads` is
  /// borrowed until its end is taken. An infinite cap means: as fast as its links allow.
  Flow start(Time now, double bytes, BytesPerSecond cap, std::span<const LinkLoad> loads,
             std::uint64_t tag);

  /// Decides the rates after all starts and ends of this instant. Costs nothing without any.
  void settle(Time now);

  /// The earliest end among settled flows.
  std::optional<Time> next_end() const;

  /// Removes the flows that end exactly at `now` and appends their tags in the order of their
  /// starts.
  void take_ended(Time now, std::vector<std::uint64_t>& tags);

  /// What the future of a settled flow depends on.
  struct Active {
    std::uint64_t tag;
    double remaining;  // bytes at `since`
    Time since, end;
    BytesPerSecond rate;
  };
  /// Settled flows by their tags.
  std::vector<Active> settled() const;
  /// All later by `by`.
  void shift(Duration by);

  std::size_t active() const { return num_active_; }
  BytesPerSecond rate_of(Flow flow) const { return to_rate(flows_[flow].rate); }
  /// The end as settled last.
  Time end_of(Flow flow) const { return flows_[flow].end; }
  const Counters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;

  /// 2t: a flow freezes at its cap t. 2t + 1: at the share t of a link.
  using Level = std::int64_t;
  static constexpr Level never = std::numeric_limits<Level>::max();

  struct User {  // a flow on a link; `entry` is that load's place in entries_
    Flow flow;
    std::uint32_t entry;
    FixedWeight weight;
  };
  struct alignas(64) Link {  // a cache line
    Quanta capacity;
    Quanta demand = 0;
    Level level = never;  // where it is full
    Level next = never;   // where it is full by the present levels of its flows
    User first{};         // the others are in more_users_
    std::uint32_t num_users = 0;
    bool overloaded = false;  // as of the last settle
    bool touched = false;     // since then: a flow started or ended on it
    bool grown = false;       // since then: a flow started on it
    // During a settle.
    bool queued = false;   // to be visited
    bool stale = false;    // `next` is a lower bound
    bool raised = false;   // full later than before this round
    bool lighter = false;  // a flow of this round freezes later: to be weighed after it
  };
  struct Entry {                   // one load of an active flow
    std::uint32_t position;        // among its link's users; valid if not the first
    std::uint32_t previous, next;  // among the flow's entries on overloaded links
    std::uint32_t link;            // if it is overloaded
  };
  struct FlowState {
    const LinkLoad* loads;
    std::uint32_t num_loads;
    std::uint32_t first_entry;
    std::uint32_t first_overloaded;  // entry, or none
    std::uint32_t sequence;
    std::uint64_t tag;
    Quanta cap;        // bounded by its links
    Quanta rate;       // 0 until settled
    double remaining;  // bytes at `since`
    Time since;
    Time end;
    std::uint32_t settle;  // the last that moved it
  };
  struct Visit {  // in a heap with the lowest level on top
    Level at;
    std::uint32_t link;
    friend bool operator<(const Visit& a, const Visit& b) { return a.at > b.at; }
  };
  struct Rising {  // a flow on the link that is weighed, not frozen yet
    Level at;
    FixedWeight weight;
  };

  Flow new_flow();
  bool attach(Flow flow);
  void attach_to_shared(Link& link, std::uint32_t index, User user);
  void detach(const FlowState& flow, std::uint32_t index);
  void detach_from_shared(Link& link, std::uint32_t index, std::uint32_t entry);
  template <class Use>
  void each_user(std::uint32_t link, Use use) const {
    if (links_[link].num_users == 0) return;
    use(links_[link].first);
    if (links_[link].num_users > 1)
      for (const User& user : more_users_[link]) use(user);
  }
  std::uint32_t new_entries(std::uint32_t count);
  void touch(std::uint32_t link);
  void remove(Flow flow);

  void refresh_overloads();
  void list_overloaded(User user, std::uint32_t link);
  void unlist_overloaded(User user);
  void settle_levels();
  Level level_of(Flow flow) const;
  Level weigh(std::uint32_t link, Level from);
  void queue(std::uint32_t link);
  void take_round(Level at);
  void take_visits(Level at);
  void hold(std::uint32_t link, Level at);
  void let_go(std::uint32_t link, Level at);
  void freeze(Flow flow, Level at);
  void release(Flow flow, Level to, Level at);
  void note_lighter(std::uint32_t link);
  void move(Flow flow, Level to);
  void apply_rate(Flow flow, Quanta rate);

  std::vector<Link> links_;
  std::vector<std::vector<User>> more_users_;  // by link: its second user and the following
  std::vector<Entry> entries_;
  std::vector<std::vector<std::uint32_t>> free_entries_;  // blocks of 2^index entries
  std::vector<FlowState> flows_;
  std::vector<Flow> free_flows_;
  EventHeap ends_;
  std::size_t num_active_ = 0;
  std::uint32_t next_sequence_ = 0;
  Time now_{};

  std::vector<Flow> started_;           // not settled yet
  std::vector<std::uint32_t> touched_;  // links
  std::vector<Level> levels_;           // by flow: where it freezes
  std::vector<Visit> visits_;           // heap
  std::vector<std::uint32_t> round_;    // links of the present visit level
  std::vector<std::uint32_t> lighter_;  // links to weigh after the round
  std::vector<Flow> moved_;             // in this settle
  std::vector<Rising> rising_;          // scratch of weigh()
  std::uint32_t settle_ = 0;
  Counters counters_;
};

/// The rate of a flow that has its links alone, and the most it can ever have. Given as the cap of
/// start(), or with another cap through std::min, it changes no result and saves a pass over the
/// links.
BytesPerSecond rate_alone(BytesPerSecond cap, std::span<const LinkLoad> loads,
                          std::span<const BytesPerSecond> capacities);

/// When a flow ends that has its links alone; the same picosecond as through Fluid.
Time end_alone(Time start, double bytes, BytesPerSecond cap, std::span<const LinkLoad> loads,
               std::span<const BytesPerSecond> capacities);

}  // namespace stepcast::engine
