// GPUs joined by NVLinks directly, as the table `nvlinks` of the node says. DGX-1V: two quads, each
// fully joined, and four double or single links between them; six links at every GPU.
//
//        gpu0 ---1--- gpu1                gpu4 ---1--- gpu5
//         | \         / |                  | \         / |
//         |   2     2   |                  |   2     2   |
//         1      X      1                  1      X      1
//         |   /     \   |                  |   /     \   |
//        gpu2 ---2--- gpu3                gpu6 ---2--- gpu7
//
//        between the quads: gpu0 -2- gpu4, gpu1 -2- gpu5, gpu2 -1- gpu6, gpu3 -1- gpu7
#include "topology/node_layout.hpp"

namespace stepcast::topology {

void add_hybrid_cube_mesh(NodeLayout& layout, const NodeSpec& node) {
  for (std::size_t a = 0; a < node.nvlinks.size(); ++a)
    for (std::size_t b = a + 1; b < node.nvlinks.size(); ++b)
      if (const std::int64_t count = node.nvlinks[a][b]; count > 0)
        layout.connect(static_cast<DeviceId>(a), static_cast<DeviceId>(b),
                       {.kind = LinkKind::nvlink,
                        .bandwidth = node.nvlink_per_link,
                        .latency = node.nvlink_latency,
                        .count = count});
}

}  // namespace stepcast::topology
