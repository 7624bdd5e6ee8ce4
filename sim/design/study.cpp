#include "sim/design/study.hpp"

#include <algorithm>
#include <cmath>

#include "sim/design/odds.hpp"

namespace stepcast::sim {
namespace {

/// A limit with its name.
struct NamedLimit {
  const char* name;
  double DesignLimits::*member;
};
constexpr NamedLimit named_limits[] = {{"deadline", &DesignLimits::days},
                                       {"budget", &DesignLimits::usd},
                                       {"capital", &DesignLimits::capital},
                                       {"power", &DesignLimits::watts},
                                       {"racks", &DesignLimits::racks}};

/// A price with its name; the network's are two.
struct NamedPrice {
  const char* name;
  void (*move)(PriceFactors&, double);
};
constexpr NamedPrice named_prices[] = {
    {"rent", [](PriceFactors& p, double f) { p.rent = f; }},
    {"nodes", [](PriceFactors& p, double f) { p.nodes = f; }},
    {"network", [](PriceFactors& p, double f) { p.switches = p.cables = f; }},
    {"electricity", [](PriceFactors& p, double f) { p.electricity = f; }},
};

bool no_worse(const DesignOutcome& a, const DesignOutcome& b) {
  return a.days <= b.days && a.usd <= b.usd && a.mwh <= b.mwh;
}

class DesignStudy {
 public:
  DesignStudy(Designer& designer, const Machines& machines, const DesignLimits& limits,
              const std::function<void(StepReport&)>& judge, const std::function<bool()>& ended)
      : designer_(designer), machines_(machines), limits_(limits), judge_(judge), ended_(ended) {}

  DesignAnswer run() {
    for (const Aim aim : aims) designer_.scout(aim, limits_);
    for (std::size_t i = 0; i < std::size(aims); ++i) answer(out_.answers[i], aims[i]);
    tally();
    out_.front = front();
    if (!out_.met()) nearest();
    if (out_.met() && !ended_()) {
      by_way();
      sure();
      move_limits();
      move_prices();
    }
    out_.ended = ended_();
    out_.searched = designer_.searched();
    out_.simulated = designer_.simulated();
    return std::move(out_);
  }

 private:
  void answer(AimAnswer& out, Aim aim) {
    out.aim = aim;
    out.choice = designer_.best(aim, limits_);
    out.proven = designer_.proven();
    out.open = designer_.open();
    out.least_open = designer_.least_open();
    judge(out.choice);
    if (!out.choice) return;
    out.odds = odds_of(*out.choice, limits_);
    out.bill = designer_.bill(out.choice->offer, out.choice->report.power_per_gpu);
  }

  /// The bar, and what it says of days and dollars.
  void judge(std::optional<DesignChoice>& choice) {
    if (!choice || !judge_) return;
    judge_(choice->report);
    choice->outcome = designer_.outcome(choice->offer, choice->report);
  }

  void tally() {
    std::vector<std::size_t> answers;
    for (const AimAnswer& one : out_.answers)
      if (one.choice) answers.push_back(one.choice->offer);
    std::vector<std::size_t> counts(num_fates, 0);
    for (std::size_t i = 0; i < machines_.offers.size(); ++i)
      ++counts[static_cast<std::size_t>(designer_.fate(i, limits_, answers))];
    for (std::size_t f = 0; f < num_fates; ++f)
      if (counts[f] > 0) out_.fates.emplace_back(static_cast<Fate>(f), counts[f]);
  }

  std::vector<DesignChoice> front() {
    std::vector<DesignChoice> known = designer_.known(limits_), out;
    std::ranges::stable_sort(known, {}, [](const DesignChoice& c) { return c.outcome.usd; });
    for (const DesignChoice& one : known)
      if (std::ranges::none_of(
              out, [&](const DesignChoice& c) { return no_worse(c.outcome, one.outcome); }))
        out.push_back(one);
    return out;
  }

  /// The first of: without money's limits, without the deadline, without any.
  void nearest() {
    DesignLimits less = limits_;
    less.usd = less.capital = DesignLimits::none;
    out_.without = "budget";
    out_.nearest = designer_.best(Aim::cheapest, less);
    if (!out_.nearest && !ended_()) {
      less = limits_;
      less.days = DesignLimits::none;
      out_.without = "deadline";
      out_.nearest = designer_.best(Aim::cheapest, less);
    }
    if (!out_.nearest && !ended_()) {
      out_.without = "limits";
      out_.nearest = designer_.best(Aim::cheapest, DesignLimits{});
    }
    judge(out_.nearest);
  }

  void by_way() {
    for (const Acquisition& way : machines_.ways()) {
      if (ended_()) return;
      DesignLimits only = limits_;
      only.only = way;
      WayAnswer one{way, designer_.best(Aim::cheapest, only)};
      if (!one.choice && !ended_()) {
        only.usd = only.capital = DesignLimits::none;
        one.choice = designer_.best(Aim::cheapest, only);
        one.above_budget = one.choice.has_value();
      }
      judge(one.choice);
      out_.by_way.push_back(std::move(one));
    }
  }

  /// The bar of the cheapest says how much room to leave; what that finds has a bar of its own.
  void sure() {
    const AimAnswer& cheapest = out_.answers.front();
    if (!cheapest.odds || !judge_) return;
    if (*cheapest.odds >= wanted_odds) {
      out_.sure = cheapest.choice;
    } else {
      DesignLimits room = limits_;
      const double factor = step_factor(cheapest.choice->report, wanted_odds);
      room.days /= factor;
      room.usd /= factor;
      out_.sure = designer_.best(Aim::cheapest, room);
      judge(out_.sure);
    }
    if (out_.sure) out_.sure_odds = odds_of(*out_.sure, limits_);
  }

  void move_limits() {
    for (const NamedLimit& limit : named_limits) {
      const double from = limits_.*limit.member;
      if (!std::isfinite(from)) continue;
      for (const double sign : {-1.0, 1.0}) {
        if (ended_()) return;
        DesignLimits moved = limits_;
        double step = sign * moved_limit * from;
        if (limit.member == &DesignLimits::racks)
          step = sign * std::max(1.0, std::round(std::abs(step)));
        const double to = std::max(0.0, from + step);
        moved.*limit.member = to;
        LimitMove one{limit.name, from, to, {}, {}};
        one.cheapest = designer_.best(Aim::cheapest, moved);
        one.fastest = designer_.best(Aim::fastest, moved);
        out_.limits.push_back(std::move(one));
      }
    }
  }

  void move_prices() {
    for (const NamedPrice& price : named_prices)
      for (const double factor : {1 - moved_price, 1 + moved_price}) {
        if (ended_()) return;
        PriceFactors factors;
        price.move(factors, factor);
        out_.prices.push_back(
            {price.name, factor, designer_.best(Aim::cheapest, limits_, factors)});
      }
  }

  Designer& designer_;
  const Machines& machines_;
  const DesignLimits& limits_;
  const std::function<void(StepReport&)>& judge_;
  const std::function<bool()>& ended_;
  DesignAnswer out_;
};

}  // namespace

const DesignChoice* DesignAnswer::cheapest_to(Tenure tenure) const {
  for (const WayAnswer& one : by_way)
    if (one.way == Acquisition{tenure} && one.choice) return &*one.choice;
  return nullptr;
}

DesignAnswer study_design(Designer& designer, const Machines& machines, const DesignLimits& limits,
                          const std::function<void(StepReport&)>& judge,
                          const std::function<bool()>& ended) {
  return DesignStudy(designer, machines, limits, judge, ended).run();
}

}  // namespace stepcast::sim
