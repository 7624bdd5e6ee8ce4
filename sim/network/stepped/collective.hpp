// The stepped form of a collective beside its one-variable form: the same terms written out as
// chunk transfers over the cluster's links, and where the two differ, by how much and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/model.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"

namespace stepcast::sim {

/// One term of both forms; the terms of each form add up to its total.
struct SteppedTerm {
  std::string name;
  Duration one_variable{}, stepped{};
  std::string reason;  // why they differ; empty where they do not
};

struct SteppedCollective {
  CollectiveTime alone;     // of the one-variable form, on links of its own
  Duration one_variable{};  // over the links it loads
  Duration stepped{};
  std::int64_t transfers = 0;
  Duration transfers_start{};       // the kernel's start comes before the first transfer
  std::vector<Duration> step_ends;  // from the start of the collective
  topology::LinkId busiest{};
  std::string busiest_name;  // "node0/nic3 > leaf3"
  double busiest_use = 0.0;  // bytes over capacity x time
  std::vector<SteppedTerm> terms;

  double ratio() const { return seconds(stepped) / seconds(one_variable); }
};

/// Ranks are GPU indexes. Throws InputError where the stepped form is missing or too large.
SteppedCollective step_collective(const topology::Cluster&, const topology::Router&,
                                  const NetworkModel&, workloads::CollectiveKind, Bytes,
                                  workloads::Dtype, const std::vector<std::int64_t>& ranks);

}  // namespace stepcast::sim
