// A large plan cut into columns: the nodes that stand at one place of every pipeline stage. Where
// stages are whole nodes, all columns are alike: a group lies in one column, as its like lies in
// every other, or has the same members in all of them. Ranks and communicators have the numbers
// that Layout gives them. Knows no links.
//
//            column 0   column 1   column 2
//   stage 0   node 0     node 1     node 2     data-parallel groups: along a stage, in all columns
//   stage 1   node 3     node 4     node 5     tensor groups, messages between stages: in a column
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/network/model.hpp"
#include "sim/run/layout.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::sim {

/// Of every column one group. Members count within the column: stage x GPUs of a node + GPU.
struct ColumnGroup {
  workloads::GroupKind kind{};
  std::uint32_t pattern = 0;
  std::vector<std::uint32_t> members;  // as of workloads::groups()
  std::uint32_t first = 0, step = 0;   // its communicator in column 0; to that in the next column
};

/// One group with these members in every column.
struct SpanningGroup {
  workloads::GroupKind kind{};
  std::uint32_t pattern = 0;
  std::vector<std::uint32_t> members;
  std::uint32_t communicator = 0;
};

struct Columns {
  std::int64_t gpus = 1;    // of a node
  std::int64_t stages = 1;  // nodes of a column
  std::int64_t count = 1;
  std::vector<ColumnGroup> within;  // by communicator, as the next
  std::vector<SpanningGroup> spanning;
  std::vector<GroupShape> shapes;                   // by pattern
  std::vector<std::vector<std::uint32_t>> of_kind;  // patterns of each kind, ascending

  std::int64_t ranks() const { return gpus * stages; }  // of a column
  std::int64_t node(std::int64_t stage, std::int64_t column) const {
    return stage * count + column;
  }
  std::int64_t rank(std::uint32_t member, std::int64_t column) const {
    return node(member / gpus, column) * gpus + member % gpus;
  }
  std::vector<std::int64_t> ranks_of(const ColumnGroup& group, std::int64_t column) const;
};

/// None where stages are no whole nodes, or groups neither lie in a column nor have members in all.
std::optional<Columns> columns_of(const LayoutKey&, const topology::Cluster&);

}  // namespace stepcast::sim
