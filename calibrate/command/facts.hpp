// The options that say what a log or a machine does not, said once for all verbs that take them.
#pragma once

#include "calibrate/rows/cluster_facts.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::calibrate {

inline constexpr sim::Option gpu_option{"gpu", "NAME", "", "the GPU, as the catalogue calls it"};
inline constexpr sim::Option nccl_option{"nccl", "VERSION", "", "the version of NCCL: 2.20.5"};
inline constexpr sim::Option collective_option{"collective", "NAME", "",
                                               "what was timed: all_reduce"};
inline constexpr sim::Option fabric_option{"fabric", "infiniband|roce|efa|ethernet|nvlink|pcie", "",
                                           "what the ranks talk over"};
inline constexpr sim::Option node_bandwidth_option{
    "node-bandwidth", "RATE", "", "of all NICs of a node, one direction: \"3200 Gbit/s\""};
inline constexpr sim::Option ranks_option{"ranks", "N", "", "number of ranks"};
inline constexpr sim::Option nodes_option{"nodes", "N", "", "number of nodes"};

/// What of these was given.
ClusterFacts facts_of(const sim::Arguments& arguments, const sim::Catalogue& catalogue);

}  // namespace stepcast::calibrate
