// The host's kernels against textbook formulas in double, and their gradients against finite
// differences.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "calibrate/host/attention.hpp"
#include "calibrate/host/gemm.hpp"
#include "calibrate/host/kernels.hpp"
#include "calibrate/host/math.hpp"
#include "calibrate/host/reference.hpp"
#include "calibrate/host/task.hpp"

using namespace stepcast;
using namespace stepcast::calibrate::host;
using calibrate::AttentionTask;
using calibrate::ElementwiseTask;
using calibrate::GemmTask;
using calibrate::Unsupported;

namespace {

Doubles random_doubles(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> between(-1.0, 1.0);
  Doubles values(count);
  for (double& value : values) value = between(random);
  return values;
}

/// The gradient of loss(x) = sum_i weights[i] f(x)[i] by central differences.
Doubles differences(Doubles x, const Doubles& weights,
                    const std::function<Doubles(const Doubles&)>& f) {
  Doubles gradient;
  const auto loss = [&] {
    const Doubles y = f(x);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  constexpr double h = 1e-5;
  for (double& value : x) {
    const double before = value;
    value = before + h;
    const double above = loss();
    value = before - h;
    gradient.push_back((above - loss()) / (2 * h));
    value = before;
  }
  return gradient;
}

void check_equal(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-6).margin(1e-8));
}

const AttentionSizes grouped{
    .batch = 2, .sequence = 5, .heads = 4, .kv_heads = 2, .head_dim = 6, .causal = true};

}  // namespace

TEST_CASE("the exponential is within two units of the last place") {
  for (float x = -87.0F; x < 88.0F; x += 0.0137F)
    REQUIRE(static_cast<double>(exponential(x)) ==
            Approx(std::exp(static_cast<double>(x))).epsilon(2.4e-7));
  CHECK(exponential(-1000.0F) == 0.0F);
  CHECK(exponential(0.0F) == 1.0F);
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("sums in lanes count every element once") {
  for (const std::size_t n : {0U, 1U, 15U, 16U, 17U, 100U})
    CHECK(sum_in_lanes<double>(n, [](std::size_t i) { return static_cast<double>(i); }) ==
          static_cast<double>(n) * (static_cast<double>(n) - 1) / 2);
  for (const std::size_t n : {1U, 15U, 16U, 33U})
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> x(n, -2.0F);
      x[at] = -1.0F;
      CHECK(largest_in_lanes(x.data(), n) == -1.0F);
    }
}

TEST_CASE("every kernel agrees with its reference on fresh inputs") {
  for (const std::string kind : {"rmsnorm", "layernorm", "rope", "silu_mul", "gelu",
                                 "cross_entropy", "embedding", "residual_add", "adamw", "grad_norm",
                                 "scale", "zero", "sum_rows", "cast", "copy_in", "copy_out"})
    for (const bool backward : {false, true})
      for (const std::int64_t width : {64, 102, 704}) {
        const auto task = host_task(ElementwiseTask{kind, "fp32", 37, width, backward});
        INFO(kind << (backward ? " backward " : " forward ") << width);
        CHECK(task.check(static_cast<std::uint64_t>(width)) <= task.tolerance);
      }
}

TEST_CASE("a wrong result is told from a right one") {
  CHECK(relative_difference(std::vector<float>{1, 2.5F}, Doubles{1, 2}) == Approx(0.25));
  CHECK_FALSE(relative_difference(std::vector<float>{1, std::nanf("")}, Doubles{1, 2}) <= 1.0);
}

TEST_CASE("attention agrees with its reference, grouped or not, causal or not") {
  for (const std::int64_t kv_heads : {1, 2, 4})
    for (const bool causal : {false, true})
      for (const bool backward : {false, true}) {
        const auto task =
            host_task(AttentionTask{"fp32", backward, 2, 4, kv_heads, 65, 32, causal, "host"});
        CHECK(task.check(3) <= task.tolerance);
        CHECK(task.flops == 4.0 * 2 * 4 * 32 * 65 * 65 * (causal ? 0.5 : 1) * (backward ? 2.5 : 1));
      }
}

TEST_CASE("all heads and sequences of grouped attention are those of the reference") {
  const auto q = random_doubles(2 * 5 * 4 * 6, 1), k = random_doubles(2 * 5 * 2 * 6, 2),
             v = random_doubles(2 * 5 * 2 * 6, 3), up = random_doubles(q.size(), 4);
  Doubles o(q.size()), lse(2 * 4 * 5), dq(q.size()), dk(k.size()), dv(v.size());
  attention_forward<double>(o, lse, q, k, v, grouped);
  check_equal(o, reference_attention(q, k, v, grouped));
  attention_backward<double>(dq, dk, dv, up, o, lse, q, k, v, grouped);
  const auto loss = [](const Doubles& a, const Doubles& b, const Doubles& c) {
    return reference_attention(a, b, c, grouped);
  };
  check_equal(dq, differences(q, up, [&](const Doubles& x) { return loss(x, k, v); }));
  check_equal(dk, differences(k, up, [&](const Doubles& x) { return loss(q, x, v); }));
  check_equal(dv, differences(v, up, [&](const Doubles& x) { return loss(q, k, x); }));
}

TEST_CASE("gradients are those of finite differences") {
  const auto x = random_doubles(3 * 8, 5), w = random_doubles(8, 6), b = random_doubles(8, 7),
             up = random_doubles(24, 8);
  SECTION("rmsnorm") {
    Doubles y(24), r(3), dx(24), dw(8);
    rmsnorm_forward<double>(y, r, x, w, 1e-5);
    rmsnorm_backward<double>(dx, dw, up, x, w, r);
    check_equal(dx, differences(x, up, [&](auto& p) { return reference_rmsnorm(p, w, 1e-5); }));
    check_equal(dw, differences(w, up, [&](auto& p) { return reference_rmsnorm(x, p, 1e-5); }));
  }
  SECTION("layernorm") {
    Doubles y(24), m(3), r(3), dx(24), dw(8), db(8);
    layernorm_forward<double>(y, m, r, x, w, b, 1e-5);
    layernorm_backward<double>(dx, dw, db, up, x, w, m, r);
    const auto f = [](auto& p, auto& q, auto& s) { return reference_layernorm(p, q, s, 1e-5); };
    check_equal(dx, differences(x, up, [&](auto& p) { return f(p, w, b); }));
    check_equal(dw, differences(w, up, [&](auto& p) { return f(x, p, b); }));
    check_equal(db, differences(b, up, [&](auto& p) { return f(x, w, p); }));
  }
  SECTION("rope") {
    Doubles dx = up;
    rope_backward(std::span<double>(dx), 2, make_rope_table<double>(3, 4));
    check_equal(dx, differences(x, up, [](auto& p) { return reference_rope(p, 2, 4, 3, 1.0); }));
  }
  SECTION("silu_mul") {
    Doubles dgate(24), dother(24);
    const auto other = random_doubles(24, 9);
    silu_mul_backward<double>(dgate, dother, up, x, other);
    check_equal(dgate, differences(x, up, [&](auto& p) { return reference_silu_mul(p, other); }));
    check_equal(dother, differences(other, up, [&](auto& p) { return reference_silu_mul(x, p); }));
  }
  SECTION("gelu") {
    Doubles dx(24);
    gelu_backward<double>(dx, up, x);
    check_equal(dx, differences(x, up, [](auto& p) { return reference_gelu(p); }));
  }
  SECTION("cross-entropy, in place too") {
    const Ids targets{4, 0, 7};
    Doubles loss(3), lse(3), dx(24), in_place = x;
    cross_entropy_forward<double>(loss, lse, x, targets);
    cross_entropy_backward<double>(dx, x, lse, targets, 0.5);
    cross_entropy_backward<double>(in_place, in_place, lse, targets, 0.5);
    check_equal(dx, differences(x, {0.5, 0.5, 0.5},
                                [&](auto& p) { return reference_cross_entropy(p, targets); }));
    CHECK(dx == in_place);
  }
}

TEST_CASE("products agree with their sums in double in every layout") {
  if (!has_openblas()) return;
  for (const std::string layout : {"NN", "NT", "TN"})
    for (const bool accumulate : {false, true}) {
      const auto task = host_task(GemmTask{"fp32", 40, 70, 130, layout, accumulate, false});
      CHECK(task.check(11) <= task.tolerance);
    }
}

TEST_CASE("what the host cannot do is unsupported, with the reason") {
  CHECK_THROWS_AS(host_task(GemmTask{"bf16", 8, 8, 8, "NT", false, false}), Unsupported);
  CHECK_THROWS_AS(host_task(ElementwiseTask{"swizzle", "fp32", 8, 8, false}), Unsupported);
  CHECK_THROWS_AS(host_task(calibrate::CopyTask{"host_to_device", Bytes(64)}), Unsupported);
}

TEST_CASE("bfloat16 is rounded to the nearest, ties to even") {
  std::vector<std::uint16_t> to(4);
  to_bf16(to, std::vector<float>{1.0F, 1.00390625F, 1.01171875F, 1.0040F});
  CHECK(to == std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81});
}
