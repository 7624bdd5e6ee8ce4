// The constants with which one NCCL version ranks its algorithms and protocols, read from
// scenarios/nccl/<version>.toml. They say what NCCL chooses, not how long it takes: see
// time.hpp for that. Keys of the file are the members below; every one must be there.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/files/nccl_names.hpp"
#include "topology/specs.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// AllReduce, AllGather, ReduceScatter, Broadcast, Reduce: what NCCL chooses an algorithm for.
inline constexpr std::size_t num_choices = 5;
std::optional<std::size_t> choice_index(workloads::CollectiveKind);

/// One latency per protocol: LL, LL128, Simple. Microseconds, as NCCL's own table.
using ProtocolMicroseconds = std::array<double, num_protocols>;
/// One bandwidth for 1, 2 and at least 3 nodes. GB/s, as NCCL's own table.
using NodesGigabytes = std::array<double, 3>;

/// [latency.<algorithm>]: what a collective costs at least, and per hop by the kind of wire.
struct NcclLatency {
  ProtocolMicroseconds base{}, nvlink{}, pci{}, net{};
};

/// [cap.<name>] has one row per GPU generation. NCCL has one for Blackwell since 2.25; the files of
/// older versions repeat Hopper's there, which is what those versions take.
struct NcclCap {
  NodesGigabytes volta{}, ampere{}, hopper{}, blackwell{};

  const NodesGigabytes& row(topology::NcclGeneration) const;
};

/// How bus bandwidth turns into algorithm bandwidth where NCCL has changed its mind.
enum class BusRatio : std::uint8_t {
  three_quarters,      // "0.75"
  five_sixths,         // "5/6"
  seven_tenths_nodes,  // "0.7 N/(2(N-1))"
  ring,                // "ring": n / steps, of the doubled NVLS bandwidth
};

/// What NCCL does with the latency that a network plugin states.
enum class PluginLatency : std::uint8_t {
  ignored,   // not asked for
  replaces,  // NCCL's own hop
  adds,      // to it, twice for Simple, which flushes
};

struct NcclTuning {
  std::string version;  // the key of the file: serves this version and those up to the next key
  std::string source;
  std::array<NcclLatency, num_algorithms> latency{};  // none for p2p
  NcclCap ll_bus;  // whole bus; for several nodes the row is the CPU: ampere = AMD
  NcclCap ring_ll128_cap, tree_ll128_cap, tree_cap, nvls_tree_cap;  // per channel; 0: no cap
  double ring_ll = 0, ring_ll_one_node = 0;  // share of the bus; the latter not for AllReduce
  double ring_ll128 = 0, ring_ll128_one_rank_per_node = 0;
  double tree_ll128 = 0;                                // share of the bus between nodes
  std::array<double, num_choices> ll128_per_channel{};  // GB/s by choice_index(); 0: see caps
  std::array<double, 4> bus_cap{};                      // GB/s by generation; 0: none
  double ll_inside_between_nodes = 1;   // LL's hop in a node is that much longer between nodes
  bool posts_to_network = false;        // a hop in a node is no shorter than posting beside it
  bool plateau_by_channel = false;      // Ring, Simple: the plateau starts by bytes per channel
  bool plain_trees_are_slower = false;  // over nodes with one rank
  PluginLatency plugin_latency{};
  bool all_reduce_counts_all_nodes = false;  // network steps of Ring: 2N, else 2(N-1)
  BusRatio nvls_ratio{}, nvls_tree_ratio{};
  bool nvls_tree_halves_network = false;          // from 3 nodes on
  double pat = 0;                                 // share of the bus
  std::array<double, 4> nvls_efficiency{};        // by generation, since 2.28
  bool lone_ranks_take_tree_network = false;      // Ring's network latency, one rank per node
  bool gathers_are_converted = false;             // NVLS AllGather, ReduceScatter: times nvls_ratio
  double nvls_gather_network = 0;                 // share of the network; 0: inside one node only
  bool nvls_gather_skips_own_share = false;       // (p-1)/p of the channel
  double collnet_gather_network = 0;              // share of the network; 0: by the node alone
  bool nvls_tree_corrected_on_blackwell = false;  // by tree_correction
  bool ll128_on_hopper = false, ll128_on_blackwell = false;
  bool fp8_sums = false;              // of any algorithm
  double fp8_ring_factor = 1;         // on Ring's time beyond 8 ranks, where fp8 sums lose too much
  Bytes least_traffic_per_channel{};  // a launch spreads no thinner
  std::int64_t blackwell_most_ctas = 0;
  bool lists_by_function = false;         // NCCL_ALGO = "allreduce:tree;allgather:ring"
  bool nothing_left_is_an_error = false;  // of NCCL_ALGO and NCCL_PROTO; before: Ring
  std::vector<std::string> cta_policies;  // that NCCL_CTA_POLICY knows
  std::array<std::vector<double>, num_protocols> tree_correction;  // by log2(bytes / 64)
  std::array<std::vector<Algorithm>, num_choices> serves;          // by choice_index()

  bool serves_kind(workloads::CollectiveKind, Algorithm) const;
};

/// Reads one file. Throws InputError (file:line) on a key that is unknown, missing or wrong.
NcclTuning read_nccl_tuning(const std::string& path);

/// The file of the newest key that is not newer than `version` ("2.20", "2.18.5"; a version without
/// a patch means its last one) in `directory`. InputError at `where` when there is none.
NcclTuning nccl_tuning_of(const std::string& directory, const std::string& version,
                          const std::string& where = "nccl");

/// Whether `version` came before the first of the line of `other`; nothing is before "".
bool nccl_before(const std::string& version, const std::string& other);

/// Keys found in `directory`, oldest first.
std::vector<std::string> nccl_versions(const std::string& directory);

}  // namespace stepcast::sim
