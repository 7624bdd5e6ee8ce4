// What NCCL's own choice of protocols costs a step, and the value of NCCL_PROTO that avoids it. By
// the model of time.hpp alone, of collectives that no measured curve gives.
#pragma once

#include <optional>
#include <span>

#include "sim/network/nccl/network.hpp"
#include "sim/network/nccl/variables.hpp"

namespace stepcast::sim {

/// What a pinned way must gain to be worth saying: below it the model's own errors decide.
inline constexpr double worthwhile_gain = 0.1;

/// A collective whose time is the model's, and the protocol that NCCL took for it.
struct ProtocolChoice {
  NcclCall call;
  GroupShape shape;
  Protocol taken{};
  double calls = 0.0;  // in a step, of the role that joins it most often
  Duration each{};
};

struct BetterProtocol {
  NcclVariable variable;    // NCCL_PROTO, of single functions where the version reads that
  double saved_s = 0.0;     // if all calls followed one another
  ProtocolChoice heaviest;  // the call that saves most
};

/// The protocol that saves most of what these calls take; none where NCCL's choice is the best, or
/// where `overrides` pin something.
std::optional<BetterProtocol> better_protocol(std::span<const ProtocolChoice>,
                                              const topology::NodeSpec&, const NcclFacts&,
                                              const NcclOverrides&);

}  // namespace stepcast::sim
