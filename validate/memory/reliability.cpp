#include "validate/memory/reliability.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::validate {

std::vector<FitFact> fit_facts(const std::vector<PublishedResult>& results) {
  std::vector<FitFact> out;
  for (const PublishedResult& r : results)
    if (!r.aside && r.predicted_s)
      out.push_back({r.row.source_key(), p_fits(r), !r.row.ran_out_of_memory});
  return out;
}

std::vector<ReliabilityBin> reliability(std::vector<FitFact> facts) {
  constexpr double edges[] = {0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0};
  std::ranges::sort(facts, {}, &FitFact::p_fits);
  std::vector<ReliabilityBin> out;
  std::vector<std::size_t> fitted;  // of each
  auto next = facts.begin();
  double from = 0;
  for (const double to : edges) {
    const auto end = std::find_if(next, facts.end(),
                                  [&](const FitFact& f) { return f.p_fits >= to && to < 1.0; });
    const bool join = !out.empty() && out.back().facts < least_facts;
    if (!join) out.push_back({.from = from}), fitted.push_back(0);
    ReliabilityBin& bin = out.back();
    bin.to = to;
    for (; next != end; ++next) {
      ++bin.facts;
      bin.forecast += next->p_fits;  // a sum until all are there
      if (next->fitted) ++fitted.back();
    }
    from = to;
  }
  if (out.size() > 1 && out.back().facts < least_facts) {
    ReliabilityBin& before = out[out.size() - 2];
    before.to = out.back().to;
    before.facts += out.back().facts;
    before.forecast += out.back().forecast;
    fitted[fitted.size() - 2] += fitted.back();
    out.pop_back(), fitted.pop_back();
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    ReliabilityBin& bin = out[i];
    if (bin.facts == 0) continue;
    const auto n = static_cast<double>(bin.facts);
    bin.forecast /= n;
    bin.fitted = static_cast<double>(fitted[i]) / n;
    const ShareInterval ends = wilson_interval(fitted[i], bin.facts);
    bin.low = ends.low, bin.high = ends.high;
  }
  return out;
}

double brier_score(const std::vector<FitFact>& facts) {
  if (facts.empty()) return 0;
  double sum = 0;
  for (const FitFact& f : facts) sum += std::pow(f.p_fits - (f.fitted ? 1.0 : 0.0), 2);
  return sum / static_cast<double>(facts.size());
}

ShareInterval wilson_interval(std::size_t k, std::size_t n) {
  expects(k <= n && n > 0, "a share of something");
  constexpr double z = 1.6448536;  // of 90 %, two-sided
  const auto all = static_cast<double>(n);
  const double share = static_cast<double>(k) / all, square = z * z / all;
  const double middle = (share + square / 2) / (1 + square);
  const double half = z * std::sqrt(share * (1 - share) / all + square / (4 * all)) / (1 + square);
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

}  // namespace stepcast::validate
