// NVLink domains of several trays: how many GPUs of each a run uses.
#pragma once

#include <cstdint>
#include <string>

#include "topology/specs.hpp"

namespace stepcast::topology {

/// The same machine with another number of GPUs in its NVLink domain, fewer or more, and NICs, PCIe
/// switches and sockets in proportion: 64 of a rack's 72 GPUs, or a rack of 576. Throws InputError
/// (at `where`) unless they come out whole.
NodeSpec with_gpus(NodeSpec node, std::int64_t gpus, const std::string& where);

/// The most GPUs, whole trays of them, that each domain can have in use so that `gpus` in all are
/// equal shares: 64 of 72 for 256 GPUs. 0: no number of trays is one.
std::int64_t even_domain(const NodeSpec& node, std::int64_t gpus);

}  // namespace stepcast::topology
