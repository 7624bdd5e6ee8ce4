#include "calibrate/reference/cuda_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "engine/check.hpp"

namespace stepcast::calibrate::reference {
namespace {

double dot(View a, View b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add(Row& to, double factor, View x) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * x[i];
}

View row_of(View tensor, const Attention& shape, const Place& at, std::int64_t num_heads) {
  const std::int64_t first =
      ((at.batch * shape.sequence + at.token) * num_heads + at.head) * shape.head_dim;
  return tensor.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(shape.head_dim));
}

Place key_place(const Attention& shape, const Place& query, std::int64_t key) {
  return {query.batch, query.head / (shape.heads / shape.kv_heads), key};
}

std::int64_t keys_of(const Attention& shape, std::int64_t query) {
  return shape.causal ? query + 1 : shape.sequence;
}

/// Softmax of the scaled scores of one query, and ln of its denominator.
struct Probabilities {
  Row p;
  double lse = 0.0;
};

Probabilities probabilities(const Attention& shape, const AttentionTensors& t, const Place& query) {
  Probabilities result;
  const View q = row_of(t.q, shape, query, shape.heads);
  for (std::int64_t key = 0; key < keys_of(shape, query.token); ++key)
    result.p.push_back(shape.scale *
                       dot(q, row_of(t.k, shape, key_place(shape, query, key), shape.kv_heads)));
  const double largest = *std::max_element(result.p.begin(), result.p.end());
  double sum = 0;
  for (const double score : result.p) sum += std::exp(score - largest);
  result.lse = largest + std::log(sum);
  for (double& score : result.p) score = std::exp(score - result.lse);
  return result;
}

Row weighted_values(const Attention& shape, const AttentionTensors& t, const Place& query, View p) {
  Row o(static_cast<std::size_t>(shape.head_dim), 0.0);
  for (std::size_t key = 0; key < p.size(); ++key)
    add(o, p[key],
        row_of(t.v, shape, key_place(shape, query, static_cast<std::int64_t>(key)),
               shape.kv_heads));
  return o;
}

struct Normal {
  Row x;  // (x - mean) * inverse
  double inverse = 0.0;
};

Normal normalise(View x, double mean, double epsilon) {
  Normal normal;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  normal.inverse = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  for (const double value : x) normal.x.push_back((value - mean) * normal.inverse);
  return normal;
}

double mean_of(View x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

/// dx = inverse (g - mean g - x^ mean(g x^)), g = dy weight; RMSNorm has no mean: centred is false.
NormGradients norm_gradients(const Normal& normal, View weight, View dy, bool centred) {
  Row g;
  for (std::size_t i = 0; i < dy.size(); ++i) g.push_back(dy[i] * weight[i]);
  const double mean_g = centred ? mean_of(g) : 0.0;
  const double mean_product = dot(g, normal.x) / static_cast<double>(dy.size());
  NormGradients result;
  result.dbias.assign(dy.begin(), dy.end());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    result.dx.push_back(normal.inverse * (g[i] - mean_g - normal.x[i] * mean_product));
    result.dweight.push_back(dy[i] * normal.x[i]);
  }
  return result;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

constexpr double kGeluCube = 0.044715;  // Hendrycks & Gimpel 2016
double gelu_tanh(double x) {
  return std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + kGeluCube * x * x * x));
}

}  // namespace

double relative_error(View got, View wanted) {
  expects(got.size() == wanted.size(), "as many values as wanted");
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
    largest = std::max(largest, std::abs(wanted[i]));
  }
  if (difference == 0) return 0;
  return largest == 0 ? std::numeric_limits<double>::infinity() : difference / largest;
}

AttentionOutput attention_output(const Attention& shape, const AttentionTensors& tensors,
                                 const Place& query) {
  const Probabilities softmax = probabilities(shape, tensors, query);
  return {weighted_values(shape, tensors, query, softmax.p), softmax.lse};
}

Row attention_dq(const Attention& shape, const AttentionTensors& tensors, const Place& query) {
  const Probabilities softmax = probabilities(shape, tensors, query);
  const View d_o = row_of(tensors.d_o, shape, query, shape.heads);
  const double delta = dot(d_o, weighted_values(shape, tensors, query, softmax.p));
  Row dq(static_cast<std::size_t>(shape.head_dim), 0.0);
  for (std::size_t key = 0; key < softmax.p.size(); ++key) {
    const Place at = key_place(shape, query, static_cast<std::int64_t>(key));
    const double dp = dot(d_o, row_of(tensors.v, shape, at, shape.kv_heads));
    add(dq, shape.scale * softmax.p[key] * (dp - delta),
        row_of(tensors.k, shape, at, shape.kv_heads));
  }
  return dq;
}

RowStatistics attention_statistics(const Attention& shape, const AttentionTensors& tensors) {
  RowStatistics result;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch)
    for (std::int64_t head = 0; head < shape.heads; ++head)
      for (std::int64_t token = 0; token < shape.sequence; ++token) {
        const Place at{batch, head, token};
        const AttentionOutput output = attention_output(shape, tensors, at);
        result.lse.push_back(output.lse);
        result.delta.push_back(dot(row_of(tensors.d_o, shape, at, shape.heads), output.o));
      }
  return result;
}

KeyGradients attention_key_gradients(const Attention& shape, const AttentionTensors& tensors,
                                     const RowStatistics& statistics, const Place& key) {
  KeyGradients result{Row(static_cast<std::size_t>(shape.head_dim), 0.0),
                      Row(static_cast<std::size_t>(shape.head_dim), 0.0)};
  const View k = row_of(tensors.k, shape, key, shape.kv_heads);
  const View v = row_of(tensors.v, shape, key, shape.kv_heads);
  const std::int64_t group = shape.heads / shape.kv_heads;
  for (std::int64_t head = key.head * group; head < (key.head + 1) * group; ++head)
    for (std::int64_t query = shape.causal ? key.token : 0; query < shape.sequence; ++query) {
      const Place at{key.batch, head, query};
      const auto index =
          static_cast<std::size_t>((key.batch * shape.heads + head) * shape.sequence + query);
      const View q = row_of(tensors.q, shape, at, shape.heads);
      const View d_o = row_of(tensors.d_o, shape, at, shape.heads);
      const double p = std::exp(shape.scale * dot(q, k) - statistics.lse[index]);
      add(result.dv, p, d_o);
      add(result.dk, shape.scale * p * (dot(d_o, v) - statistics.delta[index]), q);
    }
  return result;
}

Row rmsnorm(View x, View weight, double epsilon) {
  Row y = normalise(x, 0.0, epsilon).x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= weight[i];
  return y;
}

NormGradients rmsnorm_gradients(View x, View weight, View dy, double epsilon) {
  return norm_gradients(normalise(x, 0.0, epsilon), weight, dy, false);
}

Row layernorm(View x, View weight, View bias, double epsilon) {
  Row y = normalise(x, mean_of(x), epsilon).x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * weight[i] + bias[i];
  return y;
}

NormGradients layernorm_gradients(View x, View weight, View dy, double epsilon) {
  return norm_gradients(normalise(x, mean_of(x), epsilon), weight, dy, true);
}

double gelu(double x) { return 0.5 * x * (1.0 + gelu_tanh(x)); }

double gelu_gradient(double x) {
  const double t = gelu_tanh(x);
  const double du = std::sqrt(2.0 / std::numbers::pi) * (1.0 + 3.0 * kGeluCube * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * du;
}

double swiglu(double gate, double up) { return gate * sigmoid(gate) * up; }

SwigluGradients swiglu_gradients(double gate, double up, double dy) {
  const double s = sigmoid(gate);
  return {dy * up * s * (1.0 + gate * (1.0 - s)), dy * gate * s};
}

Row rope(View x, std::int64_t position, double base, double direction) {
  Row y(x.begin(), x.end());
  const std::size_t half = x.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(x.size());
    const double angle = direction * static_cast<double>(position) * std::pow(base, exponent);
    y[i] = x[i] * std::cos(angle) - x[i + half] * std::sin(angle);
    y[i + half] = x[i + half] * std::cos(angle) + x[i] * std::sin(angle);
  }
  return y;
}

CrossEntropy cross_entropy(View logits, std::int64_t target) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  const double lse = largest + std::log(sum);
  CrossEntropy result;
  result.loss = lse - logits[static_cast<std::size_t>(target)];
  for (const double logit : logits) result.gradient.push_back(std::exp(logit - lse));
  result.gradient[static_cast<std::size_t>(target)] -= 1.0;
  return result;
}

Row embedding_gradient(std::span<const std::int32_t> ids, View dy, std::int64_t width,
                       std::int64_t id) {
  const auto columns = static_cast<std::size_t>(width);
  Row gradient(columns, 0.0);
  for (std::size_t token = 0; token < ids.size(); ++token)
    if (ids[token] == id) add(gradient, 1.0, dy.subspan(token * columns, columns));
  return gradient;
}

AdamWState adamw(const AdamWSettings& settings, const AdamWState& before, double gradient) {
  AdamWState after = before;
  after.first_moment = settings.beta1 * before.first_moment + (1.0 - settings.beta1) * gradient;
  after.second_moment =
      settings.beta2 * before.second_moment + (1.0 - settings.beta2) * gradient * gradient;
  const double step = static_cast<double>(settings.step);
  const double m = after.first_moment / (1.0 - std::pow(settings.beta1, step));
  const double v = after.second_moment / (1.0 - std::pow(settings.beta2, step));
  after.weight = before.weight * (1.0 - settings.learning_rate * settings.weight_decay) -
                 settings.learning_rate * m / (std::sqrt(v) + settings.epsilon);
  return after;
}

double sum_of_squares(View x) { return dot(x, x); }

}  // namespace stepcast::calibrate::reference
