// Amounts that drain through shared links in simulated time: the state of the time-ordered layer.
// Rates are max-min fair (max_min.hpp). Knows no clock of its own: the caller walks from instant to
// instant, and at each one takes what ended, starts what starts, and settles once.
//
// What makes it fast
//   Demand. A link's demand is the sum of weight x cap of its flows, where a cap is first bounded
//   by what the flow's links could give it alone. A link with demand <= capacity is never a
//   bottleneck: it couples nobody. A flow without an overloaded link runs at its cap; its end is
//   closed form. Components. A start or an end changes rates only where it is connected through
//   overloaded links; of that component only the flows that the change reaches are solved
//   (fluid_part.cpp), all of it if that cannot be told, and only flows whose rate changed are
//   touched.
// Exactness
//   Demands, capacities and rates are integers (max_min.hpp), so a demand returns exactly to what
//   it was when a flow leaves, for any weights; rates do not depend on the order of starts and
//   ends. An end is now + remaining / rate, rounded up to a picosecond.
#pragma once

#include <algorithm>
#include <cstdint>
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
    std::uint64_t local_settles = 0;  // settles on overloaded links without the solver
    std::uint64_t part_settles = 0;   // settles by solves of a part
    std::uint64_t whole_settles = 0;  // settles by a solve of the whole component
    std::uint64_t solves = 0;         // of parts and components
    std::uint64_t solved_flows = 0;   // variables in them
    std::uint64_t solved_loads = 0;   // loads on overloaded links in them
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

  struct User {  // a flow on a link; `entry` is that load's place in entries_
    Flow flow;
    std::uint32_t entry;
  };
  struct Link {
    Quanta capacity;
    Quanta demand;
    std::uint32_t num_users;
    User first;       // the others are in more_users_
    bool overloaded;  // as of the last settle
    bool touched;     // may need a solve at the next settle
  };
  struct Entry {                   // one load of an active flow
    std::uint32_t position;        // among its link's users; valid if not the first
    std::uint32_t previous, next;  // among the flow's entries on overloaded links
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
    std::uint32_t bottleneck;  // a link that holds it back if it is below its cap
    std::uint32_t component;   // the solve or the proof that saw it last
  };
  struct Freed {  // by a proof
    Flow flow;
    Quanta settled;  // rate before
  };
  struct LinkState {  // at the present rates
    Wide left;        // capacity not used
    FixedWeight weight = 0;
    Quanta fastest = 0, second = 0;  // rates; 0 if there is none
    FixedWeight fastest_weight = 0, fastest_uncapped_weight = 0;
  };

  Flow new_flow();
  bool attach(Flow flow);
  void attach_to_shared(Link& link, std::uint32_t index, User user);
  void detach(const FlowState& flow, std::uint32_t index);
  void detach_from_shared(Link& link, std::uint32_t index, std::uint32_t entry);
  User& user(std::uint32_t link, std::uint32_t position);
  std::uint32_t new_entries(std::uint32_t count);
  void touch(std::uint32_t link);
  void remove(Flow flow);

  void refresh_overloads();
  void list_overloaded(User user);
  void unlist_overloaded(User user);
  bool settle_partly();
  bool prove_part();
  void free(Flow flow);
  void open(std::uint32_t link);
  void solve_part();
  void take_room(FlowState& flow);
  bool widen_at(std::uint32_t link);
  void free_faster(std::uint32_t link, Quanta rate);
  bool find_bottleneck(FlowState& flow);
  static bool holds_back(const LinkState& state, const FlowState& flow);
  LinkState state_of(std::uint32_t link);
  std::uint64_t most_looks() const { return std::max(least_looks, component_loads_); }
  FixedWeight weight_of(const User& user) const {
    const FlowState& flow = flows_[user.flow];
    return to_fixed(flow.loads[user.entry - flow.first_entry].weight);
  }
  void settle_component();
  void collect_component();
  void collect_flow(Flow flow);
  void reach(std::uint32_t link);
  void solve();
  std::uint32_t solved_bottleneck(std::uint32_t variable) const;
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
  /// A proof gives up after about so many users of links, or after as many as the last component
  /// had loads, and each one in vain doubles the settles until the next is tried.
  static constexpr std::uint64_t least_looks = 128;
  static constexpr std::uint32_t longest_pause = 4;
  std::uint64_t looks_ = 0;
  std::uint64_t component_loads_ = 0;  // in the last solve of a whole component
  std::uint32_t pause_ = 0, next_pause_ = 1;
  std::vector<Freed> freed_;                    // in the order of the solver's variables
  std::vector<Wide> rooms_;                     // in the order of the solver's links
  std::vector<std::uint32_t> component_links_;  // in the order of the solver's links
  std::vector<Flow> component_;                 // in the order of the solver's variables
  std::vector<std::uint32_t> frontier_;         // links whose users are still to be collected
  std::vector<std::uint32_t> solver_link_;      // by link, valid if its solve is the current one
  std::vector<std::uint32_t> solver_link_of_;   // by link: the solve or the proof that numbered it
  std::uint32_t solve_ = 0;
  MaxMinSolver solver_;
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
