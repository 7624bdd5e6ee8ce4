// A list of scenarios/parts: what nodes, switches, cables and buildings cost, each with its source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/goal_file.hpp"

namespace stepcast::sim {

enum class PartKind : std::uint8_t { node, switch_, cable, facility };

struct Part {
  PartKind kind{};
  std::string name;        // of a node: that of the catalogue
  std::int64_t ports = 0;  // of a switch
  BytesPerSecond link{};   // of a switch's port, of a cable
  std::optional<Listed> price;
};

struct PartList {
  std::string name;
  std::vector<Part> parts;
  Watts rack_power{};           // that a rack may draw
  std::int64_t rack_units = 0;  // of height; a switch takes one

  const Part* node(const std::string& name) const;
  const Part* of_switch(std::int64_t ports, BytesPerSecond link) const;
  const Part* cable(BytesPerSecond link) const;
  const Part* facility() const;
};

/// Of parts/, or a file of one's own. Throws InputError.
PartList read_parts(const Catalogue& catalogue, const std::string& name, const std::string& where);

}  // namespace stepcast::sim
