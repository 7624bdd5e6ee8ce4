// The numbers of a machine's parts: GPU, node, fabric. Plain values; each comes from a catalogue
// file (scenarios/gpus, nodes, fabrics) that states its source. Bandwidths are per direction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "topology/architecture.hpp"

namespace stepcast::topology {

/// A GPU of the catalogue whose measured times say something of another of its generation.
struct GpuRelative {
  std::string name;  // catalogue key
  FlopsPerSecond tensor_peak{};
  BytesPerSecond nvlink{};  // 0: a card without
  FlopsPerSecond fp8_peak{}, fp4_peak{};
  Watts tdp{};
  std::int64_t sms = 0;
  BytesPerSecond memory_bandwidth{};

  friend bool operator==(const GpuRelative&, const GpuRelative&) = default;
};

struct GpuSpec {
  std::string name;  // catalogue key: "v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5-80gb"
  Architecture architecture{};
  std::int64_t sms = 0;
  FlopsPerSecond tensor_peak{};  // dense, the 16-bit type of training (fp16 on Volta, else bf16)
  FlopsPerSecond tf32_peak{};
  FlopsPerSecond fp8_peak{};
  FlopsPerSecond fp4_peak{};
  FlopsPerSecond fp32_peak{};
  Bytes memory{};
  BytesPerSecond memory_bandwidth{};
  double kernel_floor = 1.0;  // factor on the time that a kernel takes whatever its size
  BytesPerSecond nvlink{};    // all links of one GPU, one direction
  std::int64_t nvlink_links = 0;
  Watts tdp{};
  Watts idle{};
  Watts power_cap{};         // set below tdp (nvidia-smi -pl); 0: none
  Hertz clock{};             // of its SMs, locked (nvidia-smi -lgc); 0: as its power allows
  bool announced = false;    // its figures are the vendor's before release: nobody has measured it
  std::string nccl_since{};  // the first NCCL that knows it, as in 2.25; empty: all known ones
  // What the catalogue has of its generation, itself included. Of a chip's forms the usual first.
  std::vector<GpuRelative> relatives{};

  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

enum class NodeKind : std::uint8_t { hybrid_cube_mesh, nvswitch, pcie };

/// What the NICs speak: a hop costs more over some than over others. efa: AWS, SRD; ethernet: TCP;
/// slingshot: HPE's Slingshot 11 through libfabric.
enum class Network : std::uint8_t { infiniband, roce, efa, ethernet, slingshot, omni_path };
inline constexpr std::size_t num_networks = 6;

/// The catalogue's entry that a node is a copy of, with the values that it changes. The constants
/// of the network model hold the share of these latencies already: only a difference from them
/// counts.
struct NodeReference {
  std::string name;      // empty: nothing to compare with, and no difference
  bool nearest = false;  // no copy: the entry most like it
  Duration nvlink_latency{}, nic_latency{}, pcie_latency{}, socket_latency{};
  std::int64_t nvswitches = 0;
  BytesPerSecond nic{}, pcie{}, socket{};
  Watts max_power{};

  friend bool operator==(const NodeReference&, const NodeReference&) = default;
};

struct NodeSpec {
  // Compiled once, as sim::Scenario's are.
  NodeSpec();
  NodeSpec(const NodeSpec&);
  NodeSpec(NodeSpec&&) noexcept;
  NodeSpec& operator=(const NodeSpec&);
  NodeSpec& operator=(NodeSpec&&) noexcept;
  ~NodeSpec();

  std::string name;  // "dgx-1v", "dgx-a100", "dgx-h100"
  NodeKind kind{};
  GpuSpec gpu;
  std::int64_t gpus = 8;
  // Of an NVLink domain over several trays, as in a rack: the GPUs of one, with an equal share of
  // the NICs, PCIe switches and sockets; only NVLink joins trays. 0: one box.
  std::int64_t gpus_per_tray = 0;
  std::int64_t nvswitches = 0;
  std::vector<std::vector<std::int64_t>> nvlinks;  // hybrid_cube_mesh: links between GPU i and j
  BytesPerSecond nvlink_per_link{};
  Duration nvlink_latency{};  // one link: GPU to GPU, or GPU to NVSwitch
  std::int64_t nics = 0;
  BytesPerSecond nic{};    // one NIC, one direction
  Duration nic_latency{};  // one pass through a NIC
  Network network = Network::infiniband;
  std::int64_t pcie_switches = 0;
  BytesPerSecond pcie{};  // one x16 link, one direction
  Duration pcie_latency{};
  std::int64_t sockets = 2;
  BytesPerSecond socket{};  // between two CPU sockets, one direction
  Duration socket_latency{};
  bool peer_access = true;  // GPUs read each other's memory over PCIe, not through the host's
  bool gpu_direct = true;   // NIC reads GPU memory through the PCIe switch, not the CPU
  bool low_latency_protocols = true;  // NCCL may take LL and LL128: its plugin does not forbid them
  Duration plugin_latency{};  // of a message, as the network's plugin tells NCCL; 0: as NCCL has it
  std::string cpu;            // "intel" or "amd": NCCL's net overhead depends on it
  Watts max_power{};          // of the whole node, as its datasheet states; 0: not known
  BytesPerSecond host_link{};  // GPU to its processor, one direction; 0: through the PCIe switches
  BytesPerSecond host_memory{};  // of all sockets' memory; 0: not known
  NodeReference reference{};

  std::int64_t trays() const { return gpus_per_tray > 0 ? gpus / gpus_per_tray : 1; }

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

/// What each GPU gets of its host while all of a node ask for as much. memory: 0 if not known.
struct HostShare {
  BytesPerSecond link{}, memory{};
  friend bool operator==(const HostShare&, const HostShare&) = default;
};
HostShare host_share(const NodeSpec& node);

enum class FabricKind : std::uint8_t { rail_optimized, fat_tree, rail_only };

/// Which of the equal uplinks a flow takes. destination: the digits of the destination's port
/// number pick, as InfiniBand's static routes do. ecmp: every switch hashes the flow onto its
/// cables, so that flows collide by chance, as on Ethernet. spray: packets go over all evenly, the
/// best that adaptive routing can do.
enum class Routing : std::uint8_t { destination, ecmp, spray };

/// As NodeReference.
struct FabricReference {
  std::string name;
  bool nearest = false;
  Duration switch_latency{}, cable_latency{};
  std::int64_t ports = 0;

  friend bool operator==(const FabricReference&, const FabricReference&) = default;
};

/// Where a job's nodes lie in the fabric. packed: in its order from the first place on. random: on
/// places drawn one by one, in the order drawn, as a scheduler that knows no topology hands them
/// out.
enum class Placement : std::uint8_t { packed, random };

/// A job that may share the fabric with others.
struct JobPlace {
  Placement placement = Placement::packed;
  std::int64_t seed = 1;          // of random places
  std::int64_t fabric_nodes = 0;  // that the fabric joins; 0: the job's own
  double other_jobs = 0.0;        // share of every link between switches that others take, below 1

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

/// A folded Clos network above the NICs. rail_optimized: NIC i of the nodes of one scalable unit
/// meets leaf i; fat_tree: all NICs of a node meet one leaf; rail_only: NICs i of all nodes have a
/// network of their own, and bytes change rails inside a node (arXiv 2307.12169).
struct FabricSpec {
  std::string name;
  FabricKind kind{};
  std::int64_t ports = 64;        // of a switch
  std::int64_t tiers = 0;         // 0: as few as the size needs
  double oversubscription = 1.0;  // down / up bandwidth at the leaf
  BytesPerSecond link{};          // 0: as the NIC
  Duration switch_latency{};
  Duration cable_latency{};
  Watts switch_power{};       // of one, without what its cables draw; 0: not known
  Watts transceiver_power{};  // of one port's end of an optical cable; 0: not known
  bool sharp = false;         // switches sum on the way (InfiniBand SHARP); NCCL's CollNet
  Routing routing = Routing::destination;
  std::int64_t ecmp_seed = 1;  // another seed, other collisions
  JobPlace job{};
  FabricReference reference{};

  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

}  // namespace stepcast::topology
