// The critical path with the names that people know: kernels and collectives of the step program,
// stages of the pipeline, ranks of the cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/path/critical_path.hpp"
#include "sim/tables/provenance.hpp"
#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

/// Of a pipeline: until the path comes to the stage on which it computes most, and after it has
/// left that for good. Both lie between the path's first and last kernel of the model.
enum class Phase : std::uint8_t { steady, fill, drain };

/// A link that transfers of the path had to share.
struct SharedLink {
  std::string link;  // one of those that are alike: "node0/nic0 to leaf0"
  std::vector<std::string> rivals;
  Duration time{};  // longer for it
};

struct NamedEdge {
  engine::PathEdge edge;
  std::string what;  // "gemm", "tensor all_reduce", "launch"
  std::string name;  // in the step program; of the host: what it launched last
  std::int64_t rank = 0, stage = 0;
  std::string lane;
  std::optional<Provenance> provenance;  // none of the host
  Phase phase = Phase::steady;
  std::string after;   // "lane", "launch", "rank 8 data"
  std::string beside;  // of a kernel that is slowed: "data", "tensor, copies"
  std::vector<SharedLink> shared;
};

/// Edges of one kind and stage together.
struct PathPart {
  std::string what;
  std::int64_t stage = 0;
  Duration time{};
  std::int64_t edges = 0;
};

struct NamedTie {
  std::string what, name;  // of the chain that was not later: its last edge
  std::int64_t rank = 0, stage = 0;
  std::string lane;
  Duration slack{};
  std::int64_t places = 1;  // where chains of this kind come to the path, on any stage
};

struct NamedPath {
  std::vector<NamedEdge> edges;    // in the order of time
  std::vector<PathPart> parts;     // largest first; they sum to the step
  std::vector<NamedTie> next;      // smallest slack first
  std::vector<SharedLink> shared;  // of all edges, the longest first
  std::int64_t ranks = 1;          // that it passes
  std::int64_t ends = 1, ties = 0;
  Duration fill{}, drain{};
  Duration length{};
};

/// Chains with a slack of at most `near` of the step are named.
NamedPath named_path(const LoggedStep& step, const KernelModel& kernels, double near);

}  // namespace stepcast::sim
