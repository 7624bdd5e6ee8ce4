// A simulated step as Chakra traces, for ASTRA-sim and whoever else reads them.
#pragma once

#include <string>

#include "sim/run/session.hpp"

namespace stepcast::sim {

/// A node for each kernel and each collective of a rank, and for the host's calls in between.
///
/// - COMP: duration in us, num_ops (FLOPs, at least 1, so that a roofline gives kernels that move
///   bytes alone their time), tensor_size (bytes); is_cpu_op only of the host's.
/// - COMM_COLL: comm_type, comm_size (the rank's buffer before the collective: of AllGather its
///   share, as ASTRA-sim's ring has it), pg_name, the number of a group in comm_group.json.
/// - COMM_SEND, COMM_RECV: comm_src, comm_dst, comm_tag, comm_size; a ring's exchange is one each.
///
/// data_deps alone: the node before on its lane, what the lane waited for, the host's launch.
/// Durations are as the step ran, slowed by collectives beside them; whole microseconds of which
/// the rounding is carried on, so that a lane's sum is kept. `stream` is the lane.
struct ChakraExport {
  std::size_t files = 0, nodes = 0, bytes = 0, groups = 0;
};

/// About the bytes of such traces.
Bytes estimated_trace(const TimelineSize& size);

/// `scenario` is resolved. Throws InputError where `folder` is there and not empty, OutputError
/// where it cannot be written, and what Session::timeline() throws.
ChakraExport export_trace(const Scenario& scenario, Session& session, const std::string& folder,
                          const RankChoice& ranks, Bytes most);

}  // namespace stepcast::sim
