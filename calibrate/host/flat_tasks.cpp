// The optimizer's kernels and those that only move bytes, as tasks.
#include <cmath>

#include "calibrate/host/elementwise.hpp"
#include "calibrate/host/kernels.hpp"

namespace stepcast::calibrate::host {
HostTask optimizer(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = n, .outputs = 3 * n};
  out.start = [n](std::span<float> to) {  // second moments
    for (float& v : to.subspan(2 * n, n)) v = std::abs(v);
  };
  out.run = [n](std::span<float> in, std::span<float> to) {
    adamw<float>(to.first(n), to.subspan(n, n), to.subspan(2 * n, n), in, {});
  };
  out.check = [s](std::uint64_t seed) {
    const AdamW how{.step = 3};
    const Floats g = random_floats(s.checked().size(), seed);
    Floats p = random_floats(g.size(), seed + 1), m = random_floats(g.size(), seed + 2),
           v(g.size());
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = m[i] * m[i];
    Doubles reference;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double slope = static_cast<double>(g[i]);
      const double m1 = how.beta1 * static_cast<double>(m[i]) + (1 - how.beta1) * slope;
      const double v1 = how.beta2 * static_cast<double>(v[i]) + (1 - how.beta2) * slope * slope;
      const double first = m1 / (1 - std::pow(how.beta1, 3)),
                   second = v1 / (1 - std::pow(how.beta2, 3));
      const double old = static_cast<double>(p[i]);
      reference.push_back(old - how.learning_rate * (first / (std::sqrt(second) + how.epsilon) +
                                                     how.weight_decay * old));
    }
    adamw<float>(p, m, v, g, how);
    return relative_difference(p, reference);
  };
  out.bytes = four(7 * n);
  return out;
}

HostTask gradient_norm(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = n, .outputs = 1};
  out.run = [](std::span<float> in, std::span<float> to) {
    to[0] = static_cast<float>(sum_of_squares<float>(in));
  };
  out.check = [s](std::uint64_t seed) {
    const Floats x = random_floats(s.checked().size(), seed);
    double reference = 0;
    for (const float value : x)
      reference += static_cast<double>(value) * static_cast<double>(value);
    return std::abs(sum_of_squares<float>(x) - reference) / reference;
  };
  out.bytes = four(n);
  return out;
}

HostTask sum_of_two(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = 2 * n, .outputs = n};
  out.run = [n](std::span<float> in, std::span<float> y) {
    residual_add<float>(y, in.first(n), in.subspan(n, n));
  };
  out.check = [s](std::uint64_t seed) {
    const Floats a = random_floats(s.checked().size(), seed), b = random_floats(a.size(), seed + 1);
    Floats y(a.size());
    residual_add<float>(y, a, b);
    Doubles reference = doubles(a);
    for (std::size_t i = 0; i < b.size(); ++i) reference[i] += static_cast<double>(b[i]);
    return relative_difference(y, reference);
  };
  out.bytes = four(3 * n);
  return out;
}

HostTask plain_copy(const Shape& s) { return host_task(CopyTask{"memory", four(2 * s.size())}); }

HostTask scaled(const Shape& s) {
  HostTask out{.inputs = 0, .outputs = s.size()};
  out.run = [](std::span<float>, std::span<float> x) {
    scale<float>(x, -1.0F);
  };  // keeps magnitudes over many runs
  out.check = [s](std::uint64_t seed) {
    Floats x = random_floats(s.checked().size(), seed);
    Doubles reference = doubles(x);
    for (double& value : reference) value *= 0.375;
    scale<float>(x, 0.375F);
    return relative_difference(x, reference);
  };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask zeroed(const Shape& s) {
  HostTask out{.inputs = 0, .outputs = s.size()};
  out.run = [](std::span<float>, std::span<float> x) { zero<float>(x); };
  out.check = [s](std::uint64_t seed) {
    Floats x = random_floats(s.checked().size(), seed);
    zero<float>(x);
    return relative_difference(x, Doubles(x.size()));
  };
  out.bytes = four(s.size());
  return out;
}

HostTask summed_rows(const Shape& s) {
  HostTask out{.inputs = s.size(), .outputs = s.w};
  out.run = [](std::span<float> in, std::span<float> y) { sum_rows<float>(y, in); };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed);
    Floats y(c.w);
    sum_rows<float>(y, x);
    Doubles reference(c.w);
    for (std::size_t i = 0; i < x.size(); ++i) reference[i % c.w] += static_cast<double>(x[i]);
    return relative_difference(y, reference);
  };
  out.bytes = four(s.size() + s.w);
  return out;
}

}  // namespace stepcast::calibrate::host
