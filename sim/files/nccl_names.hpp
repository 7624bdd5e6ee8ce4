// NCCL's algorithms and protocols with both spellings, ours and NCCL's, and how spellings compare.
#pragma once

#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stepcast::sim {

/// A value with our word for it and NCCL's (src/graph/tuning.cc and nccl_common.h, 2.28.9).
template <class E>
struct Word {
  E value{};
  std::string_view name, nccl;
};

template <class E, std::size_t n>
using Names = std::array<std::pair<std::string_view, E>, n>;

/// Our words of a table, to read and to write.
template <class E, std::size_t n>
constexpr Names<E, n> names_of(const std::array<Word<E>, n>& words) {
  Names<E, n> names{};
  for (std::size_t i = 0; i < n; ++i) names[i] = {words[i].name, words[i].value};
  return names;
}

/// The first `n` in NCCL's spelling.
template <std::size_t n, class E, std::size_t all>
constexpr Names<E, n> nccl_names_of(const std::array<Word<E>, all>& words) {
  static_assert(n <= all);
  Names<E, n> names{};
  for (std::size_t i = 0; i < n; ++i) names[i] = {words[i].nccl, words[i].value};
  return names;
}

enum class Algorithm : std::uint8_t {
  ring,
  tree,
  nvls,
  nvls_tree,
  collnet_direct,
  collnet_chain,
  pat,
  p2p,
  copy_engine,
  node_aware
};
enum class Protocol : std::uint8_t { ll, ll128, simple };

inline constexpr std::size_t num_algorithms = 7;  // without p2p, copy_engine, node_aware: no choice
inline constexpr std::size_t num_protocols = 3;
constexpr std::size_t index_of(Algorithm a) { return static_cast<std::size_t>(a); }
constexpr std::size_t index_of(Protocol p) { return static_cast<std::size_t>(p); }

inline constexpr std::array<Word<Algorithm>, 10> algorithm_words{{
    {Algorithm::ring, "ring", "Ring"},
    {Algorithm::tree, "tree", "Tree"},
    {Algorithm::nvls, "nvls", "NVLS"},
    {Algorithm::nvls_tree, "nvls_tree", "NVLSTree"},
    {Algorithm::collnet_direct, "collnet_direct", "CollNetDirect"},
    {Algorithm::collnet_chain, "collnet_chain", "CollNetChain"},
    {Algorithm::pat, "pat", "PAT"},
    {Algorithm::p2p, "p2p", ""},
    {Algorithm::copy_engine, "copy_engine", ""},
    {Algorithm::node_aware, "node_aware", ""},
}};
inline constexpr std::array<Word<Protocol>, num_protocols> protocol_words{{
    {Protocol::ll, "ll", "LL"},
    {Protocol::ll128, "ll128", "LL128"},
    {Protocol::simple, "simple", "Simple"},
}};
inline constexpr auto algorithm_names = names_of(algorithm_words);
inline constexpr auto protocol_names = names_of(protocol_words);

constexpr std::string_view name_of(Algorithm a) {
  return algorithm_names[static_cast<std::size_t>(a)].first;
}
constexpr std::string_view name_of(Protocol p) {
  return protocol_names[static_cast<std::size_t>(p)].first;
}

/// Small letters and digits alone: "NVLS_TREE" and "NVLSTree" are both "nvlstree".
inline std::string plain_word(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

inline bool same_word(std::string_view a, std::string_view b) {
  return plain_word(a) == plain_word(b);
}

}  // namespace stepcast::sim
