// Shares a difference out over changes that can be made in any order (Shapley 1953): each gets the
// mean of what it brings where the others came before it or not. Knows no scenario: it is handed a
// value for each set of changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace stepcast::sim {

/// One bit per change that is made.
using ChangeSet = std::uint64_t;
/// All changes, one after the other.
using ChangeOrder = std::vector<std::size_t>;

inline constexpr std::size_t most_changes = 63;
inline constexpr std::size_t most_exact_changes = 6;  // 720 orders, 64 sets

/// Every order of up to `most_exact_changes`; of more `drawn` orders drawn at random from `seed`.
std::vector<ChangeOrder> orders_of(std::size_t changes, std::size_t drawn, std::uint64_t seed);

/// The sets on the way of these orders, none and all included, each once.
std::vector<ChangeSet> sets_on_the_way(const std::vector<ChangeOrder>& orders);

/// None where the changes cannot be made without others.
using SetValues = std::map<ChangeSet, std::optional<std::int64_t>>;

struct Shares {
  std::vector<std::int64_t> of;  // by change; they add up to value(all) - value(none) exactly
  std::vector<double> error{};   // standard error of the mean over drawn orders; 0 where exact
  std::size_t orders = 0;        // that were averaged: those whose every set has a value
  std::size_t asked = 0;         // of so many
  bool exact = true;             // all orders, none drawn
};

/// Rounded to whole units so that the sum holds; a change that never changes a value gets 0. None
/// where no order has a value all the way.
std::optional<Shares> shares_of(const std::vector<ChangeOrder>& orders, const SetValues& values);

}  // namespace stepcast::sim
