// Which reader understands a topology file, and what both know of NICs.
#include <algorithm>
#include <initializer_list>

#include "calibrate/import/node_topology.hpp"
#include "calibrate/import/topology_matrix.hpp"
#include "calibrate/import/topology_xml.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {

std::optional<topology::Network> network_of_nic(const std::string& name,
                                                const std::string& pci_class,
                                                const std::string& pci_vendor) {
  using enum topology::Network;
  const auto begins = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return name.starts_with(word); });
  };
  if (pci_vendor == amazon_vendor || begins({"rdmap", "efa"})) return efa;
  if (begins({"roce"})) return roce;
  if (pci_class.starts_with("0x0207") || begins({"ibp", "ibs"})) return infiniband;
  // NVIDIA's, Broadcom's and Intel's RDMA drivers on an Ethernet port; mlx5 is InfiniBand's too.
  const bool on_ethernet = pci_class.starts_with("0x0200");
  if (begins({"mlx5_bond", "bnxt", "irdma"}) || (on_ethernet && begins({"mlx5"}))) return roce;
  if (begins({"eth", "en"})) return ethernet;
  return std::nullopt;
}

NodeTopology read_topology(const std::string& path, Ignored& ignored) {
  const std::string text = read_bytes(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string::npos && text[first] == '<')
    return parse_topology_xml(path, text, ignored);
  const TextFile file = parse_text(path, text);
  if (is_topology_matrix(file)) return parse_topology_matrix(file, ignored);
  throw InputError(path + ":1", "is no topology that is understood",
                   "NCCL's XML (NCCL_TOPO_DUMP_FILE) and nvidia-smi topo -m are");
}

}  // namespace stepcast::calibrate
