#include "sim/files/collective_words.hpp"

#include <algorithm>
#include <cctype>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Dtype;

constexpr std::array<std::pair<std::string_view, Dtype>, 7> other_dtypes{{
    {"float", Dtype::fp32},
    {"float32", Dtype::fp32},
    {"half", Dtype::fp16},
    {"float16", Dtype::fp16},
    {"bfloat16", Dtype::bf16},
    {"fp8_e4m3", Dtype::fp8},
    {"f8e4m3", Dtype::fp8},
}};

std::optional<CollectiveKind> longest_where(auto&& holds) {
  const Word<CollectiveKind>* best = nullptr;
  for (const auto& word : collective_words)
    if ((holds(plain_word(word.name)) || holds(plain_word(word.nccl))) &&
        (best == nullptr || word.nccl.size() > best->nccl.size()))
      best = &word;
  return best == nullptr ? std::nullopt : std::optional(best->value);
}

}  // namespace

std::optional<CollectiveKind> collective_named(std::string_view word) {
  for (const auto& known : collective_words)
    if (same_word(word, known.name) || same_word(word, known.nccl)) return known.value;
  return std::nullopt;
}

std::optional<CollectiveKind> collective_within(std::string_view text) {
  const std::string plain = plain_word(text);
  return longest_where([&](const std::string& word) { return plain.find(word) != plain.npos; });
}

std::string row_word(CollectiveKind kind) {
  return plain_word(collective_words[static_cast<std::size_t>(kind)].nccl);
}

std::optional<Dtype> dtype_named(std::string_view word) {
  for (const auto& [name, dtype] : dtype_names)
    if (word == name) return dtype;
  for (const auto& [name, dtype] : other_dtypes)
    if (word == name) return dtype;
  return std::nullopt;
}

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_receive:
      return 1.0;
  }
  throw BrokenPromise("a collective without a bus factor");
}

}  // namespace stepcast::sim
