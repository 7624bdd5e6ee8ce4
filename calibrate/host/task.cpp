// Products, attention and copies as tasks; the rest is elementwise.cpp's.
#include "calibrate/host/task.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "calibrate/host/attention.hpp"
#include "calibrate/host/gemm.hpp"
#include "calibrate/host/kernels.hpp"
#include "calibrate/host/reference.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

std::size_t area(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); }

Doubles doubles(std::span<const float> x) { return {x.begin(), x.end()}; }

/// Up to 32 x 32 elements spread over C, each against its own sum in double.
double check_product(const GemmSizes& sizes, std::uint64_t seed) {
  const auto a = random_floats(area(sizes.m, sizes.k), seed);
  const auto b = random_floats(area(sizes.k, sizes.n), seed + 1);
  std::vector<float> c = random_floats(area(sizes.m, sizes.n), seed + 2);
  const std::vector<float> before = c;
  gemm(c, a, b, sizes);
  std::vector<float> result;
  Doubles reference;
  const std::int64_t rows = std::min<std::int64_t>(sizes.m, 32);
  const std::int64_t columns = std::min<std::int64_t>(sizes.n, 32);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t row = i * (sizes.m - 1) / std::max<std::int64_t>(rows - 1, 1);
      const std::int64_t column = j * (sizes.n - 1) / std::max<std::int64_t>(columns - 1, 1);
      const std::size_t at = area(row, sizes.n) + static_cast<std::size_t>(column);
      result.push_back(c[at]);
      reference.push_back(reference_product(sizes, a, b, row, column) +
                          (sizes.accumulate ? static_cast<double>(before[at]) : 0.0));
    }
  return relative_difference(result, reference);
}

AttentionSizes sizes_of(const AttentionTask& t) {
  return {.batch = t.batch,
          .sequence = t.sequence,
          .heads = t.heads,
          .kv_heads = t.kv_heads,
          .head_dim = t.head_dim,
          .causal = t.causal};
}

struct AttentionCounts {
  explicit AttentionCounts(const AttentionSizes& s)
      : q(area(s.batch * s.sequence, s.heads * s.head_dim)),
        kv(area(s.batch * s.sequence, s.kv_heads * s.head_dim)),
        rows(area(s.batch * s.sequence, s.heads)) {}
  std::size_t q, kv, rows;
};

/// One sequence and one group of heads, so that the reference's time stays bounded.
double check_attention(AttentionSizes s, bool backward, std::uint64_t seed) {
  s.heads = std::min<std::int64_t>(s.heads / s.kv_heads, 4);
  s.batch = s.kv_heads = 1;
  const AttentionCounts n(s);
  const auto q = random_floats(n.q, seed), k = random_floats(n.kv, seed + 1),
             v = random_floats(n.kv, seed + 2), up = random_floats(n.q, seed + 3);
  std::vector<float> o(n.q), lse(n.rows);
  attention_forward<float>(o, lse, q, k, v, s);
  const double forward =
      relative_difference(o, reference_attention(doubles(q), doubles(k), doubles(v), s));
  if (!backward) return forward;
  std::vector<float> dq(n.q), dk(n.kv), dv(n.kv);
  attention_backward<float>(dq, dk, dv, up, o, lse, q, k, v, s);
  const auto g = reference_attention_backward(doubles(up), doubles(q), doubles(k), doubles(v), s);
  return std::max({forward, relative_difference(dq, g.dq), relative_difference(dk, g.dk),
                   relative_difference(dv, g.dv)});
}

}  // namespace

void require_fp32(const std::string& dtype) {
  if (dtype != "fp32") throw Unsupported("the host computes in fp32, not " + dtype);
}

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values)  // 24 bits, exact in a float
    value = static_cast<float>(random() >> 40U) * 0x1p-23F - 1.0F;
  return values;
}

double relative_difference(std::span<const float> result, std::span<const double> reference) {
  expects(result.size() == reference.size(), "a reference for every result");
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - reference[i]);
    if (!(error <= difference)) difference = error;  // a NaN stays
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest > 0 ? difference / largest : difference;
}

// float has 24 bits: an error of 2^-24 sqrt(k) is expected of a sum of k terms, 16 times that and
// no less than 1e-5 is allowed.
HostTask host_task(const GemmTask& task) {
  require_fp32(task.dtype);
  if (!has_openblas()) throw Unsupported("a machine without OpenBLAS");
  if (task.best_of_8) throw Unsupported("OpenBLAS has one algorithm");
  const GemmSizes sizes{task.m, task.n, task.k, task.layout, task.accumulate};
  const std::size_t in_a = area(task.m, task.k), in_b = area(task.k, task.n);
  HostTask out{.inputs = in_a + in_b, .outputs = area(task.m, task.n)};
  out.run = [=](std::span<float> in, std::span<float> c) {
    gemm(c, in.first(in_a), in.subspan(in_a, in_b), sizes);
  };
  out.check = [=](std::uint64_t seed) { return check_product(sizes, seed); };
  out.tolerance = std::max(1e-5, std::ldexp(16.0, -24) * std::sqrt(static_cast<double>(task.k)));
  out.flops =
      2.0 * static_cast<double>(task.m) * static_cast<double>(task.n) * static_cast<double>(task.k);
  out.bytes =
      Bytes(4 * static_cast<std::int64_t>(out.inputs + out.outputs * (task.accumulate ? 2 : 1)));
  return out;
}

// FLOPs as published rates count them: 4 b a s^2 d forward, 2.5 times that backward, half if
// causal.
HostTask host_task(const AttentionTask& task) {
  require_fp32(task.dtype);
  if (task.implementation != "host" && task.implementation != "own_flash")
    throw Unsupported("the host has its own attention only, not " + task.implementation);
  const AttentionSizes s = sizes_of(task);
  const AttentionCounts n(s);
  HostTask out;
  if (task.backward) {
    out.inputs = 3 * n.q + 2 * n.kv + n.rows;
    out.outputs = n.q + 2 * n.kv;
    out.run = [=](std::span<float> in, std::span<float> gradients) {
      Pieces from(in), to(gradients);
      const auto q = from.take(n.q), o = from.take(n.q), up = from.take(n.q), k = from.take(n.kv),
                 v = from.take(n.kv), lse = from.take(n.rows);
      const auto dq = to.take(n.q), dk = to.take(n.kv), dv = to.take(n.kv);
      attention_backward<float>(dq, dk, dv, up, o, lse, q, k, v, s);
    };
  } else {
    out.inputs = n.q + 2 * n.kv;
    out.outputs = n.q + n.rows;
    out.run = [=](std::span<float> in, std::span<float> result) {
      Pieces from(in), to(result);
      const auto q = from.take(n.q), k = from.take(n.kv), v = from.take(n.kv);
      const auto o = to.take(n.q), lse = to.take(n.rows);
      attention_forward<float>(o, lse, q, k, v, s);
    };
  }
  out.check = [s, backward = task.backward](std::uint64_t seed) {
    return check_attention(s, backward, seed);
  };
  out.tolerance = 1e-4;
  out.flops = 4.0 * static_cast<double>(task.batch * task.heads * task.head_dim) *
              std::pow(static_cast<double>(task.sequence), 2) * (task.causal ? 0.5 : 1.0) *
              (task.backward ? 2.5 : 1.0);
  out.bytes = Bytes(4 * static_cast<std::int64_t>(out.inputs + out.outputs));
  return out;
}

HostTask host_task(const CopyTask& task) {
  if (task.kind != "memory") throw Unsupported("the host has no device to copy to");
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(task.bytes.value / 8, 1));
  HostTask out{.inputs = count, .outputs = count};  // read and write: half of the bytes each
  out.run = [](std::span<float> in, std::span<float> to) { copy<float>(to, in); };
  out.check = [count](std::uint64_t seed) {
    const auto from = random_floats(std::min<std::size_t>(count, 1 << 20), seed);
    std::vector<float> to(from.size());
    copy<float>(to, from);
    return relative_difference(to, doubles(from));
  };
  out.bytes = Bytes(8 * static_cast<std::int64_t>(count));
  return out;
}

}  // namespace stepcast::calibrate::host
