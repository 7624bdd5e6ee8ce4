// Sums, casts, the vocabulary's two ends, the optimizer and sharding.
#include <algorithm>
#include <cmath>

#include "calibrate/cuda_recipes.hpp"
#include "calibrate/host_reference.hpp"

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
  Tensor table = backward ? floats(s.vocabulary * s.width) : s.input(s.vocabulary * s.width);
  table.shared = true;
  if (backward) table.content = Content::random;  // added to: any start will do
  const Tensor ids{.element = Element::fp32,
                   .count = s.tokens,
                   .content = Content::ids,
                   .num_ids = s.vocabulary};
  const auto at = [s](const Values& v, std::size_t token) {
    return static_cast<std::size_t>(v[1][token]) * static_cast<std::size_t>(s.width);
  };
  const auto tokens = static_cast<std::size_t>(s.tokens), width = static_cast<std::size_t>(s.width);
  if (!backward)
    return {.tensors = {table, ids, s.result(s.size())},
            .launch =
                [s](Pointers t, cudaStream_t stream) {
                  cuda_kernels::embedding_forward(s.rows(), t[0], as_ids(t[1]), t[2], stream);
                },
            .reference = [=](const Values& v) -> std::vector<Wanted> {
              Doubles y;
              for (std::size_t token = 0; token < tokens; ++token)
                for (std::size_t i = 0; i < width; ++i) y.push_back(v[0][at(v, token) + i]);
              return {{2, y}};
            }};
  return {.tensors = {s.input(s.size()), ids, table},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::embedding_backward(s.rows(), as_ids(t[1]), t[0], as_floats(t[2]),
                                                 stream);
              },
          .reference = [=](const Values& v) -> std::vector<Wanted> {
            Doubles gradient = v[2];
            for (std::size_t token = 0; token < tokens; ++token)
              for (std::size_t i = 0; i < width; ++i)
                gradient[at(v, token) + i] += v[0][token * width + i];
            return {{2, gradient}};
          }};
}

/// tensors: logits, targets, losses, gradient
Recipe cross_entropy(const Shape& s, bool backward) {
  const float scale = 1.0F / static_cast<float>(s.tokens);
  Recipe recipe;
  recipe.tensors = {
      s.input(s.size()),
      {.element = Element::fp32, .count = s.tokens, .content = Content::ids, .num_ids = s.width},
      floats(s.tokens)};
  if (backward) recipe.tensors.push_back(s.result(s.size()));
  recipe.launch = [=](Pointers t, cudaStream_t stream) {
    cuda_kernels::cross_entropy(s.rows(), t[0], as_ids(t[1]), scale, as_floats(t[2]),
                                backward ? t[3] : nullptr, stream);
  };
  recipe.reference = [=](const Values& v) {
    const host::Ids targets = to_ids(v[1]);
    std::vector<Wanted> wanted = {{2, host::reference_cross_entropy(v[0], targets)}};
    if (backward)
      wanted.push_back(
          {3, host::reference_cross_entropy_backward(v[0], targets, static_cast<double>(scale))});
    return wanted;
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

/// tensors: x, scratch, result
Recipe grad_norm(const Shape& s) {
  return {.tensors = {s.input(s.size()), scratch(cuda_kernels::sum_of_squares_workspace_bytes()),
                      floats(1)},
          .launch =
              [s](Pointers t, cudaStream_t stream) {
                cuda_kernels::sum_of_squares(s.type(), s.size(), t[0], as_floats(t[1]),
                                             as_floats(t[2]), stream);
              },
          .reference = [](const Values& v) -> std::vector<Wanted> {
            double sum = 0;
            for (const double x : v[0]) sum += x * x;
            return {{2, {sum}}};
          }};
}

/// FSDP's copies between a layer's tensors and its flat buffer; a Llama layer has nine tensors.
/// The table of pieces holds pointers, so it is written once the tensors lie somewhere.
/// tensors: the pieces' memory, the flat buffer, the table
Recipe flat_copy(const Shape& s, cuda_kernels::FlatDirection direction) {
  constexpr std::int64_t num_pieces = 9;
  const std::int64_t size = s.size() * size_of(s.element);
  const std::int64_t each = (size / num_pieces + 15) / 16 * 16;
  std::vector<cuda_kernels::FlatPiece> pieces;
  for (std::int64_t offset = 0; offset < size; offset += each)
    pieces.push_back({.offset = offset, .bytes = std::min(each, size - offset)});
  const std::int64_t num_blocks = cuda_kernels::number_blocks(pieces);
  const bool in = direction == cuda_kernels::FlatDirection::copy_in;
  Tensor table{.content = Content::bytes};
  table.raw.resize(pieces.size() * sizeof(cuda_kernels::FlatPiece));
  Recipe recipe;
  recipe.tensors = {in ? s.input(s.size()) : s.result(s.size()),
                    in ? s.result(s.size()) : s.input(s.size()), table};
  recipe.prepare = [pieces](Pointers t, cudaStream_t) {
    auto placed = pieces;
    for (auto& piece : placed) piece.tensor = t[0] + piece.offset;
    upload(t[2], placed.data(), placed.size() * sizeof(placed[0]));
  };
  recipe.launch = [=, count = static_cast<std::int64_t>(pieces.size())](Pointers t,
                                                                        cudaStream_t stream) {
    cuda_kernels::flat_copy(direction, reinterpret_cast<const cuda_kernels::FlatPiece*>(t[2]),
                            count, num_blocks, t[1], stream);
  };
  recipe.reference = [in](const Values& v) -> std::vector<Wanted> {
    return {{in ? 1U : 0U, v[in ? 0 : 1]}};
  };
  return recipe;
}

}  // namespace stepcast::calibrate::recipes
