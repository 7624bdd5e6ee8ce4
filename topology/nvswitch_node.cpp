// GPUs that meet in NVSwitches: every GPU has a bundle of NVLinks to every NVSwitch.
//
//   DGX A100 (12 links a GPU, 2 to each of 6)     DGX H100 (18 links a GPU, 5+4+4+5 to 4)
//
//     nvsw0 nvsw1 ... nvsw5                          nvsw0  nvsw1  nvsw2  nvsw3
//       2|    2|       2|                              5|     4|     4|     5|
//        +-----+-- ... -+                               +------+------+------+
//     gpu0  gpu1  ...  gpu7                          gpu0   gpu1   ...    gpu7
//
// DGX B200 has 2 switches with 9 links of a GPU each. The PCIe side is pcie_tree.cpp.
#include "topology/node_layout.hpp"

namespace stepcast::topology {

std::vector<std::int64_t> nvlinks_per_switch(std::int64_t links, std::int64_t nvswitches) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(nvswitches), links / nvswitches);
  const std::int64_t extra = links % nvswitches;
  for (std::int64_t j = 0; j < extra; ++j)
    ++counts[static_cast<std::size_t>(j % 2 == 0 ? j / 2 : nvswitches - 1 - j / 2)];
  return counts;
}

void add_nvswitches(NodeLayout& layout, const NodeSpec& node) {
  const auto counts = nvlinks_per_switch(node.gpu.nvlink_links, node.nvswitches);
  for (std::int64_t g = 0; g < node.gpus; ++g)
    for (std::int64_t s = 0; s < node.nvswitches; ++s)
      layout.connect(static_cast<DeviceId>(g), layout.first_nvswitch + static_cast<DeviceId>(s),
                     {.kind = LinkKind::nvlink,
                      .bandwidth = node.nvlink_per_link,
                      .latency = node.nvlink_latency,
                      .count = counts[static_cast<std::size_t>(s)]});
}

}  // namespace stepcast::topology
