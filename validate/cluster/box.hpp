// A cluster in a box while it stands: a network namespace for each node and one for the switches.
// Knows how to start things on a node, not what they do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/cluster/namespaces.hpp"
#include "validate/cluster/plan.hpp"

namespace stepcast::validate {

/// Why this machine lacks the programs that build a box; empty: it has them.
std::string missing_tools();

class Box {
 public:
  /// In namespaces of this program's own (run_apart). Files go to `scratch`. Throws InputError
  /// with what `ip` or `tc` said where they cannot build it.
  Box(BoxPlan plan, const std::string& scratch);

  const BoxPlan& plan() const { return plan_; }
  const NetworkNamespace& node(std::int64_t index) const {
    return nodes_[static_cast<std::size_t>(index)];
  }

 private:
  BoxPlan plan_;
  NetworkNamespace switches_;
  std::vector<NetworkNamespace> nodes_;
};

/// What one process does on a node.
struct NodeTask {
  std::int64_t node = 0;
  std::function<std::vector<double>()> body;
};
/// All at once, each in a process of its own; what each returned. Throws sim::Failure
/// (exit_rank_lost) where one failed, with its reason.
std::vector<std::vector<double>> run_on_nodes(const Box& box, const std::vector<NodeTask>& tasks);

}  // namespace stepcast::validate
