#include "sim/design/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/check.hpp"
#include "topology/fabric_layout.hpp"
#include "topology/node_layout.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

/// Nodes whose NICs share a leaf.
std::int64_t scalable_unit(const Scenario& s, std::int64_t most) {
  if (most < 2) return 1;
  try {
    const auto layout = topology::lay_out_fabric(s.fabric, s.node, most, s.origin);
    return std::max<std::int64_t>(1, layout.unit_nodes / layout.trays);
  } catch (const InputError&) {
    return 1;  // larger than the fabric holds: powers of two alone
  }
}

std::set<std::int64_t> feasible_sizes(const Scenario& s, std::int64_t most_gpus) {
  const std::int64_t most = most_gpus / s.node.gpus;
  std::set<std::int64_t> out;
  for (std::int64_t n = 1; n <= most; n *= 2) out.insert(n);
  const std::int64_t unit = scalable_unit(s, most);
  for (std::int64_t n = unit; n <= most; n += unit) out.insert(n);
  return out;
}

/// Why it cannot be built; empty: it can.
std::string not_built(const Scenario& s) {
  try {
    topology::lay_out_node(s.node, s.origin);
    topology::lay_out_fabric(s.fabric, s.node, s.nodes, s.origin);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

void put_on(Scenario& s, const Scenario& machine) {
  s.node.nics = machine.node.nics;
  s.fabric.oversubscription = machine.fabric.oversubscription;
  s.nodes = machine.nodes;
  s.gpus = machine.gpus;
}

class MachineMaker {
 public:
  MachineMaker(const DesignGoal& goal, const Catalogue& catalogue, const PartList& parts)
      : goal_(goal), catalogue_(catalogue), parts_(parts) {
    out_.accounting = goal.accounting;
    if (!goal.quotes.empty()) quotes_ = read_quotes(catalogue, goal.quotes, goal.document.where);
  }

  void add_kind(std::vector<Scenario> bases, bool first_fabric) {
    const std::size_t kind = out_.bases.size();
    out_.bases.push_back(std::move(bases));
    const Scenario& base = out_.bases.back().front();
    std::vector<std::int64_t> nics = goal_.nics;
    if (nics.empty()) nics = {base.node.nics};
    for (const std::int64_t n : nics) {
      if (n > base.node.nics) continue;
      for (const double narrow : goal_.oversubscription) {
        Scenario s = base;
        s.node.nics = n;
        s.fabric.oversubscription = narrow;
        const bool to_rent =
            first_fabric && n == nics.front() && narrow == goal_.oversubscription.front();
        add_sizes(std::move(s), kind, to_rent);
      }
    }
  }

  Machines take() { return std::move(out_); }

 private:
  void add_sizes(Scenario s, std::size_t kind, bool to_rent) {
    std::set<std::int64_t> sizes(goal_.sizes.begin(), goal_.sizes.end());
    if (sizes.empty()) sizes = feasible_sizes(s, goal_.most_gpus);
    for (const std::int64_t nodes : sizes) {
      s.nodes = nodes;
      s.gpus = nodes * s.node.gpus;
      if (const std::string why = not_built(s); !why.empty()) {
        out_.none.push_back({name_of(s), why});
        continue;
      }
      add_offers(s, kind, to_rent);
    }
  }

  void add_offers(const Scenario& s, std::size_t kind, bool to_rent) {
    std::vector<Terms> all;
    for (const Tenure way : goal_.ways) {
      if (way != Tenure::own && !to_rent) continue;  // the fabric is the owner's choice
      if (way == Tenure::own && s.nodes == 1 && !to_rent) continue;  // one node has none
      const auto listed = terms_of(s, way);
      if (listed.empty() && way == Tenure::rent)
        out_.none.push_back({name_of(s) + ", rent", "no list has a rent of " + s.node.gpu.name});
      for (const Terms& terms : listed) {
        const std::string why = unpriced(s, terms);
        if (why.empty())
          all.push_back(terms);
        else
          out_.none.push_back({name_of(s) + ", " + words_of(terms.way), why});
      }
    }
    if (all.empty()) return;
    for (const Terms& terms : all) out_.offers.push_back({out_.all.size(), terms});
    out_.all.push_back({s, kind});
  }

  /// What lists say, then each quote.
  std::vector<Terms> terms_of(const Scenario& s, Tenure way) const {
    std::vector<Terms> out;
    const Cost& cost = s.cost;
    if (way == Tenure::rent && cost.price.value > 0)
      out.push_back({{way},
                     0,
                     {cost.price_low.value, cost.price.value, cost.price_high.value},
                     cost.source,
                     cost.date});
    if (way == Tenure::contract)
      for (const ListedContract& one : listed_contracts(catalogue_, s.node.gpu.name, s.origin))
        out.push_back({{way, one.years},
                       one.upfront,
                       {one.price.low, one.price.value, one.price.high},
                       one.price.source,
                       one.price.date});
    if (way == Tenure::own) out.push_back({{way}, 0, {}, "bill of parts/" + parts_.name});
    for (const Quote& quote : quotes_)
      if (quote.terms.way.tenure == way &&
          (quote.node == s.node.name || quote.gpu == s.node.gpu.name))
        out.push_back(quote.terms);
    return out;
  }

  /// Why it cannot be bought; empty: it can.
  std::string unpriced(const Scenario& s, const Terms& terms) const {
    if (terms.way.tenure != Tenure::own) return {};
    const auto items = bill_of(s, parts_for(s, terms, parts_), {}, s.node.gpu.idle).unpriced();
    if (items.empty()) return {};
    return fmt::format("parts/{} has no price of {}", parts_.name, fmt::join(items, ", "));
  }

  const DesignGoal& goal_;
  const Catalogue& catalogue_;
  const PartList& parts_;
  std::vector<Quote> quotes_;
  Machines out_;
};

}  // namespace

std::string name_of(const Scenario& s) {
  std::string out = fmt::format("{} x {}", s.nodes, s.node.name);
  if (s.nodes == 1) return out;
  out += fmt::format(", {}", s.fabric.name);
  if (s.fabric.oversubscription != 1) out += fmt::format(" {:g}:1", s.fabric.oversubscription);
  return out + fmt::format(", {} NICs", s.node.nics);
}

Machines machines_of(const DesignGoal& goal, const Catalogue& catalogue, const PartList& parts,
                     ReadBases read) {
  MachineMaker maker(goal, catalogue, parts);
  for (const TomlValue& node : goal.nodes)
    for (const TomlValue& fabric : goal.fabrics) {
      TomlValue document = goal.document;
      set_path(document, "cluster.node", node);
      set_path(document, "cluster.nodes", {std::int64_t{1}, node.where});
      set_path(document, "cluster.fabric", fabric);
      maker.add_kind(read(std::move(document), catalogue), &fabric == goal.fabrics.data());
    }
  return maker.take();
}

std::vector<Scenario> Machines::bases_of(const Machine& machine) const {
  std::vector<Scenario> out = bases[machine.kind];
  for (Scenario& s : out) put_on(s, machine.scenario);
  return out;
}

std::vector<Acquisition> Machines::ways() const {
  std::vector<Acquisition> out;
  for (const Offer& offer : offers)
    if (std::ranges::find(out, offer.terms.way) == out.end()) out.push_back(offer.terms.way);
  std::ranges::stable_sort(out, {},
                           [](const Acquisition& way) { return std::pair(way.tenure, way.years); });
  return out;
}

PartList parts_for(const Scenario& s, const Terms& terms, const PartList& parts) {
  if (terms.way.tenure != Tenure::own || terms.way.quote.empty()) return parts;
  PartList out = parts;
  const Band& price = terms.price;
  std::erase_if(out.parts, [&](const Part& part) {
    return part.kind == PartKind::node && part.name == s.node.name;
  });
  out.parts.push_back(
      {.kind = PartKind::node,
       .name = s.node.name,
       .price = Listed{price.low, price.value, price.high, terms.source, terms.date}});
  return out;
}

Scenario priced(const Scenario& scenario, const Terms& terms, const PartList& parts,
                const PriceFactors& factors) {
  Scenario s = scenario;
  Cost& cost = s.cost;
  cost.own = terms.way.tenure == Tenure::own;
  cost.electricity = cost.electricity * factors.electricity;
  cost.source = terms.source;
  cost.date = terms.date;
  if (!cost.own) {
    cost.price = UsdPerHour(terms.price.value * factors.rent);
    cost.price_low = UsdPerHour(terms.price.low * factors.rent);
    cost.price_high = UsdPerHour(terms.price.high * factors.rent);
    return s;
  }
  const PartList own = parts_for(s, terms, parts);
  const Band capital = bill_of(s, own, factors, s.node.gpu.idle).capital();
  const auto gpus = static_cast<double>(s.gpus);
  cost.capex = Usd(capital.value / gpus);
  cost.capex_low = Usd(capital.low / gpus);
  cost.capex_high = Usd(capital.high / gpus);
  cost.overhead = 0;  // a line of the bill
  return s;
}

double peak_step_s(const Scenario& s, const PeakRules& rules) {
  const topology::GpuSpec& gpu = s.node.gpu;
  FlopsPerSecond peak = gpu.tensor_peak;
  if (rules.low_precision) peak = std::max({peak, gpu.fp8_peak, gpu.fp4_peak});
  if (!rules.counts || peak.value <= 0) return 0;
  const std::int64_t tokens = s.global_batch * s.batch.sequence;
  const Flops flops = std::min(workloads::model_flops(s.model, tokens, s.batch.sequence),
                               workloads::causal_model_flops(s.model, tokens, s.batch.sequence));
  return flops.value / (peak.value * static_cast<double>(s.gpus));
}

}  // namespace stepcast::sim
