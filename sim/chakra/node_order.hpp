// In which order the nodes of a trace may run.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/chakra/et_file.hpp"

namespace stepcast::sim {

struct NodeOrder {
  std::vector<std::size_t> order;              // places in EtFile::nodes, what is awaited first
  std::vector<std::vector<std::size_t>> deps;  // by place: places that it waits for
};

/// By dependencies, then start time, then number. Throws InputError for a cycle, naming it, and for
/// a dependency on a node that is not there.
NodeOrder node_order(const EtFile& file);

}  // namespace stepcast::sim
