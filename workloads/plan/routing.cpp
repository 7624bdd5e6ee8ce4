#include "workloads/plan/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/check.hpp"
#include "engine/jitter.hpp"

namespace stepcast::workloads {
namespace {

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014) from a seed and a draw.
class Numbers {
 public:
  Numbers(std::uint64_t seed, std::uint64_t draw) : state_(seed) { state_ = next() + draw; }

  std::uint64_t next() {
    std::uint64_t h = state_ += 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
    return h ^ (h >> 31);
  }
  double normal() {
    return engine::normal_quantile((static_cast<double>(next() >> 12) + 0.5) / 4503599627370496.0);
  }
  /// `count` of them less their mean, each with the deviation that `sigma` times one has.
  std::vector<double> centred(std::int64_t count, double sigma) {
    std::vector<double> out(static_cast<std::size_t>(count));
    for (double& z : out) z = sigma * normal();
    const double mean = std::accumulate(out.begin(), out.end(), 0.0) / static_cast<double>(count);
    for (double& z : out) z -= mean;
    return out;
  }

 private:
  std::uint64_t state_;
};

/// Moments of one token's choice among E experts in G groups of n: k of those in L random groups.
/// Var and Cov are of the 0 or 1 that an expert gets.
struct Moments {
  explicit Moments(const ExpertShape& e) {
    const auto experts = static_cast<double>(e.count), k = static_cast<double>(e.per_token);
    const auto groups = static_cast<double>(e.groups), limit = static_cast<double>(e.group_limit);
    const double p = k / experts, open = experts * limit / groups;
    const double two = open > 1 ? k * (k - 1) / (open * (open - 1)) : 0.0;
    variance = p * (1 - p);
    same_group = limit / groups * two - p * p;
    other_group = groups > 1 ? limit * (limit - 1) / (groups * (groups - 1)) * two - p * p : 0.0;
  }
  double variance = 0, same_group = 0, other_group = 0;
};

/// Sums of many tokens' choices are nearly normal: drawn with their exact moments.
std::vector<double> uniform_rows(const ExpertShape& e, std::int64_t tokens, Numbers& numbers) {
  const Moments one(e);
  const auto n = static_cast<double>(tokens);
  const std::int64_t in_group = e.count / e.groups;
  const auto size = static_cast<double>(in_group);
  const double mean = n * static_cast<double>(e.per_token) / static_cast<double>(e.count);
  const double of_group = (one.variance + (size - 1) * one.same_group) / size - one.other_group;
  std::vector<double> groups(1, 0.0);
  if (e.groups > 1) groups = numbers.centred(e.groups, std::sqrt(n * std::max(0.0, of_group)));
  std::vector<double> out;
  for (const double group : groups)
    for (const double own :
         numbers.centred(in_group, std::sqrt(n * std::max(0.0, one.variance - one.same_group))))
      out.push_back(std::max(0.0, mean + group + own));
  return out;
}

double sum_of_profile(double steepness, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += 1.0 / (1.0 + steepness * static_cast<double>(i) / static_cast<double>(count - 1));
  return sum;
}

/// Loads 1 / (1 + s x), x from 0 to 1, in random order: assumed, as no distribution of real runs is
/// published; s so that the first is 1 + max_violation of the mean.
std::vector<double> violating_rows(const Routing& routing, const ExpertShape& e,
                                   std::int64_t tokens, Numbers& numbers) {
  const auto experts = static_cast<double>(e.count);
  const double all = static_cast<double>(tokens * e.per_token);
  if (e.count == 1) return {all};
  double low = 0.0, high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (experts / sum_of_profile(middle, e.count) < 1.0 + routing.max_violation ? low : high) = middle;
  }
  std::vector<double> out;
  const double sum = sum_of_profile(low, e.count);
  for (std::int64_t i = 0; i < e.count; ++i)
    out.push_back(all / sum / (1.0 + low * static_cast<double>(i) / (experts - 1)));
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[numbers.next() % i]);
  return out;
}

}  // namespace

std::vector<double> expert_rows(const Routing& routing, const ExpertShape& e, std::int64_t tokens,
                                std::uint64_t draw) {
  expects(e.count >= 1 && e.per_token >= 1 && tokens >= 0, "tokens and their experts");
  Numbers numbers(routing.seed, draw);
  const auto all = static_cast<double>(tokens * e.per_token);
  switch (routing.kind) {
    case RoutingKind::balanced:
      return std::vector<double>(static_cast<std::size_t>(e.count),
                                 all / static_cast<double>(e.count));
    case RoutingKind::uniform:
      return uniform_rows(e, tokens, numbers);
    case RoutingKind::counts: {
      std::vector<double> out = routing.counts;
      const double sum = std::accumulate(out.begin(), out.end(), 0.0);
      for (double& rows : out) rows *= all / sum;
      return out;
    }
    case RoutingKind::max_violation:
      return violating_rows(routing, e, tokens, numbers);
  }
  throw BrokenPromise("unknown routing");
}

double fullest_part(const Routing& routing, const ExpertShape& e, std::int64_t parts,
                    std::int64_t tokens, std::int64_t draws) {
  expects(parts >= 1 && e.count % parts == 0, "equal parts of the experts");
  if (parts == 1 || routing.kind == RoutingKind::balanced) return 1.0;
  const bool drawn = routing.kind != RoutingKind::counts;
  const std::int64_t times = drawn ? std::max<std::int64_t>(draws, 1) : 1;
  const std::ptrdiff_t each = e.count / parts;
  double sum = 0.0;
  for (std::int64_t draw = 0; draw < times; ++draw) {
    const auto rows = expert_rows(routing, e, tokens, static_cast<std::uint64_t>(draw));
    double most = 0.0, all = 0.0;
    for (auto at = rows.begin(); at != rows.end(); at += each) {
      const double part = std::accumulate(at, at + each, 0.0);
      most = std::max(most, part);
      all += part;
    }
    sum += most * static_cast<double>(parts) / all;
  }
  return sum / static_cast<double>(times);
}

CappedRows capped_rows(const Routing& routing, const ExpertShape& e, std::int64_t parts,
                       std::int64_t tokens, std::int64_t sources, std::int64_t room,
                       std::int64_t draws) {
  expects(parts >= 1 && e.count % parts == 0, "equal parts of the experts");
  const bool random = routing.kind == RoutingKind::uniform;
  const bool drawn = random || routing.kind == RoutingKind::max_violation;
  const std::int64_t from = random ? std::min<std::int64_t>(sources, 8) : 1;
  const std::int64_t times = drawn ? std::max<std::int64_t>(draws, 1) : 1;
  const auto sent = static_cast<double>(tokens * e.per_token * from);
  const std::ptrdiff_t each = e.count / parts;
  CappedRows out{0.0, 0.0};
  for (std::int64_t draw = 0; draw < times; ++draw) {
    std::vector<double> taken(static_cast<std::size_t>(e.count), 0.0);
    for (std::int64_t source = 0; source < from; ++source) {
      const auto rows =
          expert_rows(routing, e, tokens, static_cast<std::uint64_t>(draw * from + source));
      for (std::size_t i = 0; i < taken.size(); ++i)
        taken[i] += std::min(rows[i], static_cast<double>(room));
    }
    double most = 0.0;
    for (auto at = taken.begin(); at != taken.end(); at += each)
      most = std::max(most, std::accumulate(at, at + each, 0.0));
    out.kept += std::accumulate(taken.begin(), taken.end(), 0.0) / sent;
    out.fullest += most * static_cast<double>(parts) / sent;
  }
  out.kept /= static_cast<double>(times);
  out.fullest /= static_cast<double>(times);
  return out;
}

}  // namespace stepcast::workloads
