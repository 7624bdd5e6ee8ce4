#include "sim/design/bill.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "sim/goal/band.hpp"
#include "topology/fabric_layout.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* tier_names[] = {"leaf", "spine", "core", "supercore"};

void price(BillLine& line, const Part* part, double factor) {
  line.unpriced = part == nullptr || !part->price;
  if (line.unpriced) return;
  line.kind = part->kind;
  const Listed& listed = *part->price;
  line.usd = scaled({listed.low, listed.value, listed.high}, factor);
  line.source = listed.source;
  line.date = listed.date;
}

class BillMaker {
 public:
  BillMaker(const Scenario& s, const PartList& parts, const PriceFactors& factors, Watts gpu)
      : s_(s), parts_(parts), factors_(factors), power_(power_at_work(s, gpu)) {}

  Bill make() {
    nodes();
    if (s_.nodes > 1) network();
    racks();
    building();
    return std::move(bill_);
  }

 private:
  BillLine& line(std::string item, std::int64_t count) {
    return bill_.lines.emplace_back(BillLine{.item = std::move(item), .count = count});
  }

  void nodes() {
    BillLine& nodes = line(s_.node.name, s_.nodes);
    nodes.power = power_.gpus + power_.nodes;
    price(nodes, parts_.node(s_.node.name), factors_.nodes);
  }

  void network() {
    topology::FabricSpec own = s_.fabric;
    own.job = {};
    const auto layout = topology::lay_out_fabric(own, s_.node, s_.nodes, s_.origin);
    const BytesPerSecond link = own.link.value > 0 ? own.link : s_.node.nic;
    const auto& tiers = layout.tiers;
    std::int64_t cables = s_.nodes * s_.node.nics, ends = cables;  // of NICs their own part
    for (std::size_t t = 0; t < tiers.size(); ++t) {
      const std::int64_t count = tiers[t].blocks * tiers[t].top;
      BillLine& switches = line(
          fmt::format("{} switch of {} ports ({})", tier_names[t], own.ports, own.name), count);
      switches.power = own.switch_power * static_cast<double>(count);
      price(switches, parts_.of_switch(own.ports, link), factors_.switches);
      switches_ += count;
      const std::string from = t == 0 ? "node" : tier_names[t - 1];
      price(line(fmt::format("cable, {} to {}", from, tier_names[t]), cables), parts_.cable(link),
            factors_.cables);
      if (t + 1 == tiers.size()) break;
      cables = count * tiers[t + 1].choices * tiers[t + 1].cables;
      ends += 2 * cables;
    }
    BillLine& transceivers = line("transceiver in a switch", ends);
    transceivers.power = own.transceiver_power * static_cast<double>(ends);
    transceivers.source = "in the price of its cable";
  }

  void racks() {
    const auto fit = [&](Watts one, std::int64_t units) {
      const double by_power = one.value > 0 ? parts_.rack_power / one : 1e9;
      return std::max<std::int64_t>(1, std::min(units, static_cast<std::int64_t>(by_power + 1e-9)));
    };
    Watts node = s_.node.max_power;
    if (node.value == 0)
      node = (power_.gpus + power_.nodes) * (1.0 / static_cast<double>(s_.nodes));
    const std::int64_t in_a_rack = s_.node.trays() > 1 ? 1 : fit(node, parts_.rack_units);
    bill_.racks = ceil_div(s_.nodes, in_a_rack);
    if (switches_ > 0)
      bill_.racks += ceil_div(switches_, fit(s_.fabric.switch_power, parts_.rack_units));
    BillLine& racks = line("rack", bill_.racks);
    racks.source = parts_.facility() != nullptr ? "part of the building" : "no price asked";
  }

  void building() {
    if (const Part* facility = parts_.facility()) price(line(facility->name, s_.gpus), facility, 1);
    if (s_.cost.overhead == 0) return;
    const Band below = bill_.capital();
    BillLine& more = line("storage, spares, installation (cost.overhead)", 1);
    more.usd = scaled(below, s_.cost.overhead);
    more.source = fmt::format("{:g} of the lines above", s_.cost.overhead);
  }

  const Scenario& s_;
  const PartList& parts_;
  const PriceFactors& factors_;
  ClusterPower power_;
  std::int64_t switches_ = 0;
  Bill bill_;
};

}  // namespace

Band BillLine::total() const { return scaled(usd.value_or(Band{}), static_cast<double>(count)); }

Band Bill::capital() const {
  Band sum;
  for (const BillLine& line : lines) sum = sum_of(sum, line.total());
  return sum;
}

Watts Bill::power() const {
  Watts sum{};
  for (const BillLine& line : lines) sum += line.power;
  return sum;
}

bool Bill::priced() const {
  return std::ranges::none_of(lines, [](const BillLine& line) { return line.unpriced; });
}

std::vector<std::string> Bill::unpriced() const {
  std::vector<std::string> out;
  for (const BillLine& line : lines)
    if (line.unpriced) out.push_back(line.item);
  return out;
}

Bill bill_of(const Scenario& s, const PartList& parts, const PriceFactors& factors, Watts gpu) {
  return BillMaker(s, parts, factors, gpu).make();
}

}  // namespace stepcast::sim
