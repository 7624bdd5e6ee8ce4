#include "calibrate/host/reference.hpp"

#include <cmath>
#include <numbers>

namespace stepcast::calibrate::host {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// 1 / sqrt(mean of squares of x[from ..] - center + epsilon).
double inverse_deviation(const Doubles& x, std::size_t from, std::size_t width, double center,
                         double epsilon) {
  double squares = 0;
  for (std::size_t h = 0; h < width; ++h) squares += std::pow(x[from + h] - center, 2);
  return 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
}

double mean_of(const Doubles& x, std::size_t from, std::size_t width) {
  double sum = 0;
  for (std::size_t h = 0; h < width; ++h) sum += x[from + h];
  return sum / static_cast<double>(width);
}

}  // namespace

double reference_product(const GemmSizes& s, const std::vector<float>& a,
                         const std::vector<float>& b, std::int64_t row, std::int64_t column) {
  double sum = 0;
  for (std::int64_t p = 0; p < s.k; ++p) {
    const std::int64_t in_a = s.layout[0] == 'T' ? p * s.m + row : row * s.k + p;
    const std::int64_t in_b = s.layout[1] == 'T' ? column * s.k + p : p * s.n + column;
    sum += static_cast<double>(a[static_cast<std::size_t>(in_a)]) *
           static_cast<double>(b[static_cast<std::size_t>(in_b)]);
  }
  return sum;
}

Doubles reference_rmsnorm(const Doubles& x, const Doubles& w, double epsilon) {
  Doubles y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] * w[i % w.size()] * inverse_deviation(x, i - i % w.size(), w.size(), 0.0, epsilon);
  return y;
}

// y_h = x_h r w_h with dr/dx_j = -r^3 x_j / H.
NormGradients reference_rmsnorm_backward(const Doubles& dy, const Doubles& x, const Doubles& w,
                                         double epsilon) {
  const std::size_t width = w.size();
  NormGradients g{Doubles(x.size()), Doubles(width), {}};
  for (std::size_t row = 0; row < x.size(); row += width) {
    const double r = inverse_deviation(x, row, width, 0.0, epsilon);
    double slope_of_r = 0;  // of the loss
    for (std::size_t h = 0; h < width; ++h) slope_of_r += dy[row + h] * x[row + h] * w[h];
    for (std::size_t h = 0; h < width; ++h) {
      g.dx[row + h] = dy[row + h] * r * w[h] -
                      slope_of_r * std::pow(r, 3) * x[row + h] / static_cast<double>(width);
      g.dw[h] += dy[row + h] * x[row + h] * r;
    }
  }
  return g;
}

Doubles reference_layernorm(const Doubles& x, const Doubles& w, const Doubles& b, double epsilon) {
  const std::size_t width = w.size();
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size(); row += width) {
    const double mean = mean_of(x, row, width);
    const double r = inverse_deviation(x, row, width, mean, epsilon);
    for (std::size_t h = 0; h < width; ++h) y[row + h] = (x[row + h] - mean) * r * w[h] + b[h];
  }
  return y;
}

NormGradients reference_layernorm_backward(const Doubles& dy, const Doubles& x, const Doubles& w,
                                           double epsilon) {
  const std::size_t width = w.size();
  const auto n = static_cast<double>(width);
  NormGradients g{Doubles(x.size()), Doubles(width), Doubles(width)};
  for (std::size_t row = 0; row < x.size(); row += width) {
    const double mean = mean_of(x, row, width);
    const double r = inverse_deviation(x, row, width, mean, epsilon);
    double slope_of_r = 0, slope_of_mean = 0;
    for (std::size_t h = 0; h < width; ++h) {
      slope_of_r += dy[row + h] * w[h] * (x[row + h] - mean);
      slope_of_mean -= dy[row + h] * w[h] * r;
    }
    for (std::size_t h = 0; h < width; ++h) {
      const double centred = x[row + h] - mean;
      g.dx[row + h] =
          dy[row + h] * w[h] * r + slope_of_mean / n - slope_of_r * std::pow(r, 3) * centred / n;
      g.dw[h] += dy[row + h] * centred * r;
      g.db[h] += dy[row + h];
    }
  }
  return g;
}

Doubles reference_rope(const Doubles& x, std::int64_t heads, std::int64_t head_dim,
                       std::int64_t sequence, double direction) {
  Doubles y(x.size());
  const std::int64_t half = head_dim / 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t d = at % head_dim, position = at / (heads * head_dim) % sequence;
    const double angle =
        direction * static_cast<double>(position) *
        std::pow(10000.0, -2.0 * static_cast<double>(d % half) / static_cast<double>(head_dim));
    const double partner =
        d < half ? -x[i + static_cast<std::size_t>(half)] : x[i - static_cast<std::size_t>(half)];
    y[i] = x[i] * std::cos(angle) + partner * std::sin(angle);
  }
  return y;
}

Doubles reference_silu_mul(const Doubles& gate, const Doubles& up) {
  Doubles y(gate.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
  return y;
}

PairGradients reference_silu_mul_backward(const Doubles& dy, const Doubles& gate,
                                          const Doubles& up) {
  PairGradients g{Doubles(gate.size()), Doubles(gate.size())};
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double s = sigmoid(gate[i]);
    g.first[i] = dy[i] * up[i] * (s + gate[i] * s * (1.0 - s));
    g.second[i] = dy[i] * gate[i] * s;
  }
  return g;
}

Doubles reference_gelu(const Doubles& x) {
  Doubles y(x.size());
  const double slope = std::sqrt(2.0 / std::numbers::pi);
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = 0.5 * x[i] * (1.0 + std::tanh(slope * (x[i] + 0.044715 * std::pow(x[i], 3))));
  return y;
}

Doubles reference_gelu_backward(const Doubles& dy, const Doubles& x) {
  Doubles dx(x.size());
  const double slope = std::sqrt(2.0 / std::numbers::pi);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = std::tanh(slope * (x[i] + 0.044715 * std::pow(x[i], 3)));
    const double inner = slope * (1.0 + 3 * 0.044715 * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1.0 + t) + 0.5 * x[i] * (1.0 - t * t) * inner);
  }
  return dx;
}

Doubles reference_cross_entropy(const Doubles& logits, const Ids& targets) {
  const std::size_t vocab = logits.size() / targets.size();
  Doubles loss(targets.size());
  for (std::size_t t = 0; t < targets.size(); ++t) {
    double sum = 0;
    for (std::size_t v = 0; v < vocab; ++v) sum += std::exp(logits[t * vocab + v]);
    loss[t] = std::log(sum) - logits[t * vocab + static_cast<std::size_t>(targets[t])];
  }
  return loss;
}

Doubles reference_cross_entropy_backward(const Doubles& logits, const Ids& targets, double scale) {
  const std::size_t vocab = logits.size() / targets.size();
  Doubles gradient(logits.size());
  for (std::size_t t = 0; t < targets.size(); ++t) {
    double sum = 0;
    for (std::size_t v = 0; v < vocab; ++v) sum += std::exp(logits[t * vocab + v]);
    for (std::size_t v = 0; v < vocab; ++v) {
      const double hit = v == static_cast<std::size_t>(targets[t]) ? 1.0 : 0.0;
      gradient[t * vocab + v] = scale * (std::exp(logits[t * vocab + v]) / sum - hit);
    }
  }
  return gradient;
}

}  // namespace stepcast::calibrate::host
