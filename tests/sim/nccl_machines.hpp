// Machines and shortcuts for the tests of NCCL's choice.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "collective_rows.hpp"
#include "sim/network/nccl/choice.hpp"

namespace stepcast::sim {

inline constexpr auto AR = workloads::CollectiveKind::all_reduce;
inline constexpr auto AG = workloads::CollectiveKind::all_gather;
inline constexpr auto RS = workloads::CollectiveKind::reduce_scatter;
inline constexpr auto BC = workloads::CollectiveKind::broadcast;
inline constexpr auto RD = workloads::CollectiveKind::reduce;

inline NcclTuning tuning_of(const std::string& version) {
  return nccl_tuning_of(STEPCAST_SOURCE_DIR "/scenarios/nccl", version);
}

inline GroupShape whole_nodes(std::int64_t nodes) { return {8 * nodes, nodes, 8, 1}; }
inline GroupShape one_rank_a_node(std::int64_t nodes) { return {nodes, nodes, 1, 1}; }

inline NcclMachine machine_of(topology::NcclGeneration architecture, GroupShape shape) {
  return nccl_machine(dgx(architecture), shape);
}

/// On a fabric whose switches sum, with NCCL_COLLNET_ENABLE=1.
inline NcclMachine with_sharp(topology::NcclGeneration architecture, GroupShape shape) {
  NcclMachine machine = machine_of(architecture, shape);
  machine.sharp = true;
  return machine;
}

/// NCCL's own figures for one algorithm and protocol; throws when it does not offer them.
inline NcclOption offered(const std::string& version, const NcclMachine& on, const NcclCall& call,
                          Algorithm algorithm, Protocol protocol = Protocol::simple) {
  for (const NcclOption& o : nccl_options(tuning_of(version), on, call))
    if (o.algorithm == algorithm && o.protocol == protocol) return o;
  throw std::runtime_error("not offered");
}

inline bool offers(const std::string& version, const NcclMachine& on, const NcclCall& call,
                   Algorithm algorithm) {
  for (const NcclOption& o : nccl_options(tuning_of(version), on, call))
    if (o.algorithm == algorithm) return true;
  return false;
}

inline bool offers(const std::string& version, const NcclMachine& on, const NcclCall& call,
                   Protocol protocol) {
  for (const NcclOption& o : nccl_options(tuning_of(version), on, call))
    if (o.protocol == protocol) return true;
  return false;
}

inline double in_us(Duration d) { return seconds(d) * 1e6; }
inline double in_gb(BytesPerSecond b) { return b.value / 1e9; }

/// Latency of an option: its estimate less the bytes over the bandwidth.
inline double latency_us(const NcclOption& o, Bytes bytes) {
  return in_us(o.estimate) - static_cast<double>(bytes.value) / o.bandwidth.value * 1e6;
}

}  // namespace stepcast::sim
