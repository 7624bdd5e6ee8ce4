// The constants with which one NCCL version ranks its algorithms and protocols, read from
// scenarios/nccl/<version>.toml. They say what NCCL chooses, not how long it takes: see
// nccl_time.hpp for that. Keys of the file are the members below; every one must be there.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/nccl_names.hpp"
#include "topology/specs.hpp"
#include "workloads/step_program.hpp"

namespace stepcast::sim {

/// One latency per protocol: LL, LL128, Simple. Microseconds, as NCCL's own table.
using ProtocolMicroseconds = std::array<double, num_protocols>;
/// One bandwidth for 1, 2 and at least 3 nodes. GB/s, as NCCL's own table.
using NodesGigabytes = std::array<double, 3>;

/// [latency.<algorithm>]: what a collective costs at least, and per hop by the kind of wire.
struct NcclLatency {
  ProtocolMicroseconds base{}, nvlink{}, pci{}, net{};
};

/// [cap.<name>] has one row per GPU generation.
struct NcclCap {
  NodesGigabytes volta{}, ampere{}, hopper{};

  /// Generations after Hopper use Hopper's row, as NCCL does where it has no newer one.
  const NodesGigabytes& row(topology::Architecture) const;
};

/// How bus bandwidth turns into algorithm bandwidth where NCCL has changed its mind.
enum class BusRatio : std::uint8_t {
  three_quarters,      // "0.75"
  five_sixths,         // "5/6"
  seven_tenths_nodes,  // "0.7 N/(2(N-1))"
  ring,                // "ring": n / steps, of the doubled NVLS bandwidth
};

struct NcclTuning {
  std::string version;  // the key of the file: serves this version and those up to the next key
  std::string source;
  std::array<NcclLatency, num_algorithms> latency{};  // none for p2p
  NcclCap ll_bus;  // whole bus; for several nodes the row is the CPU: ampere = AMD
  NcclCap ring_ll128_cap, tree_ll128_cap, tree_cap, nvls_tree_cap;  // per channel; 0: no cap
  double ring_ll = 0, ring_ll_one_node = 0;  // share of the bus; the latter not for AllReduce
  double ring_ll128 = 0, ring_ll128_one_rank_per_node = 0;
  bool all_reduce_counts_all_nodes = false;  // network steps of Ring: 2N, else 2(N-1)
  BusRatio nvls_ratio{}, nvls_tree_ratio{};
  bool nvls_tree_halves_network = false;  // from 3 nodes on
  double pat = 0;                         // share of the bus
  double nvls_efficiency = 0;
  std::array<std::vector<double>, num_protocols> tree_correction;  // by log2(bytes / 64)
  // AllReduce, AllGather, ReduceScatter, Broadcast, Reduce
  std::array<std::vector<Algorithm>, 5> serves;

  bool serves_kind(workloads::CollectiveKind, Algorithm) const;
};

/// Reads one file. Throws InputError (file:line) on a key that is unknown, missing or wrong.
NcclTuning read_nccl_tuning(const std::string& path);

/// The file of the newest key that is not newer than `version` ("2.20", "2.18.5"; a version without
/// a patch means its last one) in `directory`. InputError at `where` when there is none.
NcclTuning nccl_tuning_of(const std::string& directory, const std::string& version,
                          const std::string& where = "nccl");

/// Keys found in `directory`, oldest first.
std::vector<std::string> nccl_versions(const std::string& directory);

}  // namespace stepcast::sim
