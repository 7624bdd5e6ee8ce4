// To which entry of the catalogue a node or fabric is referred (topology::NodeReference), and one
// word for a GPU's NVLinks where the node and its GPU both have a say.
#pragma once

#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// Of an entry that `table` holds as a whole: itself in the catalogue's own file, else the
/// catalogue's entry of that name, else the one most like it (kind, GPU generation, network, GPU;
/// of equals a DGX, then by name). Latencies that the table leaves out are the reference's.
void refer(const Catalogue&, topology::NodeSpec&, TableReader& table);
void refer(const Catalogue&, topology::FabricSpec&, TableReader& table);

/// nvlink_per_link of the node times nvlink_links of its GPU is the GPU's nvlink: what the table
/// states changes the other one. `gpu` is the user's own GPU, a table or the document of a file, or
/// the name of the catalogue's, if the table has one. Throws InputError where the node and an own
/// GPU state both and they differ; beside a GPU of the catalogue the node's links count.
void agree_on_nvlink(topology::NodeSpec&, TableReader& table, const TomlValue* gpu);

}  // namespace stepcast::sim
