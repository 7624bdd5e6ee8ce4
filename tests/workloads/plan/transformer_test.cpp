#include "workloads/plan/transformer.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/fixtures.hpp"
#include "workloads/plan/rank_parameters.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

TEST_CASE("the models have the parameters that their authors publish") {
  CHECK(parameters(llama_1b()) == 1'100'048'384);  // TinyLlama
  CHECK(parameters(llama_7b()) == 6'738'415'616);
  CHECK(parameters(llama_13b()) == 13'015'864'320);
  CHECK(parameters(llama_70b()) == 68'976'648'192);
  CHECK(parameters(gpt(48, 1600, 25, 1024)) == 1'557'611'200);     // GPT-2 XL
  CHECK(parameters(gpt(96, 12288, 96, 2048)) == 174'604'259'328);  // GPT-3
  // BertForPreTraining of google-bert/bert-large-uncased.
  CHECK(parameters(bert_large()) == 336'226'108);
}

TEST_CASE("ALiBi leaves out the table of positions") {
  TransformerShape s = gpt(2, 1024, 16, 2048);
  const std::int64_t learned = parameters(s);
  s.alibi = true;
  CHECK(learned - parameters(s) == 2048 * 1024);
}

TEST_CASE("BERT predicts 20 of 128 positions and 80 of 512") {
  CHECK(predicted_positions(bert_large(), 128) == 20);
  CHECK(predicted_positions(bert_large(), 512) == 80);
  CHECK(predicted_positions(llama_7b(), 512) == 512);
  // Per token: 24 layers of 12 h^2, 12 L h s for attention, 5/32 of transform and logits.
  const double h2 = 1024.0 * 1024;
  const double per_token =
      6 * (24 * 12 * h2 + 5.0 / 32 * (h2 + 30522 * 1024.0)) + 12 * 24 * 1024 * 512.0;
  CHECK(model_flops(bert_large(), 1, 512).value == Approx(per_token).epsilon(1e-12));
}

TEST_CASE("model FLOPs of Llama-2 7B at 4096 tokens are those of PaLM's formula") {
  // 6 (32 (4 4096^2 + 3 4096 11008) + 32000 4096) + 12 32 4096 4096 = 4.6088e10 per token.
  const double per_token =
      6.0 * (32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) + 32000.0 * 4096) +
      12.0 * 32 * 4096 * 4096;
  CHECK(model_flops(llama_7b(), 1, 4096).value == Approx(per_token).epsilon(1e-12));
  CHECK(model_flops(llama_7b(), 8192, 4096).value == Approx(8192 * per_token).epsilon(1e-12));
}

TEST_CASE("the tensors of one rank without tensor parallelism are the whole model") {
  for (const TransformerShape& s :
       {llama_1b(), llama_7b(), llama_70b(), gpt(48, 1600, 25, 1024), bert_large()}) {
    for (const bool packed : {false, true}) {
      CHECK(elements_of(layer_tensors(s, {}, packed)) == layer_parameters(s));
      CHECK(elements_of(stage_parameters(s, {}, {}, packed, 0).layer(0)) == layer_parameters(s));
      CHECK(stage_parameters(s, {}, {}, packed, 0).elements() == parameters(s));
    }
  }
}

TEST_CASE("tensor parallelism cuts matrices and keeps norms and row-parallel biases whole") {
  const TransformerShape s = gpt(2, 1024, 16, 512);
  for (const std::int64_t t : {2, 4, 8}) {
    const ParameterTensors cut = layer_tensors(s, {.tensor = t}, true);
    const std::int64_t whole = replicated_elements_of(cut);
    CHECK(whole == 4 * s.hidden + 2 * s.hidden);  // two norms with bias, two row-parallel biases
    CHECK(t * (elements_of(cut) - whole) + whole == layer_parameters(s));
  }
}

TEST_CASE("with more tensor ranks than kv heads each keeps one kv head") {
  const TransformerShape s = llama_70b();  // 8 kv heads of 128
  CHECK(RankWidths(s, 8).kv_heads == 1);
  CHECK(RankWidths(s, 16).kv_heads == 1);
  const auto k_elements = [&](std::int64_t t) {
    return layer_tensors(s, {.tensor = t}, false)[2].elements;
  };
  CHECK(k_elements(8) == 8192 * 128);
  CHECK(k_elements(16) == 8192 * 128);
}
