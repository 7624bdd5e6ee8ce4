#include "validate/published/scenario.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/files/names.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

PublishedRow llama_row() {
  PublishedRow row;
  row.id = "ABCD-0001";
  row.source = "a report of 2024";
  row.gpu = "A100-SXM4-80GB";
  row.gpus = 16;
  row.gpus_per_node = 8;
  row.inter_node_gbps_per_node = 1600;
  row.model = "Llama-2-7b";
  row.params_b = 6.74;
  row.layers = 32;
  row.hidden = 4096;
  row.heads = 32;
  row.kv_heads = 32;
  row.ffn_hidden = 11008;
  row.vocab = 32000;
  row.seq_len = 4096;
  row.global_batch_seqs = 32;
  row.micro_batch_seqs = 1;
  row.dp_mode = "fsdp";
  row.tp = row.pp = 1;
  row.activation_checkpointing = "full";
  row.precision = "bf16";
  row.framework = "PyTorch FSDP";
  row.step_time_s = 4.0;
  return row;
}

RowScenario made(const PublishedRow& row) {
  static const ScenarioMaker maker(session());
  return maker.scenario_of(row, "rows.csv:2");
}

bool says(const RowScenario& row, const std::string& words) {
  return std::any_of(row.assumed.begin(), row.assumed.end(), [&](const std::string& sentence) {
    return sentence.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a row becomes the scenario that it states") {
  const RowScenario row = made(llama_row());
  REQUIRE(row.refused == "");
  const sim::Scenario& s = *row.scenario;
  CHECK(s.gpus == 16);
  CHECK(s.nodes == 2);
  CHECK(s.node.gpu.name == "a100-sxm4-80gb");
  CHECK(s.model.layers == 32);
  CHECK(s.model.activation == workloads::Activation::swiglu);
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.plan.recompute == workloads::Recompute::full);
  CHECK(s.batch.micro_batch == 1);
  CHECK(s.batch.micro_batches == 2);
  CHECK(s.precision.compute == workloads::Dtype::bf16);
}

TEST_CASE("the scenario of a row can be run as a file and gives the same step") {
  const RowScenario row = made(llama_row());
  const std::string text = sim::write_toml(row.document);
  sim::Scenario again = sim::read_scenario(sim::read_toml(text, "again.toml"), catalogue());
  again.run.ignore_memory = true;
  CHECK(session().step(again).step_time == session().step(*row.scenario).step_time);
}

TEST_CASE("no row is treated by its id, its address or its measured time") {
  const RowScenario first = made(llama_row());
  PublishedRow other = llama_row();
  other.id = "HAGE-0001";
  other.url = "elsewhere";
  other.step_time_s = 0.5;
  other.tokens_per_s_per_gpu = 9;
  RowScenario second = made(other);
  second.document.set("title", *first.document.find("title"));
  CHECK(sim::write_toml(second.document) == sim::write_toml(first.document));
}

TEST_CASE("what a row leaves open is chosen and said") {
  PublishedRow row = llama_row();
  row.activation_checkpointing.clear();
  row.micro_batch_seqs.reset();
  row.vocab.reset();
  row.inter_node_gbps_per_node.reset();
  const RowScenario open = made(row);
  REQUIRE(open.refused == "");
  CHECK(open.scenario->model.vocab == 32000);
  CHECK(open.assumed.size() >= 3);
  for (const std::string& sentence : open.assumed) CHECK(sentence != "");
}

TEST_CASE("a stated recompute stays, whether it should fit or not") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-LM";
  row.dp_mode = "zero1";
  row.attention_kernel = "fused softmax";
  row.tp = 8;
  row.global_batch_seqs = 256;
  row.micro_batch_seqs = 16;  // 32 layers of 4 heads x 4096^2 scores, 4 bytes each, 16 times
  for (const char* word : {"none", "selective", "full"}) {
    row.activation_checkpointing = word;
    const RowScenario stated = made(row);
    CHECK(sim::word_for(sim::recompute_names, stated.scenario->plan.recompute) == word);
    if (std::string(word) == "none") CHECK(says(stated, "should not fit"));
  }
  row.activation_checkpointing = "none";  // told by nobody but the recipe: open
  row.notes = "GBS/TP/PP/recompute are the repo default recipe";
  CHECK(made(row).scenario->plan.recompute == workloads::Recompute::selective);
}

TEST_CASE("selective of fms-fsdp is a share of blocks: all of them where none does not fit") {
  PublishedRow row = llama_row();
  row.framework = "PyTorch FSDP1 (fms)";
  row.activation_checkpointing = "selective";
  CHECK(made(row).scenario->plan.recompute == workloads::Recompute::selective);
  row.global_batch_seqs = 256;
  row.micro_batch_seqs = 16;
  CHECK(made(row).scenario->plan.recompute == workloads::Recompute::full);
}

TEST_CASE("the ranks that share one copy are the row's, where it states them") {
  PublishedRow row = llama_row();
  row.dp_mode = "fsdp";
  const std::int64_t all = made(row).scenario->plan.shards();
  row.shard_degree = all / 2;
  CHECK(made(row).scenario->plan.shards() == all / 2);
  row.shard_degree = all + 1;
  CHECK(made(row).refused != "");
}

TEST_CASE("offload in any wording is refused, its absence is not") {
  PublishedRow row = llama_row();
  for (const char* words : {"CPU-OFFLOADED AdamW", "activation offload required", "Offloading",
                            "parameters are off-loaded"}) {
    row.notes = words;
    CHECK(made(row).refused == "offloads to host memory");
  }
  for (const char* words : {"no AC, no offload", "without CPU offloading", "offload: off"}) {
    row.notes = words;
    CHECK(made(row).refused == "");
  }
}

TEST_CASE("Megatron counts embedding and head where its layers alone make no equal parts") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-Bridge/Megatron-Core";
  row.gpu = "H100-SXM5-80GB";
  row.dp_mode = "zero1";
  row.layers = 126;
  row.params_b.reset();
  row.pp = 8;
  row.virtual_pp = 4;
  const RowScenario halves = made(row);
  REQUIRE(halves.refused == "");
  const auto& parts = halves.scenario->plan.stage_layers;
  REQUIRE(parts.size() == 32);
  CHECK(parts.front() == 3);
  CHECK(parts.back() == 3);
  CHECK(std::count(parts.begin(), parts.end(), 4) == 30);
  row.virtual_pp = 16;  // a part is a layer, and the first has the embedding alone
  const RowScenario ones = made(row);
  REQUIRE(ones.refused == "");
  CHECK(ones.scenario->plan.stage_layers.front() == 0);
  row.virtual_pp = 2;  // nor do they with two more: the last part has the rest
  row.layers = 61;
  const RowScenario rest = made(row);
  CHECK(rest.scenario->plan.stage_layers[14] == 4);
  CHECK(rest.scenario->plan.stage_layers.back() == 1);
  row.virtual_pp = 4;  // or the first
  const RowScenario first = made(row);
  CHECK(first.scenario->plan.stage_layers.front() == 1);
  CHECK(first.scenario->plan.stage_layers.back() == 0);
  row.virtual_pp = 5;  // 40 parts of two layers are too many
  CHECK(made(row).scenario->plan.stage_layers.empty());
}

TEST_CASE("Megatron's offload of the optimizer is what a row says of itself") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-Core";
  row.dp_mode = "zero1";
  const auto offloaded = [&](const char* words) {
    row.notes = words;
    const RowScenario out = made(row);
    INFO(out.refused);
    REQUIRE(out.scenario.has_value());
    return out.scenario->plan.offload.optimizer;
  };
  CHECK(offloaded("the report lists optimizer-state offloading for this run") == 1.0);
  CHECK(offloaded("optimizer CPU offload") == 1.0);
  CHECK(offloaded("without optimizer offload") == 0.0);
  CHECK(offloaded("optimizer-state offloading is listed for the twin, not stated for this one") ==
        0.0);
  for (const char* words : {"activation offload required", "activation/optimizer offload"}) {
    row.notes = words;
    CHECK(made(row).refused == "offloads to host memory");
  }
}

TEST_CASE("stages that may be interleaved without a word of it are told apart") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-LM";
  row.dp_mode = "zero1";
  row.gpus = 64;
  row.pp = 4;
  CHECK(made(row).virtual_open);
  row.virtual_pp = 1;
  CHECK_FALSE(made(row).virtual_open);
  row.virtual_pp.reset();
  row.pp = 2;
  CHECK_FALSE(made(row).virtual_open);
  row.pp = 4;
  row.framework = "nanotron 2024-12";
  CHECK_FALSE(made(row).virtual_open);
}

TEST_CASE("unfused in Megatron's code is its softmax kernel, elsewhere plain operators") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-LM";
  row.dp_mode = "ddp";
  row.tp = 8;
  row.attention_kernel = "unfused";
  const auto attention = [&] {
    const RowScenario one = made(row);
    REQUIRE(one.refused == "");
    return one.scenario->software.attention.kernel;
  };
  CHECK(attention() == workloads::AttentionKernel::fused_softmax);
  row.seq_len = 8192;  // beyond what that kernel takes
  CHECK(attention() == workloads::AttentionKernel::unfused);
  row.seq_len = 2048;
  row.source = "a report of 2021-06";
  CHECK(attention() == workloads::AttentionKernel::fused_softmax);
  row.seq_len = 4096;
  CHECK(attention() == workloads::AttentionKernel::unfused);
  row.seq_len = 2048;
  row.attention_kernel = "torch";
  CHECK(attention() == workloads::AttentionKernel::unfused);
  row.attention_kernel = "unfused";
  row.framework = "PyTorch DDP";
  row.tp = 1;
  CHECK(attention() == workloads::AttentionKernel::unfused);
}

TEST_CASE("nanotron's rows share their stages by products, tied where their count says so") {
  PublishedRow row = llama_row();
  row.framework = "nanotron 2024-12";
  row.dp_mode = "zero1";
  row.gpus = 8;
  row.pp = 8;
  row.layers = 28;
  row.hidden = 3072;
  row.ffn_hidden = 8192;
  row.vocab = 131'072;
  row.params_b = 3.57;
  const RowScenario tied = made(row);
  REQUIRE(tied.refused == "");
  CHECK(tied.scenario->plan.stage_layers == std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 0});
  CHECK(tied.scenario->model.tied_embeddings);
  row.params_b = 3.98;
  CHECK_FALSE(made(row).scenario->model.tied_embeddings);
}

TEST_CASE("a framework that recomputes nothing does so where it fits") {
  PublishedRow row = llama_row();
  row.framework = "NeMo AutoModel";
  row.source = "a report of 2025-12";
  row.activation_checkpointing.clear();
  CHECK(made(row).scenario->plan.recompute == workloads::Recompute::none);
  row.micro_batch_seqs = 16;
  row.global_batch_seqs = 256;
  const RowScenario large = made(row);
  CAPTURE(large.assumed, large.document.find("batch") != nullptr);
  CHECK(large.scenario->plan.recompute == workloads::Recompute::full);
  row.activation_checkpointing = "none";  // the row knows better
  CHECK(made(row).scenario->plan.recompute == workloads::Recompute::none);
}

TEST_CASE("a row that states Megatron with FSDP is predicted with Megatron-FSDP") {
  PublishedRow row = llama_row();
  row.framework = "Megatron-LM core 0.12";
  row.source = "a report of 2025-06";
  for (const char* mode : {"fsdp", "zero3", "hsdp"}) {
    row.dp_mode = mode;
    const RowScenario out = made(row);
    INFO(mode);
    REQUIRE(out.refused == "");
    CHECK(out.scenario->software.framework == "megatron-core");
    CHECK(out.scenario->software.data.use_megatron_fsdp);
    CHECK(out.scenario->plan.reduce == workloads::ReduceWhen::each);
  }
  row.framework = "llm.c";
  row.dp_mode = "zero3";
  CHECK(made(row).refused == "llm-c 2024 cannot run data = \"zero3\"");
}

TEST_CASE("a published run goes at the pace of its slowest GPU") {
  const sim::Scenario s = *made(llama_row()).scenario;
  CHECK(s.noise.pace_sigma == 0.015);
  sim::Scenario alike = s;
  alike.noise = {};
  CHECK(session().step(s).step_time > session().step(alike).step_time);
}

TEST_CASE("a row that cannot be simulated says why") {
  const auto refusal = [](auto change) {
    PublishedRow row = llama_row();
    change(row);
    const RowScenario out = made(row);
    CHECK_FALSE(out.scenario);
    return out.refused;
  };
  CHECK(refusal([](auto& row) { row.precision = "fp8"; }) ==
        "precision fp8 whose scaling is not stated");
  CHECK(refusal([](auto& row) { row.model = "Mixtral 8x7B"; }) ==
        "mixture of experts, of which the row says no more");
  CHECK(refusal([](auto& row) { row.ep = 8; }) ==
        "mixture of experts, of which the row says no more");
  CHECK(refusal([](auto& row) { row.params_b = 47; }) ==
        "the shape does not give the parameters that the row states");
  CHECK(refusal([](auto& row) { row.layers.reset(); }) ==
        "the row does not state the model's shape");
  CHECK(refusal([](auto& row) { row.global_batch_seqs = 24; }) ==
        "the global batch does not divide over the replicas");
  CHECK(refusal([](auto& row) { row.gpus = 12; }) != "");
  CHECK(refusal([](auto& row) { row.gpu = "an abacus"; }) != "");
}

TEST_CASE("a batch that nearly divides is the nearest that does") {
  PublishedRow row = llama_row();
  row.global_batch_seqs = 1000;  // 62.5 on each of 16
  row.micro_batch_seqs = 11;
  const RowScenario out = made(row);
  REQUIRE(out.refused == "");
  CHECK(out.scenario->global_batch == 1008);
  CHECK(out.scenario->batch.micro_batch == 9);
  CHECK(out.scenario->batch.micro_batches == 7);
}

TEST_CASE("an unknown model is gated where its parameters say so") {
  PublishedRow row = llama_row();
  row.model = "Somebody-7B";
  CHECK(made(row).scenario->model.activation == workloads::Activation::swiglu);
  row.ffn_hidden = 16384;
  row.params_b = 6.6;
  CHECK(made(row).scenario->model.activation == workloads::Activation::gelu);
}

TEST_CASE("the scope of the score is dense 16-bit training on four kinds of GPU") {
  PublishedRow row = llama_row();
  CHECK(scope_of(row).bucket == Bucket::dense);
  CHECK(scope_of(row).gpu_kind == "A100");
  row.gpu = "GH200";
  CHECK(scope_of(row).bucket == Bucket::none);
  row.gpu = "H200-SXM";
  CHECK(scope_of(row).gpu_kind == "H200");
  row.precision = "mxfp8";
  CHECK(scope_of(row).bucket == Bucket::modern);
  CHECK(scope_of(row).kind == "dense mxfp8");
  row.experts = 8;
  CHECK(scope_of(row).kind == "MoE mxfp8");
  row.precision = "bf16";
  CHECK(scope_of(row).kind == "MoE 16 bit");
}
