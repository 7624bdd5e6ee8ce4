// Sums, casts, the vocabulary's two ends, the optimizer and sharding.
#include <algorithm>
#include <cmath>

#include "calibrate/cuda/recipes.hpp"
#include "calibrate/host/reference.hpp"

namespace stepcast::calibrate::recipes {
namespace {

host::Ids to_ids(const Doubles& values) {
  host::Ids ids;
  for (const double value : values) ids.push_back(static_cast<std::int32_t>(value));
  return ids;
}

}  // namespace

/// tensors: a, b, y
Recipe residual_add(const Shape& s) {
  return {.tensors = {s.input(s.size()), s.input(s.size()), s.result(s.size())},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::residual_add(s.type(), s.size(), t[0], t[1], t[2], stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            Doubles sum = v[0];
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += v[1][i];
            return {{2, sum}};
          }};
}

/// tensors: x, y in fp32
Recipe cast(const Shape& s) {
  return {.tensors = {s.input(s.size()), floats(s.size())},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::cast(s.type(), ElementType::fp32, s.size(), t[0], t[1], stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            return {{1, v[0]}};
          }};
}

/// tensors: table, ids, y; or dy, ids, gradient of the table
Recipe embedding(const Shape& s, bool backward) {
  Tensor table = s.input(s.vocabulary * s.width);  // backward added to: any start will do
  table.shared = true;
  const Tensor ids{.element = Element::fp32,
                   .count = s.tokens,
                   .content = Content::ids,
                   .num_ids = s.vocabulary};
  const cuda_kernels::VocabularyPart all{0, s.vocabulary};
  const auto at = [s](const Values& v, std::size_t token) {
    return static_cast<std::size_t>(v[1][token]) * static_cast<std::size_t>(s.width);
  };
  const auto tokens = static_cast<std::size_t>(s.tokens), width = static_cast<std::size_t>(s.width);
  if (!backward)
    return {.tensors = {table, ids, s.result(s.size())},
            .launch =
                [=](Pointers t, cudaStream_t stream) {
                  cuda_kernels::embedding_forward(s.rows(), all, t[0], as_ids(t[1]), t[2], stream);
                },
            .reference = [=](const Values& v) -> std::vector<Wanted> {
              Doubles y;
              for (std::size_t token = 0; token < tokens; ++token)
                for (std::size_t i = 0; i < width; ++i) y.push_back(v[0][at(v, token) + i]);
              return {{2, y}};
            }};
  return {.tensors = {s.input(s.size()), ids, table},
          .launch =
              [=](Pointers t, cudaStream_t stream) {
                cuda_kernels::embedding_backward(s.rows(), all, as_ids(t[1]), t[0], t[2], stream);
              },
          .reference = [=](const Values& v) -> std::vector<Wanted> {
            Doubles gradient = v[2];
            for (std::size_t token = 0; token < tokens; ++token)
              for (std::size_t i = 0; i < width; ++i)
                gradient[at(v, token) + i] += v[0][token * width + i];
            return {{2, gradient}};
          }};
}

/// tensors: logits, targets, lse, target's logit; backward in place, from lse.
Recipe cross_entropy(const Shape& s, bool backward) {
  const float scale = 1.0F / static_cast<float>(s.tokens);
  Recipe recipe;
  recipe.tensors = {
      s.input(s.size()),
      {.element = Element::fp32, .count = s.tokens, .content = Content::ids, .num_ids = s.width},
      floats(s.tokens),
      floats(s.tokens)};
  const auto forward = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::loss_forward(s.rows(), 0, t[0], as_ids(t[1]), as_floats(t[2]), as_floats(t[3]),
                               stream);
  };
  if (!backward) {
    recipe.launch = forward;
    recipe.reference = [=](const Values& v) -> std::vector<Wanted> {
      Doubles lse = host::reference_cross_entropy(v[0], to_ids(v[1])), target;
      for (std::size_t token = 0; token < lse.size(); ++token) {
        const auto column = static_cast<std::size_t>(v[1][token]);
        target.push_back(v[0][token * static_cast<std::size_t>(s.width) + column]);
        lse[token] += target.back();
      }
      return {{2, lse}, {3, target}};
    };
    return recipe;
  }
  recipe.prepare = forward;
  recipe.launch = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::loss_backward(s.rows(), 0, t[0], as_ids(t[1]), as_floats(t[2]), scale, stream);
  };
  recipe.reference = [=](const Values& v) -> std::vector<Wanted> {
    return {{0, host::reference_cross_entropy_backward(v[0], to_ids(v[1]),
                                                       static_cast<double>(scale))}};
  };
  return recipe;
}

/// tensors: gradient, master, first and second moment; all fp32
Recipe adamw(const Shape& s) {
  const cuda_kernels::AdamW how{.learning_rate = 1e-3F, .weight_decay = 0.1F, .step = 3};
  Recipe recipe;
  recipe.tensors = {floats(s.size(), Content::random), floats(s.size(), Content::random),
                    floats(s.size(), Content::random), floats(s.size(), Content::positive)};
  recipe.launch = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::adamw(how,
                        {.gradient = t[0],
                         .master = as_floats(t[1]),
                         .first_moment = as_floats(t[2]),
                         .second_moment = as_floats(t[3])},
                        s.size(), stream);
  };
  recipe.reference = [how](const Values& v) -> std::vector<Wanted> {
    const double beta1 = static_cast<double>(how.beta1), beta2 = static_cast<double>(how.beta2),
                 rate = static_cast<double>(how.learning_rate),
                 decay = static_cast<double>(how.weight_decay);
    Doubles master = v[1], first = v[2], second = v[3];
    for (std::size_t i = 0; i < master.size(); ++i) {
      const double gradient = v[0][i];
      first[i] = beta1 * first[i] + (1 - beta1) * gradient;
      second[i] = beta2 * second[i] + (1 - beta2) * gradient * gradient;
      const double m = first[i] / (1 - std::pow(beta1, 3)),
                   u = second[i] / (1 - std::pow(beta2, 3));
      master[i] -=
          rate * (m / (std::sqrt(u) + static_cast<double>(how.epsilon)) + decay * master[i]);
    }
    return {{1, master}, {2, first}, {3, second}};
  };
  return recipe;
}

template <class Piece>
Tensor table_of(std::size_t pieces) {
  Tensor table{.content = Content::bytes};
  table.raw.resize(pieces * sizeof(Piece));
  return table;
}

/// A table holds pointers, so it is written once the tensors lie somewhere.
template <class Piece>
void write_table(std::byte* table, const std::vector<Piece>& pieces) {
  upload(table, pieces.data(), pieces.size() * sizeof(Piece));
}

/// tensors: x, scratch, result, table
Recipe grad_norm(const Shape& s) {
  using Piece = cuda_kernels::SquaresPiece;
  std::vector<Piece> whole{{.elements = s.size()}};
  const std::int64_t blocks = cuda_kernels::number_blocks(std::span(whole));
  return {.tensors = {s.input(s.size()), floats(blocks), floats(1), table_of<Piece>(1)},
          .prepare =
              [whole](Pointers t, cudaStream_t) {
                auto placed = whole;
                placed[0].tensor = t[0];
                write_table(t[3], placed);
              },
          .launch =
              [s, blocks](Pointers t, cudaStream_t stream) {
                cuda_kernels::sums_of_squares(s.type(),
                                              {reinterpret_cast<const Piece*>(t[3]), 1, blocks},
                                              as_floats(t[1]), as_floats(t[2]), stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            double sum = 0;
            for (const double x : v[0]) sum += x * x;
            return {{2, {sum}}};
          }};
}

/// FSDP's copies between a layer's tensors and its flat buffer; a Llama layer has nine tensors.
/// tensors: the pieces' memory, the flat buffer, the table
Recipe flat_copy(const Shape& s, bool in) {
  using Piece = cuda_kernels::CopyPiece;
  constexpr std::int64_t num_pieces = 9;
  const std::int64_t each = (s.size() / num_pieces + 8) / 8 * 8;  // 16 bytes or more
  std::vector<Piece> pieces;
  for (std::int64_t first = 0; first < s.size(); first += each)
    pieces.push_back({.elements = std::min(each, s.size() - first)});
  const std::int64_t num_blocks = cuda_kernels::number_blocks(std::span(pieces));
  const auto num = static_cast<std::int64_t>(pieces.size());
  Recipe recipe;
  recipe.tensors = {in ? s.input(s.size()) : s.result(s.size()),
                    in ? s.result(s.size()) : s.input(s.size()), table_of<Piece>(pieces.size())};
  recipe.prepare = [=](Pointers t, cudaStream_t) {
    auto placed = pieces;
    std::int64_t offset = 0;
    for (Piece& piece : placed) {
      piece.to = t[in ? 1 : 0] + offset;
      piece.from = t[in ? 0 : 1] + offset;
      offset += piece.elements * size_of(s.element);
    }
    write_table(t[2], placed);
  };
  recipe.launch = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::copies(s.type(), s.type(),
                         {reinterpret_cast<const Piece*>(t[2]), num, num_blocks}, stream);
  };
  recipe.reference = [in](const Values& v) -> std::vector<Wanted> {
    return {{in ? 1U : 0U, v[in ? 0 : 1]}};
  };
  return recipe;
}

}  // namespace stepcast::calibrate::recipes
