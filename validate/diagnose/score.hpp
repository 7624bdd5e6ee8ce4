// How often the diagnosis of runs with a known fault is right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/told/told.hpp"
#include "validate/diagnose/causes.hpp"
#include "validate/diagnose/faults.hpp"

namespace stepcast::validate {

/// What came of one run.
struct FaultOutcome {
  Fault fault{};
  std::string base;
  std::uint64_t seed = 0;
  double step = 0, lengthened = 0;   // s
  std::optional<CauseKind> first{};  // that was named; none: nothing above noise
  double named = 0;                  // s of the first cause
  std::string causes{};              // all that were named: "slow_rank 12.3 ms"
  bool cause_right = false, close = false;
  std::optional<bool> rank_right{};  // none: no rank alone is slow
};

/// A fault lengthens its step by at least this share; one that does less is drawn anew.
inline constexpr double least_fault = 0.04;

/// Within this share of the truth, a cause's time is close.
inline constexpr double close_enough = 0.2;

/// Each kind of fault `each` times on plans of 16 to 512 ranks, and `healthy` runs without one, all
/// drawn from `seed`.
std::vector<FaultOutcome> diagnose_faults(const sim::Catalogue& catalogue, std::int64_t each,
                                          std::int64_t healthy, std::uint64_t seed,
                                          unsigned threads);

/// Whether the marks of the house are reached: the first cause right, and its time within 20 %, in
/// 90 % of the faults, the slow rank in 95 %, no cause on a healthy run.
bool good_enough(const std::vector<FaultOutcome>& outcomes);

/// As JSON {"faults": [...], "summary": {...}, "runs": [...]}.
sim::ToldSection told_of(const std::vector<FaultOutcome>& outcomes);

}  // namespace stepcast::validate
