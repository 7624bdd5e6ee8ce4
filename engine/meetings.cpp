#include "engine/meetings.hpp"

#include <limits>

#include "engine/check.hpp"

namespace stepcast::engine {

Meetings::Meetings(const System& system, bool closed_forms)
    : system_(system), groups_(system.communicators.size()) {
  first_member_.push_back(0);
  for (const Communicator& communicator : system_.communicators) {
    for (const std::uint32_t r : communicator.members) members_.push_back({r, 0xff});
    first_member_.push_back(members_.size());
    alone_bound_.push_back(rate_alone(BytesPerSecond(std::numeric_limits<double>::infinity()),
                                      communicator.loads, system_.link_capacity));
  }
  const std::vector<std::vector<std::uint8_t>> lanes = lanes_of_slots();
  for (std::size_t slot = 0; slot < lanes.size(); ++slot) note_lanes(slot, lanes[slot]);
  sort_out(closed_forms);
  undisturbed_.assign(groups_.size(), false);
  if (closed_forms) find_undisturbed();
}

/// By slot and role: the lane from which the role joins the slot's communicators; 0xff: from none.
std::vector<std::vector<std::uint8_t>> Meetings::lanes_of_slots() const {
  std::vector<std::vector<std::uint8_t>> lanes(
      system_.communicator_of.size(), std::vector<std::uint8_t>(system_.roles.size(), 0xff));
  for (std::uint32_t role = 0; role < system_.roles.size(); ++role)
    for (const Instruction& i : system_.roles[role].instructions) {
      if (i.op != Op::join) continue;
      std::uint8_t& lane = lanes.at(i.communicator)[role];
      expects(lane == 0xff || lane == i.lane, "a communicator slot is used from one lane");
      lane = i.lane;
    }
  return lanes;
}

/// Notes the lane from which every member joins the communicators of a slot.
void Meetings::note_lanes(std::size_t slot, const std::vector<std::uint8_t>& lane_of_role) {
  // Members come in the order of ranks nearly always: look behind the last one found first.
  std::vector<std::size_t> next(first_member_.begin(), first_member_.end() - 1);
  for (std::uint32_t r = 0; r < system_.num_ranks(); ++r) {
    const std::uint32_t c = system_.communicator_of[slot][r];
    const std::uint8_t lane = lane_of_role[system_.role_of_rank[r]];
    if (c == no_communicator || lane == 0xff) continue;
    const auto is_rank = [r](const Member& m) { return m.rank == r; };
    const auto begin = members_.begin();
    const auto last = begin + static_cast<std::ptrdiff_t>(first_member_[c + 1]);
    auto member = std::find_if(begin + static_cast<std::ptrdiff_t>(next[c]), last, is_rank);
    if (member == last)
      member = std::find_if(begin + static_cast<std::ptrdiff_t>(first_member_[c]), last, is_rank);
    expects(member != last, "a rank's communicator has the rank as a member");
    member->lane = lane;
    next[c] = std::min(static_cast<std::size_t>(member - begin) + 1, first_member_[c + 1] - 1);
  }
}

/// Finds the communicators that need no queue. Links are their own that every communicator over
/// them shares a member (the link's owner) with.
void Meetings::sort_out(bool closed_forms) {
  runs_ahead_.assign(system_.communicators.size(), closed_forms);
  std::vector<bool> own(system_.link_capacity.size(), true);
  std::vector<std::uint32_t> member_of(system_.num_ranks(), no_communicator);
  for (std::uint32_t c = 0; c < system_.communicators.size(); ++c) {
    for (const std::uint32_t r : system_.communicators[c].members) member_of[r] = c;
    for (const LinkLoad& load : system_.communicators[c].loads) {
      const std::uint32_t owner = system_.link_owner[load.link];
      if (owner == no_owner || member_of[owner] != c) own[load.link] = false;
    }
  }
  for (std::uint32_t c = 0; c < system_.communicators.size(); ++c) {
    const Communicator& communicator = system_.communicators[c];
    beside_.push_back(closed_forms && communicator.members.size() == 1 &&
                      communicator.loads.empty() &&
                      members_[first_member_[c]].lane != compute_lane);
    for (const LinkLoad& load : communicator.loads)
      if (!own[load.link]) runs_ahead_[c] = false;
    for (std::size_t m = first_member_[c]; m < first_member_[c + 1]; ++m)
      if (members_[m].lane != compute_lane) runs_ahead_[c] = false;
  }
}

/// The fastest that any transfer of each communicator may go.
std::vector<Quanta> Meetings::fastest() const {
  std::vector<Quanta> out(groups_.size(), 0);
  std::vector<std::vector<std::uint32_t>> joined(system_.roles.size());  // transfers, by role
  for (std::uint32_t slot = 0; slot < system_.communicator_of.size(); ++slot) {
    for (std::size_t role = 0; role < joined.size(); ++role) {
      joined[role].clear();
      for (const Instruction& i : system_.roles[role].instructions)
        if (i.op == Op::join && i.communicator == slot) joined[role].push_back(i.arg);
      std::ranges::sort(joined[role]);
      const auto again = std::ranges::unique(joined[role]);
      joined[role].erase(again.begin(), again.end());
    }
    for (std::uint32_t r = 0; r < system_.num_ranks(); ++r) {
      const std::uint32_t c = system_.communicator_of[slot][r];
      if (c == no_communicator) continue;
      for (const std::uint32_t index : joined[system_.role_of_rank[r]])
        out[c] = std::max(out[c], to_quanta(cap_of(c, transfer(c, index))));
    }
  }
  return out;
}

/// Finds the communicators of compute lanes on links that all who may ever use them at once cannot
/// fill: Fluid would give their transfers the cap from begin to end. A rank is in one transfer of
/// its compute lane at a time; all else is taken to happen at once.
void Meetings::find_undisturbed() {
  const std::vector<Quanta> rate = fastest();
  const std::size_t links = system_.link_capacity.size();
  std::vector<Quanta> mine(links), of_compute(links), of_others(links);
  std::vector<std::uint32_t> on_compute(system_.num_ranks(), no_communicator);
  for (std::uint32_t c = 0; c < groups_.size(); ++c) {
    const std::vector<LinkLoad>& loads = system_.communicators[c].loads;
    for (const auto [rank, lane] : members_of(c))
      if (lane == compute_lane) on_compute[rank] = c;
    for (const LinkLoad& load : loads) mine[load.link] += usage(to_fixed(load.weight), rate[c]);
    for (const LinkLoad& load : loads) {
      const std::uint32_t owner = system_.link_owner[load.link];
      Quanta& most = of_compute[load.link];
      if (owner != no_owner && on_compute[owner] == c)
        most = std::max(most, mine[load.link]);
      else
        of_others[load.link] += mine[load.link];
      mine[load.link] = 0;
    }
  }
  for (std::uint32_t c = 0; c < groups_.size(); ++c)
    undisturbed_[c] =
        std::ranges::all_of(members_of(c),
                            [](const Member& m) { return m.lane == compute_lane; }) &&
        std::ranges::all_of(system_.communicators[c].loads, [&](const LinkLoad& load) {
          return of_compute[load.link] + of_others[load.link] <=
                 capacity_to_quanta(system_.link_capacity[load.link]);
        });
}

void Meetings::shift(Duration by) {
  for (GroupState& group : groups_) {
    group.latest += by;
    group.started += by;
    group.ends_after += by;
  }
}

}  // namespace stepcast::engine
