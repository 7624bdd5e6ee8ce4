// What a rank's step has more than expected, in amounts that are taken once each. Knows no cause.
#pragma once

#include <map>
#include <optional>

#include "validate/diagnose/parts.hpp"

namespace stepcast::validate {

/// Seconds of the step, measured - expected; they add up to the difference of the steps.
struct Ledger {
  std::map<TraceKind, double> more;      // kernels that are not expected, or that are missing
  std::map<TraceKind, double> slower;    // expected ones that take longer
  std::map<ExchangeKind, double> moves;  // transfers that nothing hides
  double at_once = 0;                    // kernels beside kernels: the union is less than the sum
  double wait = 0, boundary = 0, pauses = 0, gaps = 0;
  double rest = 0;  // transfers of no kind

  double total() const;
};

/// One rank beside what it should have been.
Ledger ledger_of(const RankParts& measured, const RankParts& expected);

/// How much longer the expected kernels take: sum of n0 d over sum of n0 d0, of kinds on both sides
/// that `counts`; none where there are none.
std::optional<double> slowness_of(const RankParts& measured, const RankParts& expected,
                                  bool (*counts)(TraceKind) = nullptr);

/// Kinds whose time is the tensor cores', and all that is bound by memory.
bool is_product(TraceKind kind);
bool is_attention(TraceKind kind);
bool is_memory_bound(TraceKind kind);

/// What is left of `amount`, which becomes nothing.
double taken(double& amount);

CallTally calls_of(const RankParts& rank, TraceKind kind);

template <class Kind>
double sum_of(const std::map<Kind, double>& amounts) {
  double sum = 0;
  for (const auto& [kind, seconds] : amounts) sum += seconds;
  return sum;
}

}  // namespace stepcast::validate
