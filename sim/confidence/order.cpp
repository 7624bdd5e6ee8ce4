#include "sim/confidence/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "sim/files/text_table.hpp"

namespace stepcast::sim {

Order::Order(std::span<const PairCount> pairs) {
  std::map<std::string, double> of_source;
  for (const PairCount& count : pairs) of_source[count.source] += count.pairs;
  std::erase_if(of_source, [](const auto& entry) { return entry.second < least_pairs; });
  for (const auto& [source, all] : of_source) {
    pairs_ += all;
    if (all > largest_) largest_ = all, largest_source_ = source;
  }
  sources_ = of_source.size();
  struct Sum {
    double right = 0, weight = 0;
  };
  std::map<double, Sum> by_gap;
  for (const PairCount& count : pairs) {
    const auto known = of_source.find(count.source);
    if (known == of_source.end()) continue;
    by_gap[count.gap].right += count.in_order / known->second;
    by_gap[count.gap].weight += count.pairs / known->second;
  }
  for (const auto& [gap, sum] : by_gap) {
    Step step{gap, sum.right / sum.weight, sum.weight};
    // What is less sure than the step before it is one step with it.
    while (!steps_.empty() && steps_.back().probability > step.probability) {
      const Step& before = steps_.back();
      const double weight = before.weight + step.weight;
      step = {before.gap,
              (before.probability * before.weight + step.probability * step.weight) / weight,
              weight};
      steps_.pop_back();
    }
    steps_.push_back(step);
  }
}

double Order::probability(double faster_s, double slower_s) const {
  const double gap = std::log(slower_s / faster_s);
  double out = 0.5;
  if (!(gap > 0)) return out;
  for (const Step& step : steps_)
    if (gap >= step.gap) out = std::max(0.5, step.probability);
  return out;
}

/// Of each plan to be faster than the first.
std::vector<double> Order::odds(std::span<const Contender> plans) const {
  std::vector<double> out;
  for (const Contender& plan : plans) {
    const double first = probability(plans.front().step_s, plan.step_s);
    out.push_back((1 - first) / first);
  }
  return out;
}

std::vector<double> Order::best(std::span<const Contender> plans) const {
  const std::vector<double> odds = this->odds(plans);
  std::vector<std::size_t> likeliest(plans.size());
  std::iota(likeliest.begin(), likeliest.end(), std::size_t{0});
  std::ranges::stable_sort(likeliest, std::greater<>(),
                           [&](std::size_t i) { return plans[i].p_fits; });
  std::vector<double> out(plans.size());
  double all = 0;
  for (std::size_t n = 0; n < likeliest.size(); ++n) {
    all += odds[likeliest[n]];
    // That just so many fit.
    const double next = n + 1 < likeliest.size() ? plans[likeliest[n + 1]].p_fits : 0.0;
    const double these = plans[likeliest[n]].p_fits - next;
    if (!(all > 0)) continue;
    for (std::size_t i = 0; i <= n; ++i) out[likeliest[i]] += these * odds[likeliest[i]] / all;
  }
  return out;
}

std::string Order::origin() const {
  return fmt::format("{} pairs of measured plans of {} sources that weigh alike, {} of them of {}",
                     grouped(static_cast<std::int64_t>(pairs_)), sources_,
                     percent(pairs_ > 0 ? largest_ / pairs_ : 0.0), largest_source_);
}

}  // namespace stepcast::sim
