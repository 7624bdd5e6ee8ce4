// engine::fold() of a system over columns, without the system: columns that switches load alike are
// taken for one, with their number, and what is left is folded as the engine folds. The outcome is
// the same, number by number.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"
#include "sim/run/column_links.hpp"
#include "sim/run/columns.hpp"
#include "topology/cluster.hpp"

namespace stepcast::sim {

/// As of engine::Fold: ranks, communicators and links, no works and no times.
struct ColumnFold {
  engine::System system;
  std::vector<std::int64_t> multiplicity;
};
ColumnFold fold_columns(const Columns&, const ColumnLinks&, const topology::Cluster&);

}  // namespace stepcast::sim
