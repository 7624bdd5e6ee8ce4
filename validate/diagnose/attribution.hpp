// Which causes make up the gap between a measured step and the expected one: a detector for each,
// in order, takes its amounts from the ledger of the rank that the others wait for. What no
// detector takes stays unexplained, so causes and rest add up to the gap exactly.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/diagnose/causes.hpp"
#include "validate/diagnose/expected.hpp"
#include "validate/diagnose/ledger.hpp"

namespace stepcast::validate {

/// What a rank has more than expected, by what a reader knows: rows of the heat map.
struct RankExcess {
  std::int64_t rank = 0;
  double kernels = 0, slower = 0, transfer = 0, wait = 0, boundary = 0, pauses = 0, gaps = 0;
};

struct Attribution {
  double measured = 0, expected = 0;  // s of the step
  std::size_t bounding = 0;           // place of the rank that waits least
  bool waiting_known = false;         // traces of several ranks met
  std::vector<Cause> causes;          // longest first, then what is not explained
  std::vector<RankExcess> ranks;      // in the order of the traces
};

/// Times of transfers under a variable of NCCL, for who wants to try one: exchanges_under().
using UnderVariable = std::function<std::optional<std::map<ExchangeKind, ExchangeTally>>(
    const std::string& name, const std::string& value)>;

/// A cause of less than this share of the expected step is noise, and is not named.
inline constexpr double noise_share = 0.02;

Attribution attribute(const std::vector<RankParts>& measured, const ExpectedStep& expected,
                      const UnderVariable& under);

// For the detectors, each in the file of its kind.

/// One run beside its expectation. Amounts that a detector explains leave `left`.
struct Inquest {
  const std::vector<RankParts>& measured;
  const ExpectedStep& expected;
  const UnderVariable& under;
  std::size_t place = 0;  // of the rank whose step is explained
  bool waiting_known = false;
  Ledger left{};
  double noise = 0;  // s
  std::vector<Cause> causes{};

  const RankParts& mine() const { return measured[place]; }
  const RankParts& should() const { return expected.of(mine().rank); }
  const RankParts& should(std::size_t other) const { return expected.of(measured[other].rank); }
  std::string framework() const { return expected.report.scenario.software.framework; }
  /// Whether what a comparison with the forecast alone finds is beyond the forecast's error.
  Surety beside_forecast(double seconds) const;
};

void find_launch_blocking(Inquest& run);
void find_slow_rank(Inquest& run);
void find_more_kernels(Inquest& run);  // imbalance, recompute, copies, unfused kernels
void find_slow_kernels(Inquest& run);  // clocks, fp32, attention, the rest
void find_slow_network(Inquest& run);
void find_host(Inquest& run);     // between steps, pauses, launches
void find_waiting(Inquest& run);  // who comes last, and why

}  // namespace stepcast::validate
