// How the groups of a plan lie on a cluster: communicators, their shapes, the links that they load.
// Follows from degrees and mapping alone, so that steps which differ in batch, precision or
// software share it. Knows no times.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/fold.hpp"
#include "engine/system.hpp"
#include "sim/network/links/group_links.hpp"
#include "sim/network/links/load_list.hpp"
#include "sim/network/links/picture.hpp"
#include "sim/network/model.hpp"
#include "sim/program/cache.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// What a layout depends on beside its cluster.
struct LayoutKey {
  workloads::ParallelPlan degrees;  // of the plan; what does not move ranks or groups is left out
  std::uint32_t kinds = 0;          // a bit for every GroupKind in use

  friend bool operator==(const LayoutKey&, const LayoutKey&) = default;
};
LayoutKey layout_key(const workloads::ParallelPlan&, const workloads::StepProgram&);

/// The way in which groups of one kind and pattern move bytes.
struct Movement {
  workloads::GroupKind group{};
  std::uint32_t pattern = 0;
  Delivery delivery{};

  friend auto operator<=>(const Movement&, const Movement&) = default;
};

class Layout {
 public:
  /// `cluster` and `network` are borrowed.
  Layout(const LayoutKey&, const topology::Cluster&, const NetworkModel&);

  /// Ranks, communicators and slots; no loads and no links.
  const engine::System& groups() const { return groups_; }
  workloads::GroupKind kind_of(std::size_t communicator) const { return kinds_[communicator]; }
  /// By pattern.
  const std::vector<GroupShape>& shapes() const { return shapes_; }
  const std::vector<std::uint32_t>& patterns_of(workloads::GroupKind kind) const {
    return patterns_of_kind_[static_cast<std::size_t>(kind)];
  }

  /// Bytes of one flow per byte of the collective: what moves through the busiest end.
  double unit_of(const Movement&) const;
  /// Loads of all communicators, each moving bytes as the movement of its kind and pattern says;
  /// every kind and pattern has one.
  std::shared_ptr<const LinkPicture> picture_of(const std::vector<Movement>&) const;
  /// Of a system with the ranks and groups of this layout.
  std::shared_ptr<const engine::Classes> classes_of(const engine::System&) const;

 private:
  std::vector<LinkLoad> loads_of(const Movement&, std::size_t communicator) const;
  std::size_t first_of(const Movement&) const;
  std::vector<std::uint32_t> list_loads(const std::vector<Movement>&, LoadList&) const;

  const topology::Cluster& cluster_;
  const NetworkModel& network_;
  engine::System groups_;
  std::vector<workloads::GroupKind> kinds_;  // by communicator
  std::vector<GroupShape> shapes_;
  std::vector<std::vector<std::uint32_t>> patterns_of_kind_;  // each ascending
  struct Memory {
    Cache<Movement, double> units;
    Cache<std::vector<Movement>, LinkPicture> pictures;
    Cache<engine::Likeness, engine::Classes> classes;
  };
  std::unique_ptr<Memory> memory_;
  engine::Likeness likeness_of_groups_;
};

/// The layouts of one cluster and network, made when they are first asked for.
class Layouts {
 public:
  /// Both are borrowed.
  Layouts(const topology::Cluster& cluster, const NetworkModel& network);
  std::shared_ptr<const Layout> of(const LayoutKey&) const;

 private:
  const topology::Cluster& cluster_;
  const NetworkModel& network_;
  mutable Cache<LayoutKey, Layout> layouts_;
};

}  // namespace stepcast::sim
