// The links that can matter to a step over columns: those that LinkPicture finds over all
// communicators, told once for all columns, and one by one only where switches add some.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/units.hpp"
#include "sim/network/links/even_loads.hpp"
#include "sim/network/model.hpp"
#include "sim/run/columns.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

/// A group: its number in Columns::within, or after those in Columns::spanning.
struct GroupUse {
  std::uint32_t group = 0;
  std::uint32_t column = 0;  // sampled, of a group within one; 0 where that is said beside
  double weight = 0.0;       // as engine::LinkLoad::weight

  friend bool operator==(const GroupUse&, const GroupUse&) = default;
};

/// Links that the same communicators load with the same weights: the narrowest stands for all.
struct ColumnLink {
  topology::LinkId first = 0;
  BytesPerSecond capacity{};
  std::vector<GroupUse> uses;  // by communicator
};

/// The columns that are looked at, by their numbers: all, or of each run of `period` the first two,
/// of which the second stands for the rest.
struct SampledColumns {
  std::int64_t period = 1;
  std::int64_t all = 0;

  std::int64_t size() const { return period > 1 ? all / period * 2 : all; }
  std::int64_t column(std::int64_t sample) const {
    return period > 1 ? sample / 2 * period + sample % 2 : sample;
  }
  /// That a column is, or is one of the rest of.
  std::int64_t sample(std::int64_t column) const {
    return period > 1 ? column / period * 2 + std::min<std::int64_t>(1, column % period) : column;
  }
  std::int64_t count(std::int64_t sample) const {
    return period > 1 && sample % 2 == 1 ? period - 1 : 1;
  }
};

struct ColumnLinks {
  SampledColumns columns;           // of which the rest counts the samples
  std::vector<ColumnLink> of_each;  // column has its like; here that of column 0
  std::vector<ColumnLink> of_some;  // columns, too: between switches; the first of any column
  /// A link of one column: of of_some, counted after those of of_each; or of of_each itself, where
  /// switches have a narrower one that the same communicators load.
  struct Own {
    std::uint32_t column = 0, link = 0;
    topology::LinkId first = 0;
    BytesPerSecond capacity{};
  };
  std::vector<Own> own;                // by column and link, each once
  std::vector<ColumnLink> of_several;  // columns
  std::vector<ColumnLink> of_all;      // loaded by spanning groups alone
};

/// How a group moves bytes: those of one flow per byte, and the fastest of its transfers.
struct GroupFlow {
  Movement movement;
  double unit = 1.0, fastest = 0.0;
};

class ColumnLinkFinder {
 public:
  /// All are borrowed.
  ColumnLinkFinder(const Columns& columns, const topology::Cluster& cluster,
                   const topology::StaticRouter& router, const NetworkModel& network,
                   const EvenLoads& even);

  /// Layout::unit_of(); none where the movement is not known here.
  std::optional<double> unit_of(const Movement&) const;
  /// `flows`: by group. None where something is not known here.
  std::optional<ColumnLinks> find(const std::vector<GroupFlow>& flows) const;

 private:
  struct Picture;
  EvenGroup even_group(const SpanningGroup&) const;
  bool add_within(std::uint32_t group, const GroupFlow&, Picture&) const;
  bool add_spanning(std::uint32_t group, const GroupFlow&, Picture&) const;
  SampledColumns sampled(const Picture&) const;
  void keep_in_columns(const Picture&, const std::vector<GroupFlow>&, ColumnLinks&) const;
  void keep_between(const Picture&, const std::vector<GroupFlow>&, ColumnLinks&) const;
  template <class Use>
  void each_way(const Picture&, const SampledColumns&, Use use) const;

  const Columns& columns_;
  const topology::Cluster& cluster_;
  const topology::StaticRouter& router_;
  const NetworkModel& network_;
  const EvenLoads& even_;
  topology::LinkId between_ = 0;  // the first link between switches
};

}  // namespace stepcast::sim
