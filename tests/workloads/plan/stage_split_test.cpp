// How frameworks share layers among stages, against what their own loops give.
#include "workloads/plan/stage_split.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::workloads {
namespace {

using Layers = std::vector<std::int64_t>;

TransformerShape llama(std::int64_t layers, std::int64_t hidden, std::int64_t ffn,
                       std::int64_t vocab) {
  TransformerShape s;
  s.layers = layers;
  s.hidden = hidden;
  s.heads = s.kv_heads = 32;
  s.head_dim = hidden / 32;
  s.ffn_hidden = ffn;
  s.vocab = vocab;
  return s;
}

const TransformerShape small_with_large_head = llama(28, 3072, 8192, 131'072);

/// Multiply-adds per token of the slowest part, head on the last part.
double slowest(const TransformerShape& s, Layers layers, std::int64_t parts) {
  if (layers.empty())
    for (std::int64_t k = 0; k < parts; ++k) layers.push_back(layers_of_stage(s.layers, parts, k));
  const double layer = 4.0 * static_cast<double>(s.hidden * s.hidden) +
                       3.0 * static_cast<double>(s.hidden * s.ffn_hidden);
  double most = 0;
  for (std::size_t k = 0; k < layers.size(); ++k)
    most = std::max(most, static_cast<double>(layers[k]) * layer +
                              (k + 1 == layers.size()
                                   ? static_cast<double>(s.vocab) * static_cast<double>(s.hidden)
                                   : 0.0));
  return most / layer;
}

}  // namespace

TEST_CASE("the ends count as layers where the framework counts them") {
  // 60 layers, embedding before them, final norm and head after: 63 modules on 8 stages.
  const TransformerShape s = llama(60, 4096, 11'008, 50'304);
  CHECK(stage_layers(StageSplit::modules, s, 8) == Layers{7, 8, 8, 8, 8, 8, 8, 5});
  CHECK(stage_layers(StageSplit::blocks, s, 8).empty());  // 8 8 8 8 7 7 7 7
  // Llama-3.1 405B: 126 layers, embedding and loss on 64 parts of two.
  const Layers parts =
      stage_layers(StageSplit::embeddings, llama(126, 16'384, 53'248, 128'256), 64);
  CHECK(parts.front() == 1);
  CHECK(parts[1] == 2);
  CHECK(parts.back() == 1);
}

TEST_CASE("nanotron's last stages hold the head of a large vocabulary") {
  const auto split = [](std::int64_t parts) {
    return stage_layers(StageSplit::products, small_with_large_head, parts);
  };
  // A layer is 113.2 M, the head 402.7 M: 3.56 layers, 31.56 in all.
  CHECK(split(1).empty());
  CHECK(split(2) == Layers{16, 12});
  CHECK(split(4) == Layers{8, 8, 8, 4});
  CHECK(split(8) == Layers{4, 4, 4, 4, 4, 4, 4, 0});
  // Two on each of fourteen, the head alone on the fifteenth, the loss on the last: a part between
  // the others keeps a layer here.
  CHECK(split(16) == Layers{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 0});
  // The example of a public page on Llama 3 8B: 5 4 4 4 ... on 8 stages.
  const Layers eight = stage_layers(StageSplit::products, llama(32, 4096, 14'336, 128'256), 8);
  CHECK(eight[0] == 5);
  CHECK(eight[1] == 4);
}

TEST_CASE("a head that is balanced makes the slowest stage faster by what it weighs") {
  const TransformerShape& s = small_with_large_head;
  const double head = 402.7 / 113.2;
  CHECK(slowest(s, stage_layers(StageSplit::blocks, s, 4), 4) == Approx(7 + head).epsilon(1e-3));
  CHECK(slowest(s, stage_layers(StageSplit::products, s, 4), 4) == Approx(8.0));
  CHECK(slowest(s, stage_layers(StageSplit::blocks, s, 8), 8) == Approx(3 + head).epsilon(1e-3));
  CHECK(slowest(s, stage_layers(StageSplit::products, s, 8), 8) == Approx(4.0));
}

TEST_CASE("the largest stage holds as few parameters as it can") {
  const TransformerShape& s = small_with_large_head;
  const auto largest = [&](const Layers& layers) {
    std::int64_t most = 0;
    for (std::size_t k = 0; k < layers.size(); ++k)
      most =
          std::max(most, layers[k] * layer_parameters(s) + (k == 0 ? embedding_parameters(s) : 0) +
                             (k + 1 == layers.size() ? head_parameters(s) : 0));
    return most;
  };
  const Layers found = stage_layers(StageSplit::parameters, s, 4);
  std::int64_t least = parameters(s);
  for (std::int64_t a = 0; a <= 28; ++a)
    for (std::int64_t b = 0; a + b <= 28; ++b)
      for (std::int64_t c = 0; a + b + c <= 28; ++c)
        least = std::min(least, largest({a, b, c, 28 - a - b - c}));
  CHECK(largest(found) == least);
}

TEST_CASE("every rule shares out all layers") {
  for (const StageSplit split :
       {StageSplit::embeddings, StageSplit::modules, StageSplit::parameters, StageSplit::products})
    for (std::int64_t layers = 2; layers < 40; ++layers)
      for (std::int64_t parts = 2; parts <= layers; ++parts) {
        const TransformerShape s = llama(layers, 1024, 4096, 4000 * layers);
        const Layers out = stage_layers(split, s, parts);
        if (out.empty()) continue;
        CAPTURE(static_cast<int>(split), layers, parts, out);
        REQUIRE(std::ssize(out) == parts);
        REQUIRE(std::accumulate(out.begin(), out.end(), std::int64_t{0}) == layers);
        for (std::size_t k = 1; k + 1 < out.size(); ++k) REQUIRE(out[k] >= 1);
      }
}

}  // namespace stepcast::workloads
