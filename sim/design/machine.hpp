// The machines that a goal may be met with: every node on every fabric in every feasible size, to
// rent or to own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/design/bill.hpp"
#include "sim/design/goal.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

struct Machine {
  Scenario scenario;   // its plan is open
  std::size_t kind{};  // of Machines::bases
};

/// A machine and how it is come by: what a design chooses from.
struct Offer {
  std::size_t machine{};
  Terms terms;
};

/// A machine that no design can use.
struct NoMachine {
  std::string name, why;
};

struct Machines {
  /// Of each node and fabric the scenario once for each framework that may be chosen.
  std::vector<std::vector<Scenario>> bases;
  std::vector<Machine> all;
  std::vector<Offer> offers;
  std::vector<NoMachine> none;  // what the fabric does not hold, what nobody prices
  Accounting accounting;

  /// Of all offers, each once.
  std::vector<Acquisition> ways() const;

  /// The bases of its kind on this machine.
  std::vector<Scenario> bases_of(const Machine&) const;
};

/// `bases`: of a goal's document with a [cluster], a scenario for each framework.
using ReadBases = std::vector<Scenario> (*)(TomlValue document, const Catalogue& catalogue);

/// Sizes that are not said: powers of two, and multiples of the fabric's scalable unit. Throws
/// InputError.
Machines machines_of(const DesignGoal&, const Catalogue&, const PartList&, ReadBases);

/// "64 x dgx-h100, rail-optimized"
std::string name_of(const Scenario&);

/// With a quote's price of its node, where these terms are that.
PartList parts_for(const Scenario&, const Terms&, const PartList&);
/// The scenario with its price: that of the terms, or the bill's.
Scenario priced(const Scenario&, const Terms&, const PartList&, const PriceFactors&);

/// How the peak of the cards bounds a step.
struct PeakRules {
  bool low_precision = false;  // plans may compute in fewer bits than the model's type
  bool counts = true;          // false: tokens may be dropped, nothing is known
};

/// Seconds that no step of this model takes less than: FLOPs of its products and causal attention
/// at the peak of all GPUs, in the type of the fastest that may be tried; 0: not known.
double peak_step_s(const Scenario&, const PeakRules&);

}  // namespace stepcast::sim
