#include "sim/run/columns.hpp"

#include <algorithm>
#include <map>

#include "sim/network/links/group_links.hpp"

namespace stepcast::sim {
namespace {

using workloads::GroupKind;

class ColumnsOfPlan {
 public:
  ColumnsOfPlan(const workloads::ParallelPlan& plan, const topology::Cluster& cluster)
      : plan_(plan), cluster_(cluster) {
    out_.gpus = cluster.node().gpus;
    out_.stages = plan.pipeline;
    out_.count = plan.copies() * plan.tensor / out_.gpus;
    out_.of_kind.resize(workloads::num_group_kinds);
  }

  bool even() const {
    return plan_.copies() * plan_.tensor % out_.gpus == 0 && out_.count > 1 &&
           out_.gpus % plan_.tensor == 0 && cluster_.num_nodes() >= out_.stages * out_.count;
  }

  /// Whether groups of this kind are known.
  bool add(GroupKind kind) {
    switch (kind) {
      case GroupKind::tensor:
      case GroupKind::tensor_ring:
        return add_runs(kind, 1, plan_.tensor);
      case GroupKind::context:
      case GroupKind::context_ring:
        return out_.gpus % (plan_.tensor * plan_.context) == 0 &&
               add_runs(kind, plan_.tensor, plan_.context);
      case GroupKind::data:
        return add_data();
      case GroupKind::world:
        return add_world();
      case GroupKind::pipeline_forward:
        return add_neighbours(kind, true);
      case GroupKind::pipeline_backward:
        return add_neighbours(kind, false);
      case GroupKind::embedding:
        return add_first_and_last();
      case GroupKind::shard:
      case GroupKind::replica:
      case GroupKind::expert:
      case GroupKind::expert_tensor:
      case GroupKind::expert_data:
      case GroupKind::mirror:
        return false;
    }
    return false;
  }

  Columns take() {
    for (auto& patterns : out_.of_kind) std::ranges::sort(patterns);
    return std::move(out_);
  }

 private:
  std::uint32_t pattern_of(GroupKind kind, const GroupShape& shape) {
    const auto [at, added] =
        patterns_.try_emplace(shape, static_cast<std::uint32_t>(out_.shapes.size()));
    if (added) out_.shapes.push_back(shape);
    auto& known = out_.of_kind[static_cast<std::size_t>(kind)];
    if (std::ranges::find(known, at->second) == known.end()) known.push_back(at->second);
    return at->second;
  }

  /// `first` of its kind, in column 0.
  void add_group(GroupKind kind, std::vector<std::uint32_t> members, std::int64_t first,
                 std::int64_t step) {
    ColumnGroup group{kind, 0, std::move(members), next_ + static_cast<std::uint32_t>(first),
                      static_cast<std::uint32_t>(step)};
    group.pattern = pattern_of(kind, shape_of(cluster_, kind, out_.ranks_of(group, 0)));
    out_.within.push_back(std::move(group));
  }

  /// Runs of `count` ranks, `stride` apart, within nodes.
  bool add_runs(GroupKind kind, std::int64_t stride, std::int64_t count) {
    const std::int64_t block = stride * count, per_node = out_.gpus / count;
    for (std::int64_t s = 0; s < out_.stages; ++s)
      for (std::int64_t i = 0; i < per_node; ++i) {
        const std::int64_t first = s * out_.gpus + i / stride * block + i % stride;
        std::vector<std::uint32_t> members;
        for (std::int64_t m = 0; m < count; ++m)
          members.push_back(static_cast<std::uint32_t>(first + m * stride));
        add_group(kind, std::move(members), s * out_.count * per_node + i, per_node);
      }
    next_ += static_cast<std::uint32_t>(out_.stages * out_.count * per_node);
    return true;
  }

  bool add_data() {
    for (std::int64_t s = 0; s < out_.stages; ++s)
      for (std::int64_t t = 0; t < plan_.tensor; ++t) {
        SpanningGroup group{GroupKind::data, 0, {}, next_++};
        for (std::int64_t g = t; g < out_.gpus; g += plan_.tensor)
          group.members.push_back(static_cast<std::uint32_t>(s * out_.gpus + g));
        const std::int64_t in_node = out_.gpus / plan_.tensor;
        group.pattern = pattern_of(GroupKind::data, {in_node * out_.count, out_.count, in_node, 1});
        out_.spanning.push_back(std::move(group));
      }
    return true;
  }

  bool add_world() {
    SpanningGroup group{GroupKind::world, 0, {}, next_++};
    for (std::int64_t r = 0; r < out_.ranks(); ++r)
      group.members.push_back(static_cast<std::uint32_t>(r));
    const std::int64_t nodes = out_.stages * out_.count;
    group.pattern = pattern_of(GroupKind::world, {nodes * out_.gpus, nodes, out_.gpus, 1});
    out_.spanning.push_back(std::move(group));
    return true;
  }

  bool add_neighbours(GroupKind kind, bool forward) {
    const bool wraps =
        plan_.virtual_stages > 1 && plan_.placement() == workloads::Placement::looped;
    if (out_.stages < 2) return false;
    const std::int64_t lowers = wraps ? out_.stages : out_.stages - 1;
    for (std::int64_t s = 0; s < lowers; ++s)
      for (std::int64_t g = 0; g < out_.gpus; ++g) {
        const auto lower = static_cast<std::uint32_t>(s * out_.gpus + g);
        const auto upper = static_cast<std::uint32_t>((s + 1) % out_.stages * out_.gpus + g);
        add_group(kind, forward ? std::vector{lower, upper} : std::vector{upper, lower},
                  s * out_.count * out_.gpus + g, out_.gpus);
      }
    next_ += static_cast<std::uint32_t>(lowers * out_.count * out_.gpus);
    return true;
  }

  bool add_first_and_last() {
    if (out_.stages < 2) return false;
    for (std::int64_t g = 0; g < out_.gpus; ++g)
      add_group(GroupKind::embedding,
                {static_cast<std::uint32_t>(g),
                 static_cast<std::uint32_t>((out_.stages - 1) * out_.gpus + g)},
                g, out_.gpus);
    next_ += static_cast<std::uint32_t>(out_.count * out_.gpus);
    return true;
  }

  const workloads::ParallelPlan& plan_;
  const topology::Cluster& cluster_;
  Columns out_;
  std::map<GroupShape, std::uint32_t> patterns_;
  std::uint32_t next_ = 0;  // communicator
};

}  // namespace

std::vector<std::int64_t> Columns::ranks_of(const ColumnGroup& group, std::int64_t column) const {
  std::vector<std::int64_t> out;
  for (const std::uint32_t member : group.members) out.push_back(rank(member, column));
  return out;
}

std::optional<Columns> columns_of(const LayoutKey& key, const topology::Cluster& cluster) {
  ColumnsOfPlan columns(key.degrees, cluster);
  if (!columns.even()) return std::nullopt;
  for (unsigned k = 0; k < workloads::num_group_kinds; ++k)
    if ((key.kinds >> k & 1U) != 0 && !columns.add(static_cast<GroupKind>(k))) return std::nullopt;
  return columns.take();
}

}  // namespace stepcast::sim
