// What a whole run is asked about: how much is trained, what that is paid with, where it stands.
// Plain values; sim/goal computes with them.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"

namespace stepcast::sim {

/// [run_goal]: one of the three says how much; zero: not that one.
struct RunGoal {
  Count tokens{};
  Count samples{};  // sequences
  double days = 0;
  double goodput = 1;  // share of the wall clock that makes progress, (0, 1]; 1: no failures
  std::string today;   // "2026-11-23", that the age of prices is counted to; empty: the clock's

  bool on() const { return tokens.value > 0 || samples.value > 0 || days > 0; }
  friend bool operator==(const RunGoal&, const RunGoal&) = default;
};

/// [cost]: of one GPU, its share of node and network included.
struct Cost {
  UsdPerHour price{};  // rent; 0: no list has one
  UsdPerHour price_low{}, price_high{};
  bool own = false;  // bought instead of rented
  Usd capex{};       // 0: not known
  Usd capex_low{}, capex_high{};
  double overhead = 0;        // on top of capex: storage, spares, installation, as a share of it
  double years = 4;           // that capex is paid back in
  double interest = 0.08;     // a year
  double utilisation = 0.85;  // share of its hours that the cluster works for anybody
  UsdPerHour opex{};          // people, maintenance, building
  UsdPerKwh electricity{};    // of owned hardware; rent has it in it
  std::string source, date;   // of the price; empty: the user's own

  friend bool operator==(const Cost&, const Cost&) = default;
};

/// [site]
struct Site {
  double pue = 1;  // power of the building over that of the machines
  GramsPerKwh carbon{};
  std::string source, date;

  friend bool operator==(const Site&, const Site&) = default;
};

/// Whose power counts: that of GPUs, nodes and network by the model, or as model cards count, TDP
/// of the GPUs alone.
enum class PowerCount : std::uint8_t { modelled, tdp };

}  // namespace stepcast::sim
