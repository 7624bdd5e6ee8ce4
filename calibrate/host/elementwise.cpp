// The kernels bound by memory as tasks, by the name that the step program gives them.
#include "calibrate/host/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/host/kernels.hpp"
#include "calibrate/host/reference.hpp"
#include "calibrate/host/task.hpp"

namespace stepcast::calibrate::host {
namespace {

using Stretch = std::span<float>;

constexpr float epsilon = 1e-5F;
constexpr std::int64_t rope_head_dim = 64;  // a task names no head; the time hardly depends on it
constexpr std::int64_t rope_sequence = 4096;
// Rows of the embedding that a task is timed with: a small model's vocabulary.
constexpr std::int32_t embedding_rows = 8192;

Ids random_ids(std::size_t count, std::int32_t below, std::uint64_t seed) {
  Ids ids;
  for (const float value : random_floats(count, seed))
    ids.push_back(std::min(
        static_cast<std::int32_t>((value + 1.0F) / 2 * static_cast<float>(below)), below - 1));
  return ids;
}

HostTask rmsnorm(const Shape& s) {
  HostTask out{.inputs = s.size() + s.w, .outputs = s.size() + s.t};
  out.run = [s](Stretch in, Stretch to) {
    rmsnorm_forward<float>(to.first(s.size()), to.subspan(s.size(), s.t), in.first(s.size()),
                           in.subspan(s.size(), s.w), epsilon);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed), w = random_floats(c.w, seed + 1);
    Floats y(c.size()), r(c.t);
    rmsnorm_forward<float>(y, r, x, w, epsilon);
    return relative_difference(y, reference_rmsnorm(doubles(x), doubles(w), epsilon));
  };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask rmsnorm_gradient(const Shape& s) {
  HostTask out{.inputs = 2 * s.size() + s.w + s.t, .outputs = s.size() + s.w};
  out.run = [s](Stretch in, Stretch to) {
    Pieces from(in);
    const auto dy = from.take(s.size()), x = from.take(s.size()), w = from.take(s.w),
               r = from.take(s.t);
    rmsnorm_backward<float>(to.first(s.size()), to.subspan(s.size(), s.w), dy, x, w, r);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed), w = random_floats(c.w, seed + 1),
                 dy = random_floats(c.size(), seed + 2);
    Floats y(c.size()), r(c.t), dx(c.size()), dw(c.w);
    rmsnorm_forward<float>(y, r, x, w, epsilon);
    rmsnorm_backward<float>(dx, dw, dy, x, w, r);
    const auto g = reference_rmsnorm_backward(doubles(dy), doubles(x), doubles(w), epsilon);
    return std::max(relative_difference(dx, g.dx), relative_difference(dw, g.dw));
  };
  out.bytes = four(3 * s.size());
  return out;
}

HostTask layernorm(const Shape& s) {
  HostTask out{.inputs = s.size() + 2 * s.w, .outputs = s.size() + 2 * s.t};
  out.run = [s](Stretch in, Stretch to) {
    layernorm_forward<float>(to.first(s.size()), to.subspan(s.size(), s.t),
                             to.subspan(s.size() + s.t, s.t), in.first(s.size()),
                             in.subspan(s.size(), s.w), in.subspan(s.size() + s.w, s.w), epsilon);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed), w = random_floats(c.w, seed + 1),
                 b = random_floats(c.w, seed + 2);
    Floats y(c.size()), m(c.t), r(c.t);
    layernorm_forward<float>(y, m, r, x, w, b, epsilon);
    return relative_difference(y, reference_layernorm(doubles(x), doubles(w), doubles(b), epsilon));
  };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask layernorm_gradient(const Shape& s) {
  HostTask out{.inputs = 2 * s.size() + s.w + 2 * s.t, .outputs = s.size() + 2 * s.w};
  out.run = [s](Stretch in, Stretch to) {
    Pieces from(in);
    const auto dy = from.take(s.size()), x = from.take(s.size()), w = from.take(s.w),
               m = from.take(s.t), r = from.take(s.t);
    layernorm_backward<float>(to.first(s.size()), to.subspan(s.size(), s.w),
                              to.subspan(s.size() + s.w, s.w), dy, x, w, m, r);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed), w = random_floats(c.w, seed + 1),
                 dy = random_floats(c.size(), seed + 2), b(c.w);
    Floats y(c.size()), m(c.t), r(c.t), dx(c.size()), dw(c.w), db(c.w);
    layernorm_forward<float>(y, m, r, x, w, b, epsilon);
    layernorm_backward<float>(dx, dw, db, dy, x, w, m, r);
    const auto g = reference_layernorm_backward(doubles(dy), doubles(x), doubles(w), epsilon);
    return std::max({relative_difference(dx, g.dx), relative_difference(dw, g.dw),
                     relative_difference(db, g.db)});
  };
  out.bytes = four(3 * s.size());
  return out;
}

HostTask rope(const Shape& s, bool backward) {
  const auto width = static_cast<std::int64_t>(s.w);
  if (width % 2 != 0) throw Unsupported("rope turns pairs: its width is even");
  const std::int64_t dim = width % rope_head_dim == 0 ? rope_head_dim : width;
  const std::int64_t heads = width / dim;
  const std::int64_t sequence = std::min(rope_sequence, static_cast<std::int64_t>(s.t));
  const RopeTable<float> table = make_rope_table<float>(sequence, dim);
  const auto turn = [=](Stretch x) {
    backward ? rope_backward(x, heads, table) : rope_forward(x, heads, table);
  };
  HostTask out{.inputs = 0, .outputs = s.size()};  // in place
  out.run = [turn](Stretch, Stretch x) { turn(x); };
  out.check = [=](std::uint64_t seed) {
    Floats x = random_floats(s.checked().size(), seed);
    const Doubles before = doubles(x);
    turn(x);
    return relative_difference(x, reference_rope(before, heads, dim, sequence, backward ? -1 : 1));
  };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask silu_mul(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = 2 * n, .outputs = n};
  out.run = [n](Stretch in, Stretch y) {
    silu_mul_forward<float>(y, in.first(n), in.subspan(n, n));
  };
  out.check = [s](std::uint64_t seed) {
    const Floats gate = random_floats(s.checked().size(), seed),
                 up = random_floats(gate.size(), seed + 1);
    Floats y(gate.size());
    silu_mul_forward<float>(y, gate, up);
    return relative_difference(y, reference_silu_mul(doubles(gate), doubles(up)));
  };
  out.bytes = four(3 * n);
  return out;
}

HostTask silu_mul_gradient(const Shape& s) {
  const std::size_t n = s.size();
  HostTask out{.inputs = 3 * n, .outputs = 2 * n};
  out.run = [n](Stretch in, Stretch to) {
    silu_mul_backward<float>(to.first(n), to.subspan(n, n), in.first(n), in.subspan(n, n),
                             in.subspan(2 * n, n));
  };
  out.check = [s](std::uint64_t seed) {
    const Floats gate = random_floats(s.checked().size(), seed),
                 up = random_floats(gate.size(), seed + 1),
                 dy = random_floats(gate.size(), seed + 2);
    Floats dgate(gate.size()), dup(gate.size());
    silu_mul_backward<float>(dgate, dup, dy, gate, up);
    const auto g = reference_silu_mul_backward(doubles(dy), doubles(gate), doubles(up));
    return std::max(relative_difference(dgate, g.first), relative_difference(dup, g.second));
  };
  out.bytes = four(5 * n);
  return out;
}

HostTask gelu(const Shape& s, bool backward) {
  const std::size_t n = s.size();
  HostTask out{.inputs = (backward ? 2 : 1) * n, .outputs = n};
  out.run = [n, backward](Stretch in, Stretch to) {
    if (backward)
      gelu_backward<float>(to, in.first(n), in.subspan(n, n));
    else
      gelu_forward<float>(to, in);
  };
  out.check = [s, backward](std::uint64_t seed) {
    const Floats x = random_floats(s.checked().size(), seed),
                 dy = random_floats(x.size(), seed + 1);
    Floats y(x.size());
    backward ? gelu_backward<float>(y, dy, x) : gelu_forward<float>(y, x);
    return relative_difference(y, backward ? reference_gelu_backward(doubles(dy), doubles(x))
                                           : reference_gelu(doubles(x)));
  };
  out.bytes = four((backward ? 3 : 2) * n);
  return out;
}

HostTask cross_entropy(const Shape& s) {
  HostTask out{.inputs = s.size(), .outputs = 2 * s.t};
  const Ids targets = random_ids(s.t, static_cast<std::int32_t>(s.w), 7);
  out.run = [=](Stretch in, Stretch to) {
    cross_entropy_forward<float>(to.first(s.t), to.subspan(s.t, s.t), in, targets);
  };
  out.check = [s](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed);
    const Ids ids = random_ids(c.t, static_cast<std::int32_t>(c.w), seed + 1);
    Floats loss(c.t), lse(c.t);
    cross_entropy_forward<float>(loss, lse, x, ids);
    return relative_difference(loss, reference_cross_entropy(doubles(x), ids));
  };
  out.bytes = four(2 * s.size());  // the largest first, then the sum
  return out;
}

HostTask cross_entropy_gradient(const Shape& s) {
  HostTask out{.inputs = s.size() + s.t, .outputs = s.size()};
  const Ids targets = random_ids(s.t, static_cast<std::int32_t>(s.w), 7);
  const float scale = 1.0F / static_cast<float>(s.t);
  out.run = [=](Stretch in, Stretch to) {
    cross_entropy_backward<float>(to, in.first(s.size()), in.subspan(s.size(), s.t), targets,
                                  scale);
  };
  out.check = [s, scale](std::uint64_t seed) {
    const Shape c = s.checked();
    const Floats x = random_floats(c.size(), seed);
    const Ids ids = random_ids(c.t, static_cast<std::int32_t>(c.w), seed + 1);
    Floats loss(c.t), lse(c.t), dx(c.size());
    cross_entropy_forward<float>(loss, lse, x, ids);
    cross_entropy_backward<float>(dx, x, lse, ids, scale);
    return relative_difference(
        dx, reference_cross_entropy_backward(doubles(x), ids, static_cast<double>(scale)));
  };
  out.bytes = four(2 * s.size());
  return out;
}

HostTask embedding(const Shape& s, bool backward) {
  const std::size_t table = static_cast<std::size_t>(embedding_rows) * s.w;
  const Ids ids = random_ids(s.t, embedding_rows, 7);
  HostTask out{.inputs = backward ? s.size() : table, .outputs = backward ? table : s.size()};
  out.run = [=](Stretch in, Stretch to) {
    if (backward)
      embedding_backward<float>(to, in, ids);
    else
      embedding_forward<float>(to, in, ids);
  };
  out.check = [s, backward](std::uint64_t seed) {
    const Shape c = s.checked();
    const std::int32_t rows = 16;
    const Ids some = random_ids(c.t, rows, seed);
    const Floats in = random_floats(backward ? c.size() : 16 * c.w, seed + 1);
    Floats result(backward ? 16 * c.w : c.size());
    Doubles reference(result.size());
    backward ? embedding_backward<float>(result, in, some)
             : embedding_forward<float>(result, in, some);
    for (std::size_t t = 0; t < c.t; ++t)
      for (std::size_t h = 0; h < c.w; ++h) {
        const std::size_t row = static_cast<std::size_t>(some[t]) * c.w + h, at = t * c.w + h;
        reference[backward ? row : at] += static_cast<double>(in[backward ? at : row]);
      }
    return relative_difference(result, reference);
  };
  out.bytes = four((backward ? 3 : 2) * s.size());
  return out;
}

}  // namespace

HostTask host_task(const ElementwiseTask& task) {
  require_fp32(task.dtype);
  if (task.width < 1) throw Unsupported("an element-wise kernel has a width");
  const Shape s{static_cast<std::size_t>(std::max<std::int64_t>(task.tokens, 1)),
                static_cast<std::size_t>(task.width)};
  const bool back = task.backward;
  const std::map<std::string, std::function<HostTask()>> kinds{
      {"rmsnorm", [&] { return back ? rmsnorm_gradient(s) : rmsnorm(s); }},
      {"layernorm", [&] { return back ? layernorm_gradient(s) : layernorm(s); }},
      {"rope", [&] { return rope(s, back); }},
      {"silu_mul", [&] { return back ? silu_mul_gradient(s) : silu_mul(s); }},
      {"gelu", [&] { return gelu(s, back); }},
      {"cross_entropy", [&] { return back ? cross_entropy_gradient(s) : cross_entropy(s); }},
      {"embedding", [&] { return embedding(s, back); }},
      {"residual_add", [&] { return sum_of_two(s); }},
      {"adamw", [&] { return optimizer(s); }},
      {"grad_norm", [&] { return gradient_norm(s); }},
      {"scale", [&] { return scaled(s); }},
      {"zero", [&] { return zeroed(s); }},
      {"sum_rows", [&] { return summed_rows(s); }},
      {"router", [&] { return router(task); }},
      {"permute", [&] { return permute(task); }},
      {"unpermute", [&] { return unpermute(task); }},
      {"sort_rows", [&] { return sorted_rows(s); }},
      {"weighted_silu_mul",
       [&] { return back ? weighted_silu_mul_gradient(s) : weighted_silu_mul(s); }},
      {"cast", [&] { return plain_copy(s); }},
      {"copy_in", [&] { return plain_copy(s); }},
      {"copy_out", [&] { return plain_copy(s); }},
  };
  const auto found = kinds.find(task.kind);
  if (found == kinds.end()) throw Unsupported("the host has no kernel " + task.kind);
  HostTask out = found->second();
  out.tolerance = 2e-5;  // of sums over rows in float; the sums of one pass are nearer
  return out;
}

}  // namespace stepcast::calibrate::host
