// Who meets whom: the communicators of a run with the lane from which each member joins, and which
// of them need no queue. Knows nothing of what the ranks do otherwise. Private to engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/max_min.hpp"
#include "engine/system.hpp"

namespace stepcast::engine {

struct Member {
  std::uint32_t rank = 0;
  std::uint8_t lane = 0;
};

/// The transfer that members of a communicator are joining.
struct GroupState {
  std::uint32_t arrived = 0;
  std::uint32_t transfer = 0;
  Time latest{};
  Time started{};
  Time ends_after{};  // once all have come: the transfer ends then or later
};

class Meetings {
 public:
  /// `system` is borrowed. Without closed forms every transfer needs the queue.
  Meetings(const System& system, bool closed_forms);

  std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  GroupState& group(std::uint32_t c) { return groups_[c]; }
  const GroupState& group(std::uint32_t c) const { return groups_[c]; }
  std::span<const Member> members_of(std::uint32_t c) const {
    return {members_.data() + first_member_[c], first_member_[c + 1] - first_member_[c]};
  }
  bool complete(std::uint32_t c) const {
    return groups_[c].arrived == first_member_[c + 1] - first_member_[c];
  }
  /// Only compute lanes meet, on links of their own.
  bool runs_ahead(std::uint32_t c) const { return runs_ahead_[c]; }
  /// Only compute lanes meet, on links that are never full, whatever else happens.
  bool undisturbed(std::uint32_t c) const { return undisturbed_[c]; }
  /// One rank is with itself, on another lane than compute and on no link.
  bool is_beside(std::uint32_t c) const { return beside_[c]; }

  const Transfer& transfer(std::uint32_t c, std::uint32_t index) const {
    return system_
        .transfers[std::size_t{index} * system_.num_patterns + system_.communicators[c].pattern];
  }
  const Transfer& transfer_of(std::uint32_t c) const { return transfer(c, groups_[c].transfer); }
  /// At most as fast as the communicator's own links allow.
  BytesPerSecond cap_of(std::uint32_t c, const Transfer& transfer) const {
    return std::min(transfer.cap, alone_bound_[c]);
  }
  /// All later by `by`.
  void shift(Duration by);

 private:
  /// How a role takes part in the communicators of a slot.
  struct Part {
    std::uint8_t lane = 0xff;                // from which it joins; 0xff: from none
    std::vector<std::uint32_t> transfers{};  // each once
  };
  using Parts = std::vector<Part>;  // by role
  std::vector<Parts> parts_of_slots() const;
  void note_lanes(std::size_t slot, const Parts& parts);
  void sort_out(bool closed_forms);
  std::vector<Quanta> fastest(const std::vector<Parts>& parts_of_slots) const;
  void find_undisturbed(const std::vector<Parts>& parts_of_slots);

  const System& system_;
  std::vector<GroupState> groups_;
  std::vector<Member> members_;
  std::vector<std::size_t> first_member_;
  std::vector<BytesPerSecond> alone_bound_;
  std::vector<bool> runs_ahead_, undisturbed_, beside_;
};

}  // namespace stepcast::engine
