#include "calibrate/reference/cuda_reference.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

using namespace stepcast::calibrate::reference;

namespace {

Row random_row(std::mt19937_64& random, std::int64_t size) {
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  Row row(static_cast<std::size_t>(size));
  for (double& x : row) x = uniform(random);
  return row;
}

/// (f(x + h) - f(x - h)) / 2h for each element of x: the error falls with h^2, here below 1e-8.
Row slopes(Row x, const std::function<double(const Row&)>& f) {
  constexpr double h = 1e-5;
  Row result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = f(x);
    x[i] = kept - h;
    result.push_back((above - f(x)) / (2 * h));
    x[i] = kept;
  }
  return result;
}

double dot(View a, View b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

constexpr double kClose = 1e-6;

Attention small_attention(bool causal, std::int64_t kv_heads) {
  return {.batch = 2,
          .sequence = 5,
          .heads = 4,
          .kv_heads = kv_heads,
          .head_dim = 3,
          .causal = causal,
          .scale = 0.7};
}

/// Sum of dO O over all rows: the function whose gradients backward returns.
double attention_loss(const Attention& shape, const AttentionTensors& t) {
  double loss = 0;
  for (const double delta : attention_statistics(shape, t).delta) loss += delta;
  return loss;
}

}  // namespace

TEST_CASE("a query that sees one key returns its value") {
  const Attention shape = small_attention(true, 4);
  std::mt19937_64 random(1);
  const Row q = random_row(random, 120), k = random_row(random, 120), v = random_row(random, 120);
  const AttentionOutput first = attention_output(shape, {q, k, v, {}}, {1, 2, 0});
  const std::size_t row = (1 * 5 * 4 + 2) * 3;  // batch 1, token 0, head 2
  CHECK(relative_error(first.o, View(v).subspan(row, 3)) < 1e-15);
  CHECK(first.lse == Approx(0.7 * dot(View(q).subspan(row, 3), View(k).subspan(row, 3))));
}

TEST_CASE("equal keys weigh all values the same, and lse counts them") {
  const Attention shape{.batch = 1,
                        .sequence = 4,
                        .heads = 2,
                        .kv_heads = 1,
                        .head_dim = 1,
                        .causal = false,
                        .scale = 1.0};
  const Row q(8, 0.5), k(4, 0.0), v{1, 2, 3, 6};
  const AttentionOutput output = attention_output(shape, {q, k, v, {}}, {0, 1, 2});
  CHECK(output.o[0] == Approx(3.0));
  CHECK(output.lse == Approx(std::log(4.0)));
}

TEST_CASE("attention's gradients are the slopes of its output") {
  const bool causal = GENERATE(true, false);
  const std::int64_t kv_heads = GENERATE(1, 2, 4);
  const Attention shape = small_attention(causal, kv_heads);
  std::mt19937_64 random(7);
  const Row q = random_row(random, 2 * 5 * 4 * 3), d_o = random_row(random, 2 * 5 * 4 * 3);
  const Row k = random_row(random, 2 * 5 * kv_heads * 3),
            v = random_row(random, 2 * 5 * kv_heads * 3);
  const AttentionTensors t{q, k, v, d_o};
  const RowStatistics statistics = attention_statistics(shape, t);

  Row dq, dk, dv;
  for (std::int64_t batch = 0; batch < 2; ++batch)
    for (std::int64_t token = 0; token < 5; ++token) {
      for (std::int64_t head = 0; head < 4; ++head)
        for (const double x : attention_dq(shape, t, {batch, head, token})) dq.push_back(x);
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        const KeyGradients key =
            attention_key_gradients(shape, t, statistics, {batch, head, token});
        dk.insert(dk.end(), key.dk.begin(), key.dk.end());
        dv.insert(dv.end(), key.dv.begin(), key.dv.end());
      }
    }
  const auto loss = [&](View new_q, View new_k, View new_v) {
    return attention_loss(shape, {new_q, new_k, new_v, d_o});
  };
  CHECK(relative_error(dq, slopes(q, [&](const Row& x) { return loss(x, k, v); })) < kClose);
  CHECK(relative_error(dk, slopes(k, [&](const Row& x) { return loss(q, x, v); })) < kClose);
  CHECK(relative_error(dv, slopes(v, [&](const Row& x) { return loss(q, k, x); })) < kClose);
}

TEST_CASE("the norms' gradients are the slopes of their rows") {
  std::mt19937_64 random(3);
  const Row x = random_row(random, 9), w = random_row(random, 9), b = random_row(random, 9);
  const Row dy = random_row(random, 9);
  const double epsilon = 1e-3;

  const NormGradients rms = rmsnorm_gradients(x, w, dy, epsilon);
  const auto rms_loss = [&](View x_, View w_) { return dot(dy, rmsnorm(x_, w_, epsilon)); };
  CHECK(relative_error(rms.dx, slopes(x, [&](const Row& r) { return rms_loss(r, w); })) < kClose);
  CHECK(relative_error(rms.dweight, slopes(w, [&](const Row& r) { return rms_loss(x, r); })) <
        kClose);

  const NormGradients layer = layernorm_gradients(x, w, dy, epsilon);
  const auto loss = [&](View x_, View w_, View b_) {
    return dot(dy, layernorm(x_, w_, b_, epsilon));
  };
  CHECK(relative_error(layer.dx, slopes(x, [&](const Row& r) { return loss(r, w, b); })) < kClose);
  CHECK(relative_error(layer.dweight, slopes(w, [&](const Row& r) { return loss(x, r, b); })) <
        kClose);
  CHECK(relative_error(layer.dbias, slopes(b, [&](const Row& r) { return loss(x, w, r); })) <
        kClose);
}

TEST_CASE("a normalised row has unit mean square, LayerNorm's also no mean") {
  std::mt19937_64 random(4);
  const Row x = random_row(random, 64), ones(64, 1.0), zeros(64, 0.0);
  const Row rms = rmsnorm(x, ones, 0.0), layer = layernorm(x, ones, zeros, 0.0);
  CHECK(sum_of_squares(rms) == Approx(64.0));
  CHECK(sum_of_squares(layer) == Approx(64.0));
  CHECK(dot(layer, ones) == Approx(0.0).margin(1e-12));
}

TEST_CASE("the activations' gradients are their slopes") {
  for (double x = -4.0; x < 4.0; x += 0.37) {
    const Row at{x};
    CHECK(gelu_gradient(x) ==
          Approx(slopes(at, [](const Row& r) { return gelu(r[0]); })[0]).margin(kClose));
    const SwigluGradients gradients = swiglu_gradients(x, 1.3, 0.8);
    CHECK(
        gradients.gate ==
        Approx(slopes(at, [](const Row& r) { return 0.8 * swiglu(r[0], 1.3); })[0]).margin(kClose));
    CHECK(gradients.up == Approx(0.8 * swiglu(x, 1.0)));
  }
}

TEST_CASE("GELU is near the identity far right and near nothing far left") {
  CHECK(gelu(6.0) == Approx(6.0));
  CHECK(gelu(-6.0) == Approx(0.0).margin(1e-6));
}

TEST_CASE("RoPE turns pairs: lengths stay, back undoes forth, products depend on distance alone") {
  std::mt19937_64 random(5);
  const Row a = random_row(random, 8), b = random_row(random, 8);
  CHECK(sum_of_squares(rope(a, 17, 1e4, 1)) == Approx(sum_of_squares(a)));
  CHECK(relative_error(rope(rope(a, 17, 1e4, 1), 17, 1e4, -1), a) < 1e-12);
  CHECK(dot(rope(a, 9, 1e4, 1), rope(b, 4, 1e4, 1)) ==
        Approx(dot(rope(a, 105, 1e4, 1), rope(b, 100, 1e4, 1))));
}

TEST_CASE("the loss' gradient is its slope, and sums to nothing") {
  std::mt19937_64 random(6);
  const Row logits = random_row(random, 11);
  const CrossEntropy result = cross_entropy(logits, 4);
  CHECK(relative_error(result.gradient, slopes(logits, [](const Row& r) {
                         return cross_entropy(r, 4).loss;
                       })) < kClose);
  CHECK(dot(result.gradient, Row(11, 1.0)) == Approx(0.0).margin(1e-12));
  CHECK(cross_entropy(Row(11, 3.0), 2).loss == Approx(std::log(11.0)));
}

TEST_CASE("an embedding row's gradient sums the tokens that used it") {
  const std::vector<std::int32_t> ids{3, 1, 3};
  const Row dy{1, 2, 10, 20, 100, 200};
  CHECK(embedding_gradient(ids, dy, 2, 3) == Row{101, 202});
  CHECK(embedding_gradient(ids, dy, 2, 0) == Row{0, 0});
}

TEST_CASE("AdamW's first step moves each weight by the rate, besides its decay") {
  const AdamWSettings settings{.learning_rate = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .epsilon = 0,
                               .weight_decay = 0.1,
                               .step = 1};
  // Bias correction makes m^ = g and v^ = g^2 at step 1: the move is the sign of g times the rate.
  CHECK(adamw(settings, {2.0, 0, 0}, -0.3).weight == Approx(2.0 * 0.999 + 0.01));
  CHECK(adamw(settings, {2.0, 0, 0}, 5.0).weight == Approx(2.0 * 0.999 - 0.01));
}

TEST_CASE("the relative error is infinite where a result is no number") {
  CHECK(std::isinf(relative_error(Row{std::nan("")}, Row{1.0})));
  CHECK(relative_error(Row{1.0, 2.1}, Row{1.0, 2.0}) == Approx(0.05));
}
