#include "sim/confidence/interval.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using Rows = ResidualRefs;

struct Weighted {
  double value = 0, weight = 0;
};

/// The source of each row as a number, and how many rows each has.
struct Sources {
  std::vector<std::size_t> of_row, rows;

  explicit Sources(const Rows& all) {
    std::map<std::string_view, std::size_t> numbers;
    const std::string* before = nullptr;  // rows of one source mostly stand together
    for (const Residual* row : all) {
      const bool same = before != nullptr && *before == row->source;
      const std::size_t number =
          same ? of_row.back() : numbers.try_emplace(row->source, numbers.size()).first->second;
      rows.resize(numbers.size());
      of_row.push_back(number);
      ++rows[number];
      before = &row->source;
    }
  }
};

/// Whether `few_sources` or more have measured them.
bool have_sources(const Rows& rows) {
  std::vector<std::string_view> seen;
  for (const Residual* row : rows) {
    if (std::ranges::count(seen, row->source) > 0) continue;
    seen.push_back(row->source);
    if (seen.size() >= few_sources) return true;
  }
  return false;
}

template <class Value>
std::vector<Weighted> weighted(const Rows& rows, const Sources& sources, Value value) {
  std::vector<Weighted> out;
  out.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({value(*rows[i]), 1.0 / static_cast<double>(sources.rows[sources.of_row[i]])});
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

LargestShares largest_of(const Rows& known) {
  LargestShares out;
  for (const Residual* row : known) {
    out.unmeasured = std::max(out.unmeasured, row->of.unmeasured);
    out.host = std::max(out.host, row->of.host);
  }
  return out;
}

/// By how much a share is beyond the largest of the residuals, of what there is beyond it.
double beyond(double share, double limit) {
  return limit < 1.0 ? std::max(0.0, share - limit) / (1.0 - limit) : 0.0;
}

constexpr std::string Case::*rarities[] = {&Case::generation, &Case::reach};
constexpr std::string Case::*told[] = {&Case::generation, &Case::reach, &Case::kind};

/// Whether few have measured its generation or its reach.
bool is_rare(const Case& wanted, const Rows& known) {
  return std::ranges::any_of(
      rarities, [&](const auto member) { return !have_sources(rows_like(known, member, wanted)); });
}

double widening(const Case& wanted, bool rare, const LargestShares& largest, const Growth& growth) {
  const double outside =
      beyond(wanted.unmeasured, largest.unmeasured) + beyond(wanted.host, largest.host);
  const double left = rare ? 1.0 : std::min(1.0, outside);
  return 1.0 + std::max((growth.source - 1.0) * left, (growth.gpu - 1.0) * wanted.guessed);
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
  const Sources of(residuals);
  const std::size_t sources = of.rows.size();
  const auto k = static_cast<double>(sources);
  const double corrected = level * (k + 1) / k;
  const bool assured = corrected <= 1.0;
  const double centre = weighted_quantile(
      weighted(residuals, of, [](const Residual& r) { return r.log_ratio; }), 0.5);
  const double radius = weighted_quantile(
      weighted(residuals, of, [&](const Residual& r) { return std::abs(r.log_ratio - centre); }),
      assured ? corrected : level);
  return {.low = centre - radius,
          .high = centre + radius,
          .kind = "all",
          .sources = sources,
          .assured = assured};
}

bool lacks_kin(const Case& wanted, std::span<const Residual> known) {
  return !have_sources(own_side(wanted, known));
}

Rows akin(const Case& wanted, std::span<const Residual> known) {
  Rows out = own_side(wanted, known);
  if (have_sources(out)) return out;
  out.clear();
  for (const Residual& row : known) out.push_back(&row);
  return out;
}

double widening_of(const Case& wanted, std::span<const Residual> known, const Growth& growth) {
  const Rows rows = akin(wanted, known);
  return widening(wanted, is_rare(wanted, rows), largest_of(rows), growth);
}

std::optional<IntervalBasis> basis_for(const Case& wanted, std::span<const Residual> known,
                                       double level) {
  if (known.empty()) return std::nullopt;
  const Rows all = akin(wanted, known);
  const Rows of_reach = rows_like(all, &Case::reach, wanted);
  const auto sources = static_cast<double>(Sources(of_reach).rows.size());
  const bool own_reach = level * (sources + 1) <= sources - 1;
  IntervalBasis out{.plain = interval_of(own_reach ? of_reach : all, level),
                    .rare = is_rare(wanted, all),
                    .largest = largest_of(all)};
  const bool others = !is_dense_16_bit(wanted) && !lacks_kin(wanted, known);
  std::string& kind = out.plain.kind;
  if (others) kind = "experts and low precision";
  if (own_reach) kind = others ? kind + ", " + wanted.reach : wanted.reach;
  if (!out.plain.assured) return out;  // what widens it rests on its level
  for (const auto member : told) {
    const Rows few = rows_like(all, member, wanted);
    if (!few.empty() && !have_sources(few)) out.few.push_back(interval_of(few, level));
  }
  return out;
}

Interval interval_on(const IntervalBasis& basis, const Case& wanted, const Growth& growth) {
  Interval out = basis.plain;
  if (!out.assured) return out;
  out.widened = widening(wanted, basis.rare, basis.largest, growth);
  const double centre = 0.5 * (out.low + out.high), radius = 0.5 * (out.high - out.low);
  out.low = centre - out.widened * radius;
  out.high = centre + out.widened * radius;
  for (const Interval& theirs : basis.few) {
    out.low = std::min(out.low, theirs.low);
    out.high = std::max(out.high, theirs.high);
  }
  return out;
}

std::optional<Interval> interval_for(const Case& wanted, std::span<const Residual> known,
                                     double level, const Growth& growth) {
  const auto basis = basis_for(wanted, known, level);
  if (!basis) return std::nullopt;
  return interval_on(*basis, wanted, growth);
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
