// What a machine is made of: nodes, switches of each tier, cables, transceivers and racks, with
// their power and, of a list of parts, their prices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/design/parts.hpp"
#include "sim/goal/cluster_power.hpp"
#include "sim/goal/whole_run.hpp"

namespace stepcast::sim {

/// Multiples of prices, to ask what depends on them.
struct PriceFactors {
  double rent = 1, nodes = 1, switches = 1, cables = 1, electricity = 1;
};

struct BillLine {
  std::string item;
  std::optional<PartKind> kind{};  // of the part that has a price; none: of another sort
  std::int64_t count = 0;
  Watts power{};                 // of all of them, at work
  std::optional<Band> usd{};     // of one; none: no list says it, or it is part of another line
  std::string source{}, date{};  // of the price; or what it is part of
  bool unpriced = false;         // no list says what it costs

  Band total() const;  // USD of all of them, 0 without a price
};

struct Bill {
  std::vector<BillLine> lines;
  std::int64_t racks = 0;

  Band capital() const;  // the sum of the lines
  Watts power() const;   // the sum of the lines
  bool priced() const;
  std::vector<std::string> unpriced() const;  // items
};

/// Of the scenario's cluster, whose GPUs draw `gpu` each. Power is that of power_at_work(). Racks:
/// nodes and switches as many as rack_power and rack_units allow, an NVLink domain over trays one
/// to itself. `overhead` ([cost]) is a line of its own.
Bill bill_of(const Scenario&, const PartList&, const PriceFactors&, Watts gpu);

}  // namespace stepcast::sim
