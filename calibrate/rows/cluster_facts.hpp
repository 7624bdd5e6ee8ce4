// What a log does not say about the cluster that wrote it (each is an option of the command), and
// the names of GPUs and collectives as logs spell them. Knows no format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/units.hpp"
#include "sim/tables/gpu_identity.hpp"

namespace stepcast::calibrate {

struct ClusterFacts {
  std::string fabric;  // infiniband, roce, efa, ethernet, nvlink, pcie; empty: not given
  std::optional<BytesPerSecond> node_bandwidth;  // of all NICs of a node, one direction
  std::string gpu;                               // in the table's words: "H100-SXM5-80GB"
  std::string nccl;                              // "2.20.5"
  std::string collective;                        // in the table's words: "allreduce"
  std::optional<std::int64_t> ranks, nodes;
  sim::GpuIdentities gpus;  // of the catalogue, to know a GPU by the name that a log gives it
};

/// Facts that neither a log nor the options say, to be asked for all at once.
class Unsaid {
 public:
  void add(bool missing, const std::string& what, const std::string& option);
  /// A single one is asked for where it is needed, with what is known of it there.
  bool several() const { return count_ > 1; }
  const std::string& what() const { return what_; }        // "which GPU, how many nodes"
  std::string hint() const { return "give " + options_; }  // "--gpu NAME --nodes N"

 private:
  int count_ = 0;
  std::string what_, options_;
};

/// InputError at `--fabric` for a word that is none of the above.
void check_fabric(const std::string& fabric);

/// The table's name of a collective: of "all_reduce", "AllReduce", "all_reduce_perf_mpi". None for
/// what the table does not know (gather, scatter, alltoallv, hypercube).
std::optional<std::string> collective_named(std::string_view name);
/// The collective that a file name speaks of: "allgather-16n.log".
std::optional<std::string> collective_in_file_name(std::string_view name);

/// The table's name of a GPU: of CUDA's "NVIDIA H100 80GB HBM3", or of the catalogue's
/// "h100-sxm5-80gb". None for a name that says too little ("NVIDIA Graphics Device").
std::optional<std::string> gpu_named(std::string_view name, const sim::GpuIdentities& gpus);

/// "2.28.7" of NCCL's version code 22807, "2.8.4" of 2804.
std::optional<std::string> nccl_of_code(std::int64_t code);
/// The version in "NCCL version 2.20.5+cuda12.4"; none where the text has none.
std::optional<std::string> nccl_in_text(std::string_view text);

}  // namespace stepcast::calibrate
