// Laws of a layer whose attention is not Llama's: latent, with norms or biases of q and k, with
// sinks, with a window.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "tests/workloads/fixtures.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/layer_piece.hpp"
#include "workloads/plan/model_size.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

TransformerShape latent_model(std::int64_t q_rank) {
  TransformerShape s = llama(4, 1024, 16, 16, 4096);
  s.latent = {.kv_rank = 256, .q_rank = q_rank, .nope = 64, .rope = 32, .value = 64};
  s.head_dim = 96;
  return s;
}
TransformerShape with_head_norms() {
  TransformerShape s = llama(4, 1024, 16, 4, 4096);
  s.qk_norm = s.qkv_biases = s.sinks = true;
  return s;
}

struct Totals {
  double gemm = 0, attention = 0, norm_bytes = 0;
  std::map<std::string, std::int64_t> sent;  // bytes by collective
  std::multiset<std::uint32_t> gradients;
};

struct Case {
  TransformerShape shape;
  ParallelPlan plan{};
  Software software = fused();
  LayerKind kind{};
  Batch batch{.micro_batch = 2, .micro_batches = 1, .sequence = 512};
  Precision precision{};

  StepInputs inputs() const { return {shape, plan, batch, precision, software}; }
  ParameterTensors tensors() const {
    return layer_tensors(shape, plan, software.products.packed, kind);
  }
  Totals of(bool backward) const {
    KernelTable table;
    const StepInputs in = inputs();
    const ParameterTensors unit = tensors();
    const Piece piece =
        backward ? layer_backward(in, table, unit, kind) : layer_forward(in, table, kind);
    const auto kernels = table.take_kernels();
    const auto collectives = table.take_collectives();
    Totals out;
    for (const Action& action : piece) {
      if (launches(action)) {
        const Kernel& k = kernels[action.index];
        const bool core = k.name.find("attention.core") != std::string::npos;
        (core ? out.attention : out.gemm) += k.flops.value;
        if (k.name.find("_norm") != std::string::npos)
          out.norm_bytes += static_cast<double>(k.bytes.value);
      } else if (action.kind == Action::Kind::gradient) {
        out.gradients.insert(action.index);
      } else if (action.kind == Action::Kind::collective || action.kind == Action::Kind::begin) {
        out.sent[collectives[action.index].name] += collectives[action.index].bytes.value;
      }
    }
    return out;
  }
  double tokens() const { return static_cast<double>(batch.micro_batch * batch.sequence); }
  double weights() const {
    TransformerShape one = shape;
    one.layers = 1;
    return static_cast<double>(products_per_token(one) - shape.vocab * shape.hidden);
  }
};

std::vector<TransformerShape> all_shapes() {
  return {latent_model(512), latent_model(0), with_head_norms()};
}

}  // namespace

TEST_CASE("products of a layer are 2 FLOPs per weight and token, backward twice that") {
  for (const TransformerShape& shape : all_shapes())
    for (const Software& software : {eager(), compiled(), fused()}) {
      const Case c{.shape = shape, .software = software};
      CHECK(c.of(false).gemm == Approx(2 * c.weights() * c.tokens()).epsilon(1e-12));
      CHECK(c.of(true).gemm == Approx(4 * c.weights() * c.tokens()).epsilon(1e-12));
      const double per_pair =
          2.0 * 16 * static_cast<double>(score_width(shape) + value_width(shape));
      CHECK(c.of(false).attention == Approx(c.tokens() * 256 * per_pair).epsilon(1e-12));
    }
}

TEST_CASE("tensors of a layer are its parameters, and backward completes each gradient once") {
  for (const TransformerShape& shape : all_shapes())
    for (const Software& software : {eager(), compiled(), fused()}) {
      const Case c{.shape = shape, .software = software};
      const ParameterTensors tensors = c.tensors();
      CHECK(elements_of(tensors) == layer_parameters(shape, 0));
      const Totals backward = c.of(true);
      CHECK(backward.gradients.size() == tensors.size());
      for (std::uint32_t i = 0; i < tensors.size(); ++i) {
        INFO(tensors[i].name);
        CHECK(backward.gradients.count(i) == 1);
      }
    }
}

TEST_CASE("tensor ranks cut all but norms and the way down to the ranks, and share its work") {
  for (const TransformerShape& shape : all_shapes()) {
    Case c{.shape = shape};
    const Totals forward = c.of(false), backward = c.of(true);
    c.plan.tensor = 4;
    c.plan.sequence_parallel = true;
    const ParameterTensors cut = c.tensors();
    const std::int64_t whole = replicated_elements_of(cut);
    CHECK(4 * (elements_of(cut) - whole) + whole == layer_parameters(shape, 0));
    CHECK(4 * c.of(false).gemm == Approx(forward.gemm).epsilon(1e-12));
    CHECK(4 * c.of(true).gemm == Approx(backward.gemm).epsilon(1e-12));
    c.plan.sequence_parallel = false;  // the way down is gone by every rank
    const LatentShape& l = shape.latent;
    const double down =
        latent(shape) ? static_cast<double>(shape.hidden * (l.q_rank + l.kv_rank + l.rope)) : 0.0;
    CHECK(4 * c.of(false).gemm == Approx(forward.gemm + 3 * 2 * down * c.tokens()).epsilon(1e-12));
  }
}

TEST_CASE("with sequence parallelism the low ranks are gathered, not the hidden tensor") {
  Case c{.shape = latent_model(512)};
  c.plan.tensor = 2;
  c.plan.sequence_parallel = true;
  const auto bytes = [&](std::int64_t width) { return 2 * 2 * 512 * width; };
  const std::map<std::string, std::int64_t> forward = c.of(false).sent, backward = c.of(true).sent;
  CHECK(forward.at("layer.attention.q_up.forward") == bytes(512));
  CHECK(forward.at("layer.attention.kv_up.forward") == bytes(256));
  CHECK(forward.at("layer.attention.k_rope.forward") == bytes(32));
  CHECK(backward.at("layer.attention.q_up.backward") == bytes(512));
  CHECK(backward.at("layer.attention.kv_up.backward") == bytes(256));
  CHECK(backward.at("layer.attention.k_rope.backward") == bytes(32));
  CHECK(forward.count("layer.attention.qkv.forward") == 0);
  c.shape = latent_model(0);  // queries come out of the hidden tensor
  CHECK(c.of(false).sent.at("layer.attention.q.forward") == bytes(1024));
}

TEST_CASE("norms of heads read and write q and k, backward 3 tensors each") {
  const Case c{.shape = with_head_norms()};
  const double elements = c.tokens() * 64 * (16 + 4);
  CHECK(c.of(false).norm_bytes == Approx(2 * 2 * elements));
  CHECK(c.of(true).norm_bytes == Approx(2 * 3 * elements + 2 * 4 * 264 * 64));
}

TEST_CASE("a window leaves the pairs of tokens that lie within it") {
  Case c{.shape = llama(2, 1024, 16, 16, 4096), .kind = {{Mixer::window}}};
  c.shape.window = 64;
  double pairs = 0;  // as many keys as lie before, the token itself for a half
  for (std::int64_t row = 0; row < 512; ++row) {
    const auto before = static_cast<double>(row);
    pairs += before < 64 ? before + 0.5 : 64;
  }
  const double forward = 2 * pairs * 16 * (64 + 64) * 2;
  CHECK(c.of(false).attention == Approx(forward).epsilon(1e-12));
  CHECK(c.of(true).attention == Approx(2.5 * forward).epsilon(1e-12));
  c.kind.mixer = Mixer::full;
  const double whole = c.of(false).attention;
  CHECK(whole == Approx(2 * 512.0 * 256 * 16 * 128 * 2).epsilon(1e-12));
  c.kind.mixer = Mixer::window;
  c.shape.window = 512;
  CHECK(c.of(false).attention == whole);
}

TEST_CASE("layers of one model differ by their windows, every second from the first on") {
  TransformerShape s = llama(4, 1024, 16, 4, 4096);
  s.window = 128;
  s.window_every = 2;
  const StageParameters all = stage_parameters(s, {}, {}, false, 0);
  CHECK(all.kinds.size() == 2);
  CHECK(all.kind_of == std::vector<std::uint8_t>{0, 1, 0, 1});
  CHECK(all.kinds[0].kind.mixer == Mixer::window);
  CHECK(all.elements() == parameters(s));
}

TEST_CASE("a layer of latent attention keeps low ranks beside q, k, v and what comes out") {
  const Case c{.shape = latent_model(512)};
  const StepInputs in = c.inputs();
  const auto t = static_cast<std::int64_t>(c.tokens());
  const std::int64_t hidden = 2 * t * 1024, q = 2 * t * 16 * 96, v = 2 * t * 16 * 64;
  const std::int64_t ranks = 2 * 2 * t * (512 + 256);  // before their norms and after
  const std::int64_t mlp = 3 * 2 * t * 4096;
  CHECK(ActivationMemory(in).layer_without_recompute() ==
        4 * hidden + ranks + 2 * q + 2 * v + 4 * t * 16 + mlp);
}

TEST_CASE("projections up that backward makes again are not kept, and are made once more") {
  Case c{.shape = latent_model(512)};
  const StepInputs in = c.inputs();
  const std::int64_t kept = ActivationMemory(in).layer_without_recompute();
  const double backward = c.of(true).gemm;
  c.plan.recompute_modules.add(LayerModule::latent_up);
  const auto t = static_cast<std::int64_t>(c.tokens());
  const std::int64_t up = 512 * 16 * 96 + 256 * 16 * (64 + 64);
  CHECK(c.of(true).gemm == Approx(backward + 2.0 * c.tokens() * static_cast<double>(up)));
  CHECK(kept - ActivationMemory(in).layer_without_recompute() ==
        2 * t * (16 * (2 * 96 + 64) + 512 + 256));
  c.plan.recompute = Recompute::full;  // which makes all of the layer again, once
  const double full = c.of(true).gemm;
  c.plan.recompute_modules = {};
  CHECK(c.of(true).gemm == full);
}

TEST_CASE("recompute of norms is of those that stand alone, as before latent attention") {
  Case grouped{.shape = with_head_norms()}, low_ranks{.shape = latent_model(512)};
  for (Case* c : {&grouped, &low_ranks}) {
    const StepInputs in = c->inputs();
    const std::int64_t kept = ActivationMemory(in).layer_without_recompute();
    const auto calls = [&] {
      KernelTable table;
      return layer_backward(in, table, c->tensors(), c->kind).size();
    };
    const std::size_t before = calls();
    c->plan.recompute_modules = {LayerModule::norm};
    const bool alone = c == &low_ranks;
    const auto hidden = static_cast<std::int64_t>(c->tokens()) * 2 * in.shape.hidden;
    CHECK(kept - ActivationMemory(in).layer_without_recompute() == (alone ? hidden : 0));
    CHECK((calls() > before) == alone);
  }
}
