#include "sim/confidence/memory_bar.hpp"

#include <cmath>

namespace stepcast::sim {
namespace {

/// The log ratio below which a share of what is needed lies.
double quantile(const MemoryOdds& odds, const std::string& kind, double share) {
  constexpr double forecast = 1e12, widest = 3.0;  // bytes; as a log ratio
  constexpr int halvings = 20;
  double low = -widest, high = widest;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    const Bytes card(static_cast<std::int64_t>(forecast * std::exp(middle)));
    (odds.fits(kind, Bytes(static_cast<std::int64_t>(forecast)), card) < share ? low : high) =
        middle;
  }
  return (low + high) / 2;
}

}  // namespace

Interval memory_interval(const MemoryOdds& odds, const std::string& kind, double level) {
  Interval out;
  out.low = quantile(odds, kind, (1 - level) / 2);
  out.high = quantile(odds, kind, (1 + level) / 2);
  out.kind = "all";
  return out;
}

}  // namespace stepcast::sim
