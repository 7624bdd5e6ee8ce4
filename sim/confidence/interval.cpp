#include "sim/confidence/interval.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using Rows = ResidualRefs;

struct Weighted {
  double value = 0, weight = 0;
};

std::map<std::string, std::size_t> rows_by_source(const Rows& rows) {
  std::map<std::string, std::size_t> out;
  for (const Residual* row : rows) ++out[row->source];
  return out;
}

template <class Value>
std::vector<Weighted> weighted(const Rows& rows, Value value) {
  const auto counts = rows_by_source(rows);
  std::vector<Weighted> out;
  for (const Residual* row : rows)
    out.push_back({value(*row), 1.0 / static_cast<double>(counts.at(row->source))});
  return out;
}

/// The least value at or below which a share `level` of the weight lies.
double weighted_quantile(std::vector<Weighted> values, double level) {
  expects(!values.empty(), "a quantile of at least one value");
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  const double all = std::accumulate(values.begin(), values.end(), 0.0,
                                     [](double sum, const Weighted& v) { return sum + v.weight; });
  constexpr double rounding = 1e-12;
  double below = 0;
  for (const Weighted& v : values)
    if (below += v.weight; below >= (level - rounding) * all) return v.value;
  return values.back().value;
}

Rows rows_like(const Rows& known, std::string Case::*member, const Case& wanted) {
  Rows out;
  for (const Residual* row : known)
    if (row->of.*member == wanted.*member) out.push_back(row);
  return out;
}

bool is_dense_16_bit(const Case& of) { return of.kind == dense_16_bit; }

/// Of dense 16-bit models or of all others, as the case is.
Rows own_side(const Case& wanted, std::span<const Residual> known) {
  Rows out;
  for (const Residual& row : known)
    if (is_dense_16_bit(row.of) == is_dense_16_bit(wanted)) out.push_back(&row);
  return out;
}

/// By how much `share` is beyond the largest of the residuals, of what there is beyond it.
double beyond(double Case::*share, const Case& wanted, const Rows& known) {
  double limit = 0;
  for (const Residual* row : known) limit = std::max(limit, row->of.*share);
  return limit < 1.0 ? std::max(0.0, wanted.*share - limit) / (1.0 - limit) : 0.0;
}

constexpr std::string Case::*rarities[] = {&Case::generation, &Case::reach};
constexpr std::string Case::*told[] = {&Case::generation, &Case::reach, &Case::kind};

double widening(const Case& wanted, const Rows& known, double shift) {
  for (const auto member : rarities)
    if (rows_by_source(rows_like(known, member, wanted)).size() < few_sources) return shift;
  const double outside =
      beyond(&Case::unmeasured, wanted, known) + beyond(&Case::host, wanted, known);
  return 1.0 + (shift - 1.0) * std::min(1.0, outside);
}

double variance(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return sum / n;
}

}  // namespace

Interval interval_of(const Rows& residuals, double level) {
  expects(!residuals.empty(), "an interval of at least one residual");
  const std::size_t sources = rows_by_source(residuals).size();
  const auto k = static_cast<double>(sources);
  const double corrected = level * (k + 1) / k;
  const bool assured = corrected <= 1.0;
  const double centre =
      weighted_quantile(weighted(residuals, [](const Residual& r) { return r.log_ratio; }), 0.5);
  const double radius = weighted_quantile(
      weighted(residuals, [&](const Residual& r) { return std::abs(r.log_ratio - centre); }),
      assured ? corrected : level);
  return {.low = centre - radius,
          .high = centre + radius,
          .kind = "all",
          .sources = sources,
          .assured = assured};
}

bool lacks_kin(const Case& wanted, std::span<const Residual> known) {
  return rows_by_source(own_side(wanted, known)).size() < few_sources;
}

Rows akin(const Case& wanted, std::span<const Residual> known) {
  Rows out = own_side(wanted, known);
  if (rows_by_source(out).size() >= few_sources) return out;
  out.clear();
  for (const Residual& row : known) out.push_back(&row);
  return out;
}

double widening_of(const Case& wanted, std::span<const Residual> known, double shift) {
  return widening(wanted, akin(wanted, known), shift);
}

Case told_apart(Case wanted, std::span<const Residual> known) {
  const Rows rows = akin(wanted, known);
  for (const auto share : {&Case::unmeasured, &Case::host})
    if (beyond(share, wanted, rows) == 0) wanted.*share = 0;
  return wanted;
}

std::optional<Interval> interval_for(const Case& wanted, std::span<const Residual> known,
                                     double level, double shift) {
  if (known.empty()) return std::nullopt;
  const Rows all = akin(wanted, known);
  const Rows of_reach = rows_like(all, &Case::reach, wanted);
  const auto sources = static_cast<double>(rows_by_source(of_reach).size());
  const bool own_reach = level * (sources + 1) <= sources - 1;
  Interval out = interval_of(own_reach ? of_reach : all, level);
  const bool others = !is_dense_16_bit(wanted) && !lacks_kin(wanted, known);
  if (others) out.kind = "experts and low precision";
  if (own_reach) out.kind = others ? out.kind + ", " + wanted.reach : wanted.reach;
  if (!out.assured) return out;  // what widens it rests on its level
  out.widened = widening(wanted, all, shift);
  const double centre = 0.5 * (out.low + out.high), radius = 0.5 * (out.high - out.low);
  out.low = centre - out.widened * radius;
  out.high = centre + out.widened * radius;
  for (const auto member : told) {
    const Rows few = rows_like(all, member, wanted);
    if (few.empty() || rows_by_source(few).size() >= few_sources) continue;
    const Interval theirs = interval_of(few, level);
    out.low = std::min(out.low, theirs.low);
    out.high = std::max(out.high, theirs.high);
  }
  return out;
}

Spread spread_of(std::span<const Residual> residuals) {
  std::map<std::string, std::vector<double>> sources;
  for (const Residual& row : residuals) sources[row.source].push_back(row.log_ratio);
  std::vector<double> medians, inside;
  for (const auto& [source, values] : sources) {
    medians.push_back(median(values));
    if (values.size() > 1) inside.push_back(variance(values));
  }
  if (medians.size() < 2 || inside.empty()) return {};
  return {std::sqrt(variance(medians)),
          std::sqrt(std::accumulate(inside.begin(), inside.end(), 0.0) /
                    static_cast<double>(inside.size()))};
}

Interval narrowed(const Interval& interval, const Spread& spread, const std::vector<double>& own) {
  if (own.empty() || !(spread.between > 0)) return interval;
  const auto n = static_cast<double>(own.size());
  const double between = spread.between * spread.between, inside = spread.inside * spread.inside;
  const double k = inside / between;
  const double trust = n / (n + k);
  const double centre = 0.5 * (interval.low + interval.high);
  const double moved = centre + trust * (median(own) - centre);
  const double radius = 0.5 * (interval.high - interval.low) *
                        std::sqrt((between * (1.0 - trust) + inside) / (between + inside));
  Interval out = interval;
  out.low = moved - radius;
  out.high = moved + radius;
  out.own_runs = own.size();
  return out;
}

}  // namespace stepcast::sim
