// NCCL's topology file, version 1 (NCCL_TOPO_DUMP_FILE, or what a cloud ships for NCCL_TOPO_FILE):
//
//   <system version="1">
//     <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" ...>           one per NUMA domain
//       <pci class="0x060400" ...>                                       a PCIe switch
//         <pci busid="..." class="0x030200" device="0x2330" link_speed="32.0 GT/s PCIe" ...>
//           <gpu dev="0" sm="90" rank="0" gdr="1"> <nvlink target="..." count="5" tclass=.../>
//         <pci class="0x020700" ...> <nic> <net name="mlx5_0" speed="400000" gdr="1"/>
//
// Lacks the fabric above the NICs and every latency.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/import/node_topology.hpp"
#include "calibrate/rows/text_lines.hpp"

namespace stepcast::calibrate {

/// Throws InputError with file:line. Of a file with several hosts the first one is read.
NodeTopology parse_topology_xml(const std::string& path, std::string_view text, Ignored& ignored);

}  // namespace stepcast::calibrate
