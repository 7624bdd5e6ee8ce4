// The cluster as a Boost.Graph graph with Device and Link as bundled properties: vertex = DeviceId,
// edges in order of their source. Made when asked for; included by .cpp files alone.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "topology/cluster.hpp"

namespace stepcast::topology {

using BoostGraph = boost::compressed_sparse_row_graph<boost::directedS, Device, Link,
                                                      boost::no_property, DeviceId, LinkId>;

BoostGraph boost_graph_of(const Cluster&);

}  // namespace stepcast::topology
