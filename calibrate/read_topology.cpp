// Which reader understands a topology file.
#include "calibrate/node_topology.hpp"
#include "calibrate/topology_matrix.hpp"
#include "calibrate/topology_xml.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {

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
