#include "sim/design/parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

constexpr std::array<std::pair<const char*, PartKind>, 4> part_kind_names{{
    {"node", PartKind::node},
    {"switch", PartKind::switch_},
    {"cable", PartKind::cable},
    {"facility", PartKind::facility},
}};

/// "310000 USD" or [low, usual, high]; none: the part has no price.
std::optional<Listed> read_price(TableReader& table) {
  if (table.value("price") == nullptr) return std::nullopt;
  Listed out = price_range<Usd>(table, "price");
  out.source = table.required("source", table.text("source"));
  out.date = table.required("date", table.text("date"));
  return out;
}

Part read_part_of_list(const TomlValue& value) {
  TableReader table(value, "part");
  Part out;
  out.kind = table.required("kind", table.choice("kind", part_kind_names));
  out.name = table.required("name", table.text("name"));
  if (out.kind == PartKind::switch_) out.ports = table.required("ports", table.integer("ports"));
  if (out.kind == PartKind::switch_ || out.kind == PartKind::cable)
    out.link = table.required("link", table.quantity<BytesPerSecond>("link"));
  out.price = read_price(table);
  table.finish();
  return out;
}

template <class Fits>
const Part* first_part(const PartList& list, PartKind kind, Fits fits) {
  for (const Part& part : list.parts)
    if (part.kind == kind && fits(part)) return &part;
  return nullptr;
}

}  // namespace

const Part* PartList::node(const std::string& wanted) const {
  return first_part(*this, PartKind::node, [&](const Part& p) { return p.name == wanted; });
}

const Part* PartList::of_switch(std::int64_t ports, BytesPerSecond link) const {
  return first_part(*this, PartKind::switch_,
                    [&](const Part& p) { return p.ports == ports && p.link == link; });
}

const Part* PartList::cable(BytesPerSecond link) const {
  return first_part(*this, PartKind::cable, [&](const Part& p) { return p.link == link; });
}

const Part* PartList::facility() const {
  return first_part(*this, PartKind::facility, [](const Part&) { return true; });
}

PartList read_parts(const Catalogue& catalogue, const std::string& name, const std::string& where) {
  TableReader table(catalogue.entry("parts", name, where), "");
  PartList out;
  out.name = name;
  out.rack_power = table.required("rack_power", table.quantity<Watts>("rack_power"));
  out.rack_units = table.required("rack_units", table.integer("rack_units"));
  table.value("sources");
  const TomlValue* parts = table.required("part", table.value("part"));
  if (parts->array() == nullptr) table.fail("part", "parts are a list of tables", "[[part]]");
  for (const TomlValue& one : *parts->array()) out.parts.push_back(read_part_of_list(one));
  table.finish();
  return out;
}

}  // namespace stepcast::sim
