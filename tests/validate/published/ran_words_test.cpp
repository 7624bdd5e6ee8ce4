#include <catch2/catch.hpp>

#include "validate/published/row_keys.hpp"
#include "validate/rows/row_words.hpp"

using namespace stepcast::validate;

namespace {

PublishedRow what_ran(std::string PublishedRow::*column, const std::string& text) {
  PublishedRow row;
  row.columns = ColumnSet::what_ran;
  row.*column = text;
  return row;
}

/// Why a row with this cell has no scenario; empty: it has one.
std::string refusal(std::string PublishedRow::*column, const std::string& text) {
  const PublishedRow row = what_ran(column, text);
  try {
    told_of_words(row);
    stated_loss(row);
    stated_optimizer(row);
    stated_offload(row);
    stated_compile(row);
    stated_recompute(row);
  } catch (const RefusedRow& refused) {
    return refused.why;
  }
  return "";
}

}  // namespace

TEST_CASE("a loss is taken for a key, or its row is refused: never left out") {
  const auto loss = [](const char* text) {
    return stated_loss(what_ran(&PublishedRow::loss_kernel, text));
  };
  CHECK(loss("").empty());
  CHECK(loss("HF CE") == "kernels");
  CHECK(loss("HF CE with fused kernel") == "shifted");
  CHECK(loss("Liger fused linear CE") == "fused_linear");
  CHECK(loss("chunked, 8 chunks") == "chunks");
  CHECK(loss("chunked, 256 tokens") == "checkpointed");
  CHECK(refusal(&PublishedRow::loss_kernel, "of my own") ==
        "the loss kernel 'of my own' is not known");
}

TEST_CASE("shares that lie on the host are read out of words") {
  const auto offload = [](const char* text, std::int64_t layers = 48) {
    PublishedRow row = what_ran(&PublishedRow::offload, text);
    row.layers = layers;
    return stated_offload(row);
  };
  CHECK(offload("none").optimizer == 0.0);
  CHECK(offload("optimizer 25 %").optimizer == 0.25);
  CHECK(offload("optimizer").optimizer == 1.0);
  CHECK(offload("optimizer 100 %, overlapped copies").overlap);
  CHECK(offload("optimizer, activations").activations == 1.0);
  CHECK(offload("activations, 24 layers").activations == 0.5);
  CHECK(offload("checkpointed activations to the CPU").activations == 1.0);
  CHECK(offload("optimizer and parameters").parameters == 1.0);
  CHECK(refusal(&PublishedRow::offload, "gradients") == "the offload 'gradients' is not known");
}

TEST_CASE("a compiler is stated, or open") {
  const auto compile = [](const char* text) {
    return stated_compile(what_ran(&PublishedRow::compile, text));
  };
  CHECK_FALSE(compile("").has_value());
  CHECK(compile("yes") == true);
  CHECK(compile("no") == false);
  CHECK(compile("graph trainer") == false);
  CHECK(compile("regional inductor") == true);
  CHECK_FALSE(refusal(&PublishedRow::compile, "perhaps").empty());
}

TEST_CASE("adapters, other optimizers, unfilled sequences and flags without a key") {
  CHECK(stated_adapters(what_ran(&PublishedRow::lora_rank, "16")).rank == 16);
  CHECK_FALSE(stated_adapters(what_ran(&PublishedRow::lora_rank, "recipe default")).states_rank);
  CHECK(refusal(&PublishedRow::other_flags, "DoRA").empty());  // told instead
  CHECK(refusal(&PublishedRow::optimizer, "AdamW").empty());
  CHECK_FALSE(refusal(&PublishedRow::optimizer, "Sophia").empty());
  CHECK(refusal(&PublishedRow::packing, "offline packed").empty());
  CHECK_FALSE(refusal(&PublishedRow::packing, "unpacked").empty());
  CHECK(refusal(&PublishedRow::other_flags, "SFT; DeepEP; cp p2p").empty());
  CHECK(stated_tiles(what_ran(&PublishedRow::other_flags, "Ulysses 8; tiled MLP")));
  const auto told = told_of_words(what_ran(&PublishedRow::other_flags, "SFT; a new flag"));
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("a new flag") != std::string::npos);
}

TEST_CASE("adapters that a row leaves open are the framework's, what it states is not overruled") {
  const auto strings = [](const std::vector<const char*>& words) {
    stepcast::sim::TomlValue::Array out;
    for (const char* word : words) out.push_back(stepcast::sim::toml_text(word, "rule"));
    return stepcast::sim::TomlValue{.data = std::move(out), .where = "rule"};
  };
  FrameworkDefaults framework;
  framework.adapters.set("lora_rank", {std::int64_t{16}, "rule"});
  framework.adapters.set("lora_targets", strings({"q", "v"}));
  const auto put = [&](const char* rank, const char* flags, const FrameworkDefaults& by) {
    PublishedRow row = what_ran(&PublishedRow::lora_rank, rank);
    row.other_flags = flags;
    stepcast::sim::TomlValue model = stepcast::sim::toml_table("row");
    const auto told = put_adapters(row, by, model, "row");
    return std::vector<std::size_t>{
        told.size(),
        static_cast<std::size_t>(std::get<std::int64_t>(model.find("lora_rank")->data)),
        model.find("lora_targets")->array()->size()};
  };
  CHECK(put("recipe default", "", framework) == std::vector<std::size_t>{0, 16, 2});
  CHECK(put("64", "q,k,v,o adapters", framework) == std::vector<std::size_t>{0, 64, 4});
  CHECK(put("recipe default", "", {}) == std::vector<std::size_t>{2, 8, 7});
}

TEST_CASE("forms of the optimizer are keys, and where it runs") {
  const auto form = [](const char* text) {
    return stated_optimizer(what_ran(&PublishedRow::optimizer, text));
  };
  CHECK(form("").empty());
  CHECK(form("AdamW") == "adam");
  CHECK(form("8-bit AdamW") == "adam_8bit");
  CHECK(form("Muon+AdamW") == "muon");
  CHECK(updates_in_backward(what_ran(&PublishedRow::other_flags, "Optimizer in backward; SFT")));
  CHECK_FALSE(updates_in_backward(what_ran(&PublishedRow::other_flags, "SFT")));
  CHECK(refusal(&PublishedRow::other_flags, "optimizer in backward").empty());
}

TEST_CASE("recompute of modules stands in the column of its kind") {
  const auto row = [](const char* text) {
    return what_ran(&PublishedRow::activation_checkpointing, text);
  };
  using stepcast::workloads::Recompute;
  CHECK(stated_recompute(row("moe_act")) == Recompute::none);
  CHECK(stated_recompute(row("layernorm+moe_act")) == Recompute::none);
  CHECK(stated_recompute(row("mlp+core_attn")) == Recompute::selective);
  CHECK(stated_recompute(row("full (HF gradient checkpointing)")) == Recompute::full);
  CHECK(stated_modules(row("layernorm+moe_act")) ==
        std::vector<std::string>{"norm", "expert_activation"});
  CHECK(stated_modules(row("mlp")) == std::vector<std::string>{"mlp"});
  CHECK(stated_modules(row("full")).empty());
}

TEST_CASE("experts are loaded as a router does it, but for recipes that force a balance") {
  const auto kind = [](const char* framework, const char* flags, const char* rank = "") {
    PublishedRow row = what_ran(&PublishedRow::framework, framework);
    row.other_flags = flags;
    row.lora_rank = rank;
    return *routing_table(row, "a.csv:2").find("kind")->text();
  };
  CHECK(kind("torchtitan", "") == "max_violation");
  CHECK(kind("torchtitan", "forced balance") == "balanced");
  CHECK(kind("megatron-bridge", "CUDA graphs") == "balanced");
  CHECK(kind("megatron-bridge", "SFT; natural routing") == "max_violation");
  CHECK(kind("megatron-bridge", "", "8") == "max_violation");
  PublishedRow older;
  older.routing = "natural";
  CHECK(*routing_table(older, "a.csv:2").find("kind")->text() == "uniform");
  older.routing = "";
  CHECK(*routing_table(older, "a.csv:2").find("kind")->text() == "balanced");
}
