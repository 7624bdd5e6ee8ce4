// What a user pins of NCCL's behaviour: the values of NCCL's own variables, and what they leave of
// a machine. Their spelling is variables.hpp; the choice under them choice.hpp.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/nccl_names.hpp"
#include "sim/network/nccl/tuning.hpp"
#include "sim/network/search/graph.hpp"

namespace stepcast::sim {

/// Values of NCCL_CTA_POLICY.
enum class CtaPolicy : std::uint8_t { usual, efficiency, zero };

using AlgorithmSet = std::bitset<num_algorithms>;
using ProtocolSet = std::bitset<num_protocols>;

/// Nothing set means: as NCCL does by default.
struct NcclOverrides {
  // One for every collective; narrower than the lists.
  std::optional<Algorithm> algorithm{};
  std::optional<Protocol> protocol{};

  // NCCL_ALGO and NCCL_PROTO, by choice_index() of the collective.
  std::array<std::optional<AlgorithmSet>, num_choices> algorithms{};
  std::array<std::optional<ProtocolSet>, num_choices> protocols{};
  bool by_function = false;  // a list names a function, which NCCL reads since 2.24

  // NCCL_{MIN,MAX}_{NCHANNELS,CTAS}, the narrower of each pair, and NCCL_{MIN,MAX}_P2P_NCHANNELS.
  std::int64_t least_ctas = 1, most_ctas = unlimited;
  std::int64_t least_p2p_ctas = 1, most_p2p_ctas = unlimited;
  CtaPolicy cta_policy = CtaPolicy::usual;

  std::optional<bool> collnet{}, nvls{}, pat{};  // NCCL_COLLNET_ENABLE, _NVLS_ENABLE, _PAT_ENABLE
  bool peer_to_peer = true;                      // not NCCL_P2P_DISABLE: NVLink

  // No variables of NCCL, but what decides beside them.
  bool registered_buffers = false;  // the framework registers them with NCCL
  bool fabric_has_sharp = false;
  std::string where = "NCCL_ALGO";  // for errors

  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  bool allows(workloads::CollectiveKind, Algorithm) const;
  bool allows(workloads::CollectiveKind, Protocol) const;
  /// NCCL_PROTO is set for this collective, or one protocol for all.
  bool names_protocols(workloads::CollectiveKind) const;
  /// NCCL_PROTO names LL128, which NCCL then runs where it would not by itself.
  bool forces_ll128(workloads::CollectiveKind) const;
  /// Measured curves were taken with NCCL's defaults: they say nothing about anything else.
  bool pins_anything() const;

  friend bool operator==(const NcclOverrides&, const NcclOverrides&) = default;
};

/// The machine that NCCL plans with: without NVLink, NVLS or SHARP where they are off.
NcclMachine planned_machine(const topology::NodeSpec&, const GroupShape&, const NcclOverrides&);

/// The machine that runs: fewer CTAs than planned take their share of the bandwidth away; more
/// bring none. A version's own limit on Blackwell costs no bandwidth.
NcclMachine limited_machine(NcclMachine planned, const NcclTuning&, const NcclOverrides&);

/// A collective that the copy engines run, without any CTA: AllGather and AlltoAll inside one
/// NVLink domain of buffers in symmetric windows, which the policy takes for granted (2.28.3).
bool runs_on_copy_engines(const NcclTuning&, const NcclMachine&, workloads::CollectiveKind,
                          const NcclOverrides&);

/// What the user should know of settings that do less than they say. Empty when all is as asked.
std::vector<std::string> nccl_warnings(const NcclTuning&, const topology::NodeSpec&,
                                       std::int64_t nodes, const NcclOverrides&);

}  // namespace stepcast::sim
