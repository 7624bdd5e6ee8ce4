#include "workloads/plan/stage_split.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {
namespace {

using Layers = std::vector<std::int64_t>;

/// What stands before the layers and after them counts as that many layers too; the first parts
/// take the remainder.
Layers with_ends(std::int64_t layers, std::int64_t parts, std::int64_t before, std::int64_t after) {
  Layers out;
  for (std::int64_t k = 0; k < parts; ++k)
    out.push_back(layers_of_stage(before + layers + after, parts, k) - (k == 0 ? before : 0) -
                  (k == parts - 1 ? after : 0));
  return out;
}

/// Parts that are filled in turn, each up to `limit`; parameters of what stands before and after
/// the layers count. Empty: they do not take all.
Layers filled(const TransformerShape& s, std::int64_t parts, std::int64_t limit) {
  Layers out(static_cast<std::size_t>(parts));
  std::int64_t next = 0;
  for (std::int64_t k = 0; k < parts; ++k) {
    const std::int64_t before = k == 0 ? embedding_parameters(s) : 0;
    const std::int64_t after = k == parts - 1 ? head_parameters(s) + mtp_parameters(s) : 0;
    std::int64_t room = limit - before - after;
    for (; next < s.layers && layer_parameters(s, next) <= room; ++next) {
      room -= layer_parameters(s, next);
      ++out[static_cast<std::size_t>(k)];
    }
  }
  return next < s.layers ? Layers{} : out;
}

/// With the smallest limit that takes all.
Layers balanced_by_parameters(const TransformerShape& s, std::int64_t parts) {
  std::int64_t low = 0, high = parameters(s);
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (filled(s, parts, middle).empty() ? low : high) = middle;
  }
  return filled(s, parts, high);
}

/// A part takes layers until they are more than its share; the last takes what is left.
Layers balanced_by_products(const TransformerShape& s, std::int64_t parts) {
  const std::int64_t layer = 4 * s.heads * s.head_dim * s.hidden + 3 * s.ffn_hidden * s.hidden;
  const std::int64_t total = s.layers * layer + s.vocab * s.hidden;
  Layers out(static_cast<std::size_t>(parts));
  std::int64_t part = 0;
  for (std::int64_t l = 1; l <= s.layers; ++l) {
    ++out[static_cast<std::size_t>(part)];
    if (part + 1 < parts && l * layer * parts > (part + 1) * total) ++part;
  }
  return out;
}

/// Parts between the others that hold none take one of the last of the fullest before them.
void give_each_a_layer(Layers& layers) {
  for (std::size_t k = layers.size() - 1; k-- > 1;)
    if (layers[k] == 0) {
      std::size_t fullest = 0;
      for (std::size_t i = 0; i < k; ++i)
        if (layers[i] >= layers[fullest]) fullest = i;
      --layers[fullest];
      ++layers[k];
    }
}

}  // namespace

std::vector<std::int64_t> stage_layers(StageSplit split, const TransformerShape& s,
                                       std::int64_t parts) {
  expects(parts > 0 && s.layers > 0, "parts of a model");
  Layers out;
  if (parts == 1 || parts > s.layers) return out;
  switch (split) {
    case StageSplit::blocks:
      break;
    case StageSplit::embeddings:
      out = with_ends(s.layers, parts, 1, 1);
      break;
    case StageSplit::modules:
      out = with_ends(s.layers, parts, 1, 2);
      break;
    case StageSplit::parameters:
      out = balanced_by_parameters(s, parts);
      break;
    case StageSplit::products:
      out = balanced_by_products(s, parts);
      give_each_a_layer(out);
      break;
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k] < (k == 0 || k + 1 == out.size() ? 0 : 1)) return {};
  return out;
}

}  // namespace stepcast::workloads
