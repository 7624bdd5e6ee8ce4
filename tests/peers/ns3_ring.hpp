// A ring AllGather packet by packet: hosts under one switch, UDP over point-to-point links.
#pragma once

#include <cstdint>

namespace stepcast::peers {

struct PacketRing {
  std::uint32_t hosts = 16;
  std::uint32_t steps = 15;
  std::uint32_t chunk = 1 << 20;   // bytes that every host sends in a step
  std::uint32_t payload = 4096;    // of a packet
  double bits_per_second = 400e9;  // of every link, each way
  double latency = 0.0;            // seconds from host to host without the bytes
};

/// Bytes on the wire per packet beyond its payload: UDP 8, IPv4 20, PPP 2.
inline constexpr std::uint32_t header_bytes = 30;

/// Seconds until the last host has the last chunk. A host sends what it received in the step
/// before, once it has all of it. Once per process.
double ns3_ring(const PacketRing&);

}  // namespace stepcast::peers
