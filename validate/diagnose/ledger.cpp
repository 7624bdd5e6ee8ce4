#include "validate/diagnose/ledger.hpp"

#include <set>
#include <utility>

namespace stepcast::validate {
namespace {

template <class Kind, class Tally>
Tally entry_of(const std::map<Kind, Tally>& all, const Kind& kind) {
  const auto at = all.find(kind);
  return at == all.end() ? Tally{} : at->second;
}

template <class Kind, class Tally>
std::set<Kind> kinds_of(const std::map<Kind, Tally>& one, const std::map<Kind, Tally>& other) {
  std::set<Kind> out;
  for (const auto& [kind, tally] : one) out.insert(kind);
  for (const auto& [kind, tally] : other) out.insert(kind);
  return out;
}

}  // namespace

double Ledger::total() const {
  return sum_of(more) + sum_of(slower) + sum_of(moves) + at_once + wait + boundary + pauses + gaps +
         rest;
}

Ledger ledger_of(const RankParts& m, const RankParts& e) {
  Ledger out;
  double kernels = 0, moves = 0;
  for (const TraceKind kind : kinds_of(m.kernels, e.kernels)) {
    if (kind == TraceKind::host_copy) continue;  // beside the step
    const CallTally measured = entry_of(m.kernels, kind), expected = entry_of(e.kernels, kind);
    const double each = measured.calls > 0 ? measured.each() : expected.each();
    out.more[kind] = (measured.calls - expected.calls) * each;
    out.slower[kind] = expected.calls * (each - expected.each());
    kernels += out.more[kind] + out.slower[kind];
  }
  for (const ExchangeKind& kind : kinds_of(m.exchanges, e.exchanges)) {
    out.moves[kind] = entry_of(m.exchanges, kind).exposed - entry_of(e.exchanges, kind).exposed;
    moves += out.moves[kind];
  }
  out.at_once = m.compute - e.compute - kernels;
  out.rest = m.transfer - e.transfer - moves;
  out.wait = m.wait - e.wait;
  out.boundary = m.boundary - e.boundary;
  out.pauses = m.pauses - e.pauses;
  out.gaps = m.gaps - e.gaps;
  return out;
}

std::optional<double> slowness_of(const RankParts& m, const RankParts& e,
                                  bool (*counts)(TraceKind)) {
  double measured = 0, expected = 0;
  for (const auto& [kind, one] : e.kernels) {
    const CallTally other = entry_of(m.kernels, kind);
    if (other.calls == 0 || (counts != nullptr && !counts(kind))) continue;
    measured += one.calls * other.each();
    expected += one.seconds;
  }
  return expected > 0 ? std::optional(measured / expected) : std::nullopt;
}

bool is_product(TraceKind kind) { return kind == TraceKind::gemm; }
bool is_attention(TraceKind kind) {
  return kind == TraceKind::attention_forward || kind == TraceKind::attention_backward;
}
bool is_memory_bound(TraceKind kind) {
  return !is_product(kind) && !is_attention(kind) && kind != TraceKind::host_copy;
}

CallTally calls_of(const RankParts& rank, TraceKind kind) { return entry_of(rank.kernels, kind); }

double taken(double& amount) { return std::exchange(amount, 0.0); }

}  // namespace stepcast::validate
