#include "validate/trainer/ranks/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"

namespace stepcast::validate {
namespace {

constexpr std::int64_t bytes_of_alphabet = 256;

using Pair = std::pair<Token, Token>;

/// splitmix64 (Steele et al. 2014): the next of a chain, or a hash of its state.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

/// Up to `count` pairs of neighbours that occur twice or more, the most frequent first.
std::vector<Pair> frequent_pairs(const std::vector<Token>& tokens, std::size_t count) {
  std::map<Pair, std::int64_t> occurrences;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) ++occurrences[{tokens[i], tokens[i + 1]}];
  std::vector<std::pair<std::int64_t, Pair>> order;
  for (const auto& [pair, times] : occurrences)
    if (times > 1) order.emplace_back(-times, pair);
  std::ranges::sort(order);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) pairs.push_back(order[i].second);
  return pairs;
}

std::vector<Token> merged(const std::vector<Token>& tokens, const std::map<Pair, Token>& id_of) {
  std::vector<Token> shorter;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = i + 1 < tokens.size() ? id_of.find({tokens[i], tokens[i + 1]}) : id_of.end();
    shorter.push_back(found == id_of.end() ? tokens[i] : found->second);
    if (found != id_of.end()) ++i;
  }
  return shorter;
}

/// Byte pair encoding, many merges a pass: half of the free ids go to the pairs of this pass.
void merge_pairs(Text& text) {
  for (std::int64_t used = bytes_of_alphabet; used < text.vocab;) {
    const auto pairs =
        frequent_pairs(text.tokens, static_cast<std::size_t>((text.vocab - used + 1) / 2));
    if (pairs.empty()) return;
    std::map<Pair, Token> id_of;
    for (const Pair& pair : pairs) id_of[pair] = static_cast<Token>(used++);
    text.tokens = merged(text.tokens, id_of);
  }
}

constexpr std::array<std::string_view, 8> names{"A ring",  "The root", "A rank",   "The switch",
                                                "A stage", "A layer",  "One core", "The host"};
constexpr std::array<std::string_view, 8> verbs{"sends",   "adds up", "waits for", "reads",
                                                "gathers", "keeps",   "scatters",  "launches"};
constexpr std::array<std::string_view, 8> things{"a gradient",     "the weights", "two messages",
                                                 "its peer",       "a kernel",    "every shard",
                                                 "the next batch", "a token"};
constexpr std::array<std::string_view, 4> ends{", ", ". ", " and then ", ".\n"};

}  // namespace

Text text_of(const std::string& bytes, std::int64_t vocab) {
  expects(vocab > 0, "a vocabulary");
  Text text{{}, vocab};
  for (const char c : bytes)
    text.tokens.push_back(static_cast<Token>(static_cast<unsigned char>(c) % vocab));
  if (vocab > bytes_of_alphabet) merge_pairs(text);
  return text;
}

Text read_text(const std::string& path, std::int64_t vocab) {
  const std::string bytes = sim::read_input(path);
  if (bytes.empty()) throw InputError(path, "has no text");
  return text_of(bytes, vocab);
}

std::string generated_text(std::int64_t bytes, std::uint64_t seed) {
  std::string text;
  std::uint64_t state = seed;
  const auto one_of = [&state](const auto& words) {
    state = mixed(state);
    return words[state % words.size()];
  };
  while (static_cast<std::int64_t>(text.size()) < bytes) {
    for (const std::string_view word : {one_of(names), one_of(verbs), one_of(things)})
      text.append(word).append(" ");
    text.pop_back();
    text += one_of(ends);
  }
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

Samples samples_of(const Text& text, const workloads::Batch& batch, std::int64_t step,
                   std::int64_t data_rank, std::int64_t micro_batch, std::uint64_t seed) {
  const auto length = static_cast<std::uint64_t>(batch.sequence) + 1;  // with the last target
  if (text.tokens.size() < length)
    throw InputError("the text", "is shorter than one sequence",
                     std::to_string(text.tokens.size()) + " tokens");
  const std::uint64_t places = text.tokens.size() - length + 1;
  Samples samples;
  for (std::int64_t b = 0; b < batch.micro_batch; ++b) {
    const std::int64_t i = (data_rank * batch.micro_batches + micro_batch) * batch.micro_batch + b;
    const std::uint64_t place =
        mixed(mixed(seed + static_cast<std::uint64_t>(step)) + static_cast<std::uint64_t>(i)) %
        places;
    const auto first = text.tokens.begin() + static_cast<std::ptrdiff_t>(place);
    const auto last = first + static_cast<std::ptrdiff_t>(length - 1);
    samples.inputs.insert(samples.inputs.end(), first, last);
    samples.targets.insert(samples.targets.end(), first + 1, last + 1);
  }
  return samples;
}

}  // namespace stepcast::validate
