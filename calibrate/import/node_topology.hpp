// The inside of a node as a topology file shows it, and as a node of the catalogue: what the file
// cannot say is taken from the nearest node that the catalogue has. Knows no format; those are
// topology_xml.hpp and topology_matrix.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/rows/text_lines.hpp"
#include "engine/units.hpp"
#include "sim/scenario/catalogue.hpp"
#include "topology/specs.hpp"

namespace stepcast::calibrate {

struct ImportedNic {
  std::string name;
  std::int64_t line = 0;
  std::optional<BytesPerSecond> speed;       // one direction
  std::optional<topology::Network> network;  // what it speaks
  bool near_gpu = false;                     // shares a PCIe switch with a GPU
  bool ethernet = false;  // its PCI class says Ethernet: whatever it speaks is no InfiniBand
};

/// What a NIC speaks: by AWS's PCI vendor, the names that rdma-core gives ("rocep23s0", "ibp5s0"),
/// its PCI class, drivers' names. Any may be empty.
std::optional<topology::Network> network_of_nic(const std::string& name,
                                                const std::string& pci_class,
                                                const std::string& pci_vendor);

inline constexpr const char* amazon_vendor = "0x1d0f";  // of EFA; pci-ids.ucw.cz, 2026-11

struct PciDevice {
  std::string id;  // "0x2330"
  std::int64_t line = 0;
};

struct NodeTopology {
  std::string path, format;  // "NCCL topology", "nvidia-smi topo -m"
  std::int64_t gpus = 0;
  std::vector<PciDevice> chips;  // PCI device ids of the GPUs, each once, where the file has them
  std::optional<std::int64_t> compute_capability;  // 90
  // NVLinks: between GPUs i and j, or of every GPU to NVSwitches. All empty: none, unless unseen.
  bool nvlinks_seen = true;  // false: a file that cannot show them
  std::vector<std::vector<std::int64_t>> nvlinks;
  std::int64_t links_to_switches = 0;
  std::optional<std::int64_t> nvswitches;
  std::vector<ImportedNic> nics;
  std::optional<std::int64_t> pcie_switches;  // those with a GPU behind them
  std::optional<BytesPerSecond> pcie;
  std::optional<std::string> cpu;  // intel, amd
  std::optional<bool> gpu_direct;
  std::optional<std::int64_t> sockets;

  [[noreturn]] void fail(std::int64_t line, const std::string& what,
                         const std::string& hint = {}) const;
};

struct NodeImport {
  std::string name;  // of the new node
  std::string gpu;   // --gpu: an entry of the catalogue; empty: not given
  std::string date;  // of the import
  std::optional<BytesPerSecond> node_bandwidth;  // --node-bandwidth: of all NICs, one direction
};

/// The node as a catalogue file: every key with its source, "imported from FILE (...), DATE" or
/// "not in FILE; as node dgx-h100: ...". InputError where file, GPU and catalogue contradict each
/// other, or where the GPU has to be named.
std::string node_toml(const NodeTopology& topology, const NodeImport& import,
                      const sim::Catalogue& catalogue, Ignored& ignored);

/// Reads a file of either format.
NodeTopology read_topology(const std::string& path, Ignored& ignored);

}  // namespace stepcast::calibrate
