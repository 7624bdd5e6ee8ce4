#include "engine/meetings.hpp"

#include <limits>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::engine {
namespace {

constexpr BytesPerSecond unlimited(std::numeric_limits<double>::infinity());
constexpr std::uint32_t no_slot = ~std::uint32_t{0};

}  // namespace

Meetings::Meetings(const System& system, bool closed_forms)
    : system_(system), groups_(system.communicators.size()) {
  std::size_t members = 0;
  for (const Communicator& communicator : system_.communicators)
    members += communicator.members.size();
  members_.reserve(members);
  first_member_.reserve(groups_.size() + 1);
  alone_bound_.reserve(groups_.size());
  first_member_.push_back(0);
  const BytesPerSecond free = rate_alone(unlimited, {}, {});
  for (const Communicator& communicator : system_.communicators) {
    for (const std::uint32_t r : communicator.members) members_.push_back({r, 0xff});
    first_member_.push_back(members_.size());
    alone_bound_.push_back(communicator.loads.empty()
                               ? free
                               : rate_alone(unlimited, communicator.loads, system_.link_capacity));
  }
  const std::vector<Parts> parts = parts_of_slots();
  for (std::size_t slot = 0; slot < parts.size(); ++slot)
    if (std::ranges::any_of(parts[slot], [](const Part& part) { return part.lane != 0xff; }))
      note_lanes(slot, parts[slot]);
  sort_out(closed_forms);
  undisturbed_.assign(groups_.size(), false);
  if (closed_forms) find_undisturbed(parts);
}

std::vector<Meetings::Parts> Meetings::parts_of_slots() const {
  std::vector<Parts> out(system_.communicator_of.size(), Parts(system_.roles.size()));
  std::vector<std::uint32_t> last(system_.transfers.size(), no_slot);  // that the role joined it in
  for (std::uint32_t role = 0; role < system_.roles.size(); ++role) {
    std::ranges::fill(last, no_slot);
    for (const Instruction& i : system_.roles[role].instructions) {
      if (i.op != Op::join) continue;
      Part& part = out.at(i.communicator)[role];
      expects(part.lane == 0xff || part.lane == i.lane,
              "a communicator slot is used from one lane");
      part.lane = i.lane;
      if (std::exchange(last.at(i.arg), i.communicator) != i.communicator &&
          std::ranges::find(part.transfers, i.arg) == part.transfers.end())
        part.transfers.push_back(i.arg);
    }
  }
  return out;
}

/// Notes the lane from which every member joins the communicators of a slot.
void Meetings::note_lanes(std::size_t slot, const Parts& parts) {
  // Members come in the order of ranks nearly always: look behind the last one found first.
  std::vector<std::size_t> next(first_member_.begin(), first_member_.end() - 1);
  for (std::uint32_t r = 0; r < system_.num_ranks(); ++r) {
    const std::uint32_t c = system_.communicator_of[slot][r];
    const std::uint8_t lane = parts[system_.role_of_rank[r]].lane;
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
std::vector<Quanta> Meetings::fastest(const std::vector<Parts>& parts_of_slots) const {
  std::vector<Quanta> out(groups_.size(), 0);
  const std::size_t patterns = system_.num_patterns;
  std::vector<BytesPerSecond> caps(system_.roles.size() * patterns);  // the fastest of a slot
  for (std::size_t slot = 0; slot < parts_of_slots.size(); ++slot) {
    bool joined = false;
    std::ranges::fill(caps, BytesPerSecond{});
    for (std::size_t role = 0; role < system_.roles.size(); ++role)
      for (const std::uint32_t index : parts_of_slots[slot][role].transfers) {
        joined = true;
        for (std::size_t p = 0; p < patterns; ++p) {
          BytesPerSecond& most = caps[role * patterns + p];
          most = std::max(most, system_.transfers[index * patterns + p].cap);
        }
      }
    if (!joined) continue;
    for (std::uint32_t r = 0; r < system_.num_ranks(); ++r) {
      const std::uint32_t c = system_.communicator_of[slot][r];
      if (c == no_communicator) continue;
      const BytesPerSecond cap =
          caps[system_.role_of_rank[r] * patterns + system_.communicators[c].pattern];
      out[c] = std::max(out[c], to_quanta(std::min(cap, alone_bound_[c])));
    }
  }
  return out;
}

/// Finds the communicators of compute lanes on links that all who may ever use them at once cannot
/// fill: Fluid would give their transfers the cap from begin to end. A rank is in one transfer of
/// its compute lane at a time; all else is taken to happen at once.
void Meetings::find_undisturbed(const std::vector<Parts>& parts_of_slots) {
  const std::vector<Quanta> rate = fastest(parts_of_slots);
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
  std::vector<bool> never_full(links);
  for (std::size_t l = 0; l < links; ++l)
    never_full[l] = of_compute[l] + of_others[l] <= capacity_to_quanta(system_.link_capacity[l]);
  for (std::uint32_t c = 0; c < groups_.size(); ++c)
    undisturbed_[c] =
        std::ranges::all_of(members_of(c),
                            [](const Member& m) { return m.lane == compute_lane; }) &&
        std::ranges::all_of(system_.communicators[c].loads,
                            [&](const LinkLoad& load) { return never_full[load.link]; });
}

void Meetings::shift(Duration by) {
  for (GroupState& group : groups_) {
    group.latest += by;
    group.started += by;
    group.ends_after += by;
  }
}

}  // namespace stepcast::engine
