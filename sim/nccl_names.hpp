// NCCL's algorithms and protocols and their spelling.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace stepcast::sim {

enum class Algorithm : std::uint8_t {
  ring,
  tree,
  nvls,
  nvls_tree,
  collnet_direct,
  collnet_chain,
  pat,
  p2p,
  copy_engine
};
enum class Protocol : std::uint8_t { ll, ll128, simple };

inline constexpr std::size_t num_algorithms = 7;  // without p2p and copy_engine: no choice
inline constexpr std::size_t num_protocols = 3;

inline constexpr std::array<std::pair<std::string_view, Algorithm>, 9> algorithm_names{{
    {"ring", Algorithm::ring},
    {"tree", Algorithm::tree},
    {"nvls", Algorithm::nvls},
    {"nvls_tree", Algorithm::nvls_tree},
    {"collnet_direct", Algorithm::collnet_direct},
    {"collnet_chain", Algorithm::collnet_chain},
    {"pat", Algorithm::pat},
    {"p2p", Algorithm::p2p},
    {"copy_engine", Algorithm::copy_engine},
}};
inline constexpr std::array<std::pair<std::string_view, Protocol>, 3> protocol_names{{
    {"ll", Protocol::ll},
    {"ll128", Protocol::ll128},
    {"simple", Protocol::simple},
}};

constexpr std::string_view name_of(Algorithm a) {
  return algorithm_names[static_cast<std::size_t>(a)].first;
}
constexpr std::string_view name_of(Protocol p) {
  return protocol_names[static_cast<std::size_t>(p)].first;
}

}  // namespace stepcast::sim
