// What `nvidia-smi topo -m` prints: how every pair of GPUs and NICs is joined. X itself, NV# as
// many NVLinks, PIX one PCIe switch, PXB several, PHB over the CPU's PCIe, NODE and SYS over NUMA
// domains and sockets. Lacks every speed, the GPU's name and the NVSwitches.
#pragma once

#include <string>

#include "calibrate/import/node_topology.hpp"
#include "calibrate/rows/text_lines.hpp"

namespace stepcast::calibrate {

/// Whether a line of the file heads such a table.
bool is_topology_matrix(const TextFile& file);

/// Throws InputError with file:line on a row that does not fit the header, an unknown cell, or a
/// pair that the two rows join differently.
NodeTopology parse_topology_matrix(const TextFile& file, Ignored& ignored);

}  // namespace stepcast::calibrate
