// The kernels of a layer of experts as tasks, each with its textbook form. Logits are uniform, so
// that experts have about as many rows; scores are a softmax's (a sigmoid takes as many
// exponentials).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/host/elementwise.hpp"
#include "calibrate/host/experts.hpp"

namespace stepcast::calibrate::host {
namespace {

// Of the ranks that rows come from and of the experts here that they go to: a block is long enough
// that its time hardly depends on how many there are.
constexpr std::size_t sort_sources = 2, sort_experts = 2;
// For each of a token's experts so many exist, where a task tells no more.
constexpr std::int64_t experts_per_choice = 2;

struct Routed {
  ExpertChoice how;
  Ids choice, row, counts;
  Floats weights;
};

Routed routed(std::span<const float> logits, const ExpertChoice& how, std::size_t rows) {
  const std::size_t chosen = logits.size() / static_cast<std::size_t>(how.experts) *
                             static_cast<std::size_t>(how.per_token);
  Routed out{how, Ids(chosen), Ids(chosen), Ids(static_cast<std::size_t>(how.experts)),
             Floats(rows)};
  choose_experts<float>(out.choice, out.row, out.counts, out.weights, logits, how);
  return out;
}

/// Where the copies of a task's tokens go, dropped beyond its rows, which need not all be taken.
Ids rows_of(std::size_t tokens, std::size_t per_token, std::size_t rows, std::uint64_t seed) {
  const auto k = static_cast<std::int64_t>(per_token);
  ExpertChoice how{.experts = std::min(experts_per_choice * k, static_cast<std::int64_t>(rows)),
                   .per_token = k};
  if (rows != tokens * per_token) {
    how.capacity = static_cast<std::int64_t>(rows) / how.experts;
    how.padded = true;
  }
  const Floats logits = random_floats(tokens * static_cast<std::size_t>(how.experts), seed);
  return routed(logits, how, rows).row;
}

ExpertChoice choice_of(const ElementwiseTask& task) {
  if (task.per_token < 1 || task.per_token > task.width)
    throw Unsupported("a token goes to one expert at least, and to each once");
  return {.experts = task.width, .per_token = task.per_token};
}

/// Of the chosen experts alone: the softmax over them, or over all where one is chosen.
Doubles reference_weights(const Floats& logits, const ExpertChoice& how, std::size_t token) {
  const auto experts = static_cast<std::size_t>(how.experts);
  const auto k = static_cast<std::size_t>(how.per_token);
  const float* scores = &logits[token * experts];
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  double sum = 0;
  for (std::size_t i = 0; i < (k > 1 ? k : experts); ++i)
    sum += std::exp(static_cast<double>(scores[order[i]]));
  Doubles weights(experts);
  for (std::size_t i = 0; i < k; ++i)
    weights[order[i]] = std::exp(static_cast<double>(scores[order[i]])) / sum;
  return weights;
}

/// Scattered to (T, E): of each token and chosen expert.
Floats by_expert(const Routed& r, std::span<const float> of_rows) {
  const auto k = static_cast<std::size_t>(r.how.per_token);
  const auto experts = static_cast<std::size_t>(r.how.experts);
  Floats out(r.choice.size() / k * experts);
  for (std::size_t i = 0; i < r.choice.size(); ++i)
    out[i / k * experts + static_cast<std::size_t>(r.choice[i])] =
        of_rows[static_cast<std::size_t>(r.row[i])];
  return out;
}

double check_router(const ExpertChoice& how, std::size_t tokens, bool backward,
                    std::uint64_t seed) {
  const auto experts = static_cast<std::size_t>(how.experts);
  const std::size_t rows = tokens * static_cast<std::size_t>(how.per_token);
  const Floats logits = random_floats(tokens * experts, seed);
  const Routed r = routed(logits, how, rows);
  Doubles weights;
  for (std::size_t t = 0; t < tokens; ++t) {
    const Doubles of_token = reference_weights(logits, how, t);
    weights.insert(weights.end(), of_token.begin(), of_token.end());
  }
  if (!backward) return relative_difference(by_expert(r, r.weights), weights);
  const Floats slopes = random_floats(rows, seed + 1);
  Floats dlogits(logits.size());
  choose_experts_backward<float>(dlogits, slopes, logits, r.choice, r.row, how);
  // A softmax's: w_e (g_e - sum of w g); over all experts where one is chosen.
  const Floats g = by_expert(r, slopes);
  Doubles reference(logits.size());
  for (std::size_t t = 0; t < tokens; ++t) {
    double along = 0, all = 0;
    for (std::size_t e = t * experts; e < (t + 1) * experts; ++e) {
      along += weights[e] * static_cast<double>(g[e]);
      all += std::exp(static_cast<double>(logits[e]));
    }
    for (std::size_t e = t * experts; e < (t + 1) * experts; ++e) {
      const double share =
          how.per_token > 1 ? weights[e] : std::exp(static_cast<double>(logits[e])) / all;
      reference[e] = weights[e] * static_cast<double>(g[e]) - share * along;
    }
  }
  return relative_difference(dlogits, reference);
}

HostTask router_choice(const ElementwiseTask& task, const ExpertChoice& how) {
  const Shape s{static_cast<std::size_t>(task.tokens), static_cast<std::size_t>(task.width)};
  const std::size_t chosen = s.t * static_cast<std::size_t>(how.per_token);
  HostTask out{.inputs = s.size(), .outputs = chosen};
  out.run = [=](std::span<float> in, std::span<float> weights) {
    thread_local Ids choice, row, counts;  // a few bytes for each token
    choice.resize(chosen);
    row.resize(chosen);
    counts.resize(s.w);
    choose_experts<float>(choice, row, counts, weights, in, how);
  };
  out.bytes = four(s.size() + 3 * chosen);
  return out;
}

HostTask router_gradient(const ElementwiseTask& task, const ExpertChoice& how) {
  const Shape s{static_cast<std::size_t>(task.tokens), static_cast<std::size_t>(task.width)};
  const std::size_t chosen = s.t * static_cast<std::size_t>(how.per_token);
  const Routed r = routed(random_floats(s.size(), 7), how, chosen);
  HostTask out{.inputs = s.size() + chosen, .outputs = s.size()};
  out.run = [=](std::span<float> in, std::span<float> dlogits) {
    choose_experts_backward<float>(dlogits, in.subspan(s.size(), chosen), in.first(s.size()),
                                   r.choice, r.row, how);
  };
  out.bytes = four(2 * s.size() + 3 * chosen);
  return out;
}

/// Tokens of a task and their rows; `check` sees fewer.
struct TokenRows {
  std::size_t tokens, width, per_token, rows;
  explicit TokenRows(const ElementwiseTask& t)
      : tokens(static_cast<std::size_t>(t.tokens)),
        width(static_cast<std::size_t>(t.width)),
        per_token(static_cast<std::size_t>(t.per_token)),
        rows(static_cast<std::size_t>(t.rows)) {
    if (t.per_token < 1 || t.rows < t.per_token)
      throw Unsupported("tokens go to experts, in as many rows at least");
  }
  TokenRows checked() const {
    TokenRows few = *this;
    few.tokens = Shape{tokens, width}.checked().t;
    few.rows = std::max(per_token, rows * few.tokens / tokens);
    return few;
  }
  Ids row(std::uint64_t seed) const { return rows_of(tokens, per_token, rows, seed); }
  Bytes bytes() const { return four((tokens + rows) * width); }
};

/// What goes where: f(token, row) of every copy that is not dropped.
template <class F>
void each_copy(const TokenRows& s, const Ids& row, F f) {
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i] >= 0) f(i / s.per_token * s.width, static_cast<std::size_t>(row[i]) * s.width);
}

double check_moved(const TokenRows& s, bool back, std::uint64_t seed) {
  const Ids row = s.row(seed);
  const Floats in = random_floats((back ? s.rows : s.tokens) * s.width, seed + 1);
  Floats result((back ? s.tokens : s.rows) * s.width);
  const auto width = static_cast<std::int64_t>(s.width);
  if (back)
    sums_of_rows<float>(result, in, row, width);
  else
    rows_of_tokens<float>(result, in, row, width);
  Doubles reference(result.size());
  each_copy(s, row, [&](std::size_t token, std::size_t at) {
    for (std::size_t h = 0; h < s.width; ++h)
      reference[(back ? token : at) + h] += static_cast<double>(in[(back ? at : token) + h]);
  });
  return relative_difference(result, reference);
}

Ids sort_counts(std::size_t rows) {
  constexpr std::size_t blocks = sort_sources * sort_experts;
  Ids counts(blocks, static_cast<std::int32_t>(rows / blocks));
  counts.back() += static_cast<std::int32_t>(rows % blocks);
  return counts;
}

double check_sorted(const Shape& s, std::uint64_t seed) {
  const Floats in = random_floats(s.size(), seed);
  const Ids counts = sort_counts(s.t);
  Floats sorted(in.size()), back(in.size());
  const auto width = static_cast<std::int64_t>(s.w);
  sort_rows<float>(sorted, in, counts, sort_experts, width, false);
  sort_rows<float>(back, sorted, counts, sort_experts, width, true);
  // The second source's rows of the first expert come after the first source's.
  const auto of = [&](std::size_t block) { return static_cast<std::size_t>(counts[block]) * s.w; };
  const auto from = in.begin() + static_cast<std::ptrdiff_t>(of(0) + of(1));
  const bool right = std::equal(from, from + static_cast<std::ptrdiff_t>(of(2)),
                                sorted.begin() + static_cast<std::ptrdiff_t>(of(0)));
  return right ? relative_difference(back, doubles(in)) : 1.0;
}

}  // namespace

HostTask router(const ElementwiseTask& task) {
  const ExpertChoice how = choice_of(task);
  HostTask out = task.backward ? router_gradient(task, how) : router_choice(task, how);
  const std::size_t tokens =
      Shape{static_cast<std::size_t>(task.tokens), static_cast<std::size_t>(task.width)}
          .checked()
          .t;
  out.check = [=, backward = task.backward](std::uint64_t seed) {
    return check_router(how, tokens, backward, seed);
  };
  return out;
}

HostTask permute(const ElementwiseTask& task) {
  const TokenRows s(task);
  HostTask out{.inputs = s.tokens * s.width, .outputs = s.rows * s.width};
  out.run = [width = task.width, row = s.row(7)](std::span<float> x, std::span<float> rows) {
    rows_of_tokens<float>(rows, x, row, width);
  };
  out.check = [s](std::uint64_t seed) { return check_moved(s.checked(), false, seed); };
  out.bytes = s.bytes();
  return out;
}

HostTask unpermute(const ElementwiseTask& task) {
  const TokenRows s(task);
  HostTask out{.inputs = s.rows * s.width, .outputs = s.tokens * s.width};
  out.run = [width = task.width, row = s.row(7)](std::span<float> rows, std::span<float> y) {
    sums_of_rows<float>(y, rows, row, width);
  };
  out.check = [s](std::uint64_t seed) { return check_moved(s.checked(), true, seed); };
  out.bytes = s.bytes();
  return out;
}

HostTask sorted_rows(const Shape& s) {
  HostTask out{.inputs = s.size(), .outputs = s.size()};
  out.run = [counts = sort_counts(s.t), width = static_cast<std::int64_t>(s.w)](
                std::span<float> in, std::span<float> to) {
    sort_rows<float>(to, in, counts, sort_experts, width, false);
  };
  out.check = [s](std::uint64_t seed) { return check_sorted(s.checked(), seed); };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask weighted_silu_mul(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = 2 * n + s.t, .outputs = n};
  out.run = [=](std::span<float> in, std::span<float> y) {
    weighted_silu_mul_forward<float>(y, in.first(n), in.subspan(n, n), in.subspan(2 * n, s.t));
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats gate = random_floats(c.size(), seed), up = random_floats(c.size(), seed + 1),
                 weights = random_floats(c.t, seed + 2);
    Floats y(c.size());
    weighted_silu_mul_forward<float>(y, gate, up, weights);
    Doubles reference = reference_silu_mul(doubles(gate), doubles(up));
    for (std::size_t i = 0; i < y.size(); ++i)
      reference[i] *= static_cast<double>(weights[i / c.w]);
    return relative_difference(y, reference);
  };
  out.bytes = four(3 * n + s.t);
  return out;
}

HostTask weighted_silu_mul_gradient(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = 3 * n + s.t, .outputs = 2 * n + s.t};
  out.run = [=](std::span<float> in, std::span<float> slopes) {
    Pieces from(in), to(slopes);
    const auto dy = from.take(n), gate = from.take(n), up = from.take(n), weights = from.take(s.t);
    const auto dgate = to.take(n), dup = to.take(n), dweights = to.take(s.t);
    weighted_silu_mul_backward<float>(dgate, dup, dweights, dy, gate, up, weights);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats gate = random_floats(c.size(), seed), up = random_floats(c.size(), seed + 1),
                 weights = random_floats(c.t, seed + 2), dy = random_floats(c.size(), seed + 3);
    Floats dgate(c.size()), dup(c.size()), dweights(c.t);
    weighted_silu_mul_backward<float>(dgate, dup, dweights, dy, gate, up, weights);
    const Doubles y = reference_silu_mul(doubles(gate), doubles(up));
    PairGradients g = reference_silu_mul_backward(doubles(dy), doubles(gate), doubles(up));
    Doubles of_weights(c.t);
    for (std::size_t i = 0; i < y.size(); ++i) {
      g.first[i] *= static_cast<double>(weights[i / c.w]);
      g.second[i] *= static_cast<double>(weights[i / c.w]);
      of_weights[i / c.w] += static_cast<double>(dy[i]) * y[i];
    }
    return std::max({relative_difference(dgate, g.first), relative_difference(dup, g.second),
                     relative_difference(dweights, of_weights)});
  };
  out.bytes = four(5 * n + 2 * s.t);
  return out;
}

}  // namespace stepcast::calibrate::host
