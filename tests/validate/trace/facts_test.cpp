#include "validate/trace/facts.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "tests/validate/trace_writer.hpp"
#include "validate/trace/log.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;

namespace {

using Given = std::vector<std::pair<std::string, sim::TomlValue>>;

/// Of a log beside this file.
Facts facts_of(const std::string& log) {
  const std::string path = STEPCAST_SOURCE_DIR "/tests/validate/trace/" + log;
  TraceFile file(path);
  Facts facts;
  add_facts(facts, read_log(path, file).settings, catalogue(), log);
  return facts;
}

Given given(const std::string& key, const std::string& value) {
  return {{key, sim::read_setting(value, "--set")}};
}

sim::Scenario scenario_of(const Facts& facts, const Given& settings = {}) {
  return sim::read_scenario(document_of(facts, settings, catalogue()), catalogue());
}

Settings settings_of(const std::vector<std::pair<std::string, std::string>>& all) {
  Settings out;
  for (const auto& [name, value] : all) out.set(name, value);
  return out;
}

}  // namespace

TEST_CASE("Megatron-LM's arguments make the scenario, but for the GPU") {
  const Facts facts = facts_of("megatron.log");
  CHECK_THROWS_WITH(scenario_of(facts), Contains("nobody says cluster.node (dgx-h100)") &&
                                            !Contains("cluster.nodes") && Contains("--set"));
  const sim::Scenario s = scenario_of(facts, given("cluster.node", "dgx-h100"));
  CHECK(s.gpus == 32);
  CHECK(s.nodes == 4);
  CHECK(s.model.layers == 32);
  CHECK(s.model.ffn_hidden == 11008);
  CHECK(s.model.vocab == 32000);
  CHECK(s.model.norm == workloads::Norm::rmsnorm);
  CHECK(s.model.activation == workloads::Activation::swiglu);
  CHECK_FALSE(s.model.tied_embeddings);
  CHECK(s.batch.sequence == 4096);
  CHECK(s.global_batch == 64);
  CHECK(s.plan.tensor == 2);
  CHECK(s.plan.pipeline == 2);
  CHECK(s.plan.sequence_parallel);
  CHECK(s.plan.data == workloads::DataParallel::zero1);
  CHECK(s.plan.recompute == workloads::Recompute::selective);
  CHECK(s.precision.gradient_reduce == workloads::Dtype::fp32);
  CHECK(s.software.framework == "megatron-core");
  CHECK(s.software.data.gather_overlap);
  CHECK(contradictions(facts, s, catalogue().gpus()).empty());
}

TEST_CASE("a card is known by what CUDA calls it, a family's word in front or not") {
  struct NamedCard {
    const char *name, *node;
    bool same = true;
  };
  for (const auto& [name, node, same] :
       {NamedCard{"NVIDIA GeForce RTX 4090", "rtx-4090-8"}, NamedCard{"RTX 3090", "rtx-3090-8"},
        NamedCard{"NVIDIA RTX PRO 6000 Blackwell Server", "rtx-pro-6000-8"},
        NamedCard{"NVIDIA L20", "l20-8"}, NamedCard{"NVIDIA H100", "dgx-h100"},
        NamedCard{"NVIDIA RTX 6000 Ada Generation", "l40s-8", false},
        NamedCard{"NVIDIA RTX 6000 Ada Generation", "rtx-pro-6000-8", false},
        NamedCard{"NVIDIA GeForce RTX 3090 Ti", "rtx-3090-8", false},
        NamedCard{"NVIDIA RTX PRO 5000 Blackwell", "rtx-pro-6000-8", false},
        NamedCard{"NVIDIA A100-SXM4-40GB", "dgx-a100", false}}) {
    Facts facts = facts_of("torchtitan.log");
    const sim::Scenario s = scenario_of(facts, given("cluster.node", node));
    facts.gpu = name;
    INFO(name);
    CHECK(contradictions(facts, s, catalogue().gpus()).empty() == same);
  }
}

TEST_CASE("Megatron-LM of 2021 recomputes whole layers by a switch") {
  Facts facts;
  add_facts(facts, settings_of({{"num_layers", "40"}, {"checkpoint_activations", "True"}}),
            catalogue(), "log");
  CHECK(*facts.find("plan.recompute")->text() == "full");
}

TEST_CASE("torchtitan's log says all of it") {
  const Facts facts = facts_of("torchtitan.log");
  const sim::Scenario s = scenario_of(facts);
  CHECK(s.model.name == "llama3-8b");
  CHECK(s.model.ffn_hidden == 14336);
  CHECK(s.gpus == 8);
  CHECK(s.node.gpu.name == "h100-sxm5-80gb");
  CHECK(s.plan.data == workloads::DataParallel::zero3);
  CHECK(s.global_batch == 8);
  CHECK(s.batch.sequence == 8192);
  CHECK(s.software.framework == "torchtitan");
  CHECK(s.software.version == "2026");
  CHECK(contradictions(facts, s, catalogue().gpus()).empty());
}

TEST_CASE("NeMo's YAML: biases, learned positions, dropout, the distributed optimizer") {
  const Facts facts = facts_of("nemo.log");
  const sim::Scenario s = scenario_of(facts, given("cluster.node", "dgx-a100"));
  CHECK(s.gpus == 16);
  CHECK(s.model.biases);
  CHECK_FALSE(s.model.rope);
  CHECK(s.model.max_positions == 2048);
  CHECK(s.model.vocab == 50432);
  CHECK(s.model.dropout);
  CHECK(s.model.tied_embeddings);
  CHECK(s.plan.data == workloads::DataParallel::zero1);
  CHECK(s.plan.recompute == workloads::Recompute::none);
  CHECK(s.software.framework == "nemo");
}

TEST_CASE("a model that the catalogue lacks takes its width from torchtitan's rule") {
  Facts facts;
  // Llama-2 7B: int(8 x 4096 / 3) = 10922, up to a multiple of 256.
  add_facts(facts,
            settings_of({{"model.name", "llama3"},
                         {"model.flavor", "mine"},
                         {"args.dim", "4096"},
                         {"args.n_layers", "2"},
                         {"args.n_heads", "32"},
                         {"args.vocab_size", "2048"},
                         {"args.multiple_of", "256"},
                         {"training.seq_len", "512"},
                         {"training.global_batch_size", "8"},
                         {"mesh.dp_replicate", "2"},
                         {"mesh.dp_shard", "4"},
                         {"gpu", "NVIDIA A100-SXM4-80GB"}}),
            catalogue(), "log");
  const sim::Scenario s = scenario_of(facts);
  CHECK(s.model.ffn_hidden == 11008);
  CHECK(s.gpus == 8);
  CHECK(s.plan.shard_degree == 4);                       // hsdp
  CHECK(s.software.fusion == workloads::Fusion::eager);  // it would have said that it compiles
}

TEST_CASE("a trace knows its ranks, GPU and groups, and names what is missing") {
  TraceWriter writer(0, 16);
  writer.kernel("gemm", 0, 1);
  RankTrace trace = read_text(writer.text());
  trace.groups = {{"default_pg", 16}, {"mesh_tp", 4}, {"PIPELINE_MODEL_PARALLEL_GROUP", 2}};
  Facts facts;
  add_facts(facts, trace, catalogue());
  CHECK(facts.integer("plan.tensor") == 4);
  CHECK(facts.integer("plan.pipeline") == 2);
  CHECK_THROWS_WITH(scenario_of(facts),
                    Contains("nobody says model.name (llama3-8b), model.sequence (8192), "
                             "batch.global (256)"));
}

TEST_CASE("every fact that the scenario says otherwise is named with both values") {
  const Facts facts = facts_of("torchtitan.log");
  Given other = given("batch.global", "64");
  other.push_back({"model.layers", sim::read_setting("16", "--set")});
  other.push_back({"cluster.nodes", sim::read_setting("4", "--set")});
  other.push_back({"cluster.node", sim::read_setting("dgx-a100", "--set")});
  const std::vector<std::string> found =
      contradictions(facts, scenario_of(facts, other), catalogue().gpus());
  CHECK(found == std::vector<std::string>{
                     "Warning: torchtitan.log is of 8 ranks, the scenario of 32 GPUs.",
                     "Warning: torchtitan.log is of NVIDIA H100 80GB HBM3, the scenario of "
                     "a100-sxm4-80gb.",
                     "Warning: torchtitan.log has model.layers = 32, the scenario 16.",
                     "Warning: torchtitan.log has batch.global = 8, the scenario 64."});
}

TEST_CASE("what a run is measured against does not wait as the run does") {
  Facts facts = facts_of("torchtitan.log");
  for (const char* waits : {"software.launch_blocking", "software.collective_checks"})
    facts.set(waits, {true, ""}, "run.sh:2");
  const sim::TomlValue measured_against = document_of(facts, {}, catalogue());
  const sim::TomlValue as_asked =
      document_of(facts, {{"software.collective_checks", {true, "--set"}}}, catalogue());
  CHECK(sim::find_path(measured_against, "software.launch_blocking") == nullptr);
  CHECK(sim::find_path(measured_against, "software.collective_checks") == nullptr);
  CHECK(sim::find_path(as_asked, "software.collective_checks") != nullptr);
}

TEST_CASE("ranks that are no whole nodes are said, and what is left to the defaults") {
  Facts facts = facts_of("megatron.log");
  facts.ranks = 36;
  CHECK_THROWS_WITH(scenario_of(facts, given("cluster.node", "dgx-h100")),
                    Contains("cluster.nodes (36 ranks are no whole nodes of 8 GPUs)"));
  const sim::TomlValue document = document_of(facts_of("torchtitan.log"), {}, catalogue());
  const std::string open = left_open(document, sim::read_scenario(document, catalogue()));
  CHECK(open == "Nobody says, so as usual: precision.compute = \"bf16\".");
}

TEST_CASE("a mixture of experts is read") {
  Facts facts;
  add_facts(facts,
            settings_of({{"num_layers", "2"}, {"num_experts", "8"}, {"ffn_hidden_size", "96"}}),
            catalogue(), "log");
  CHECK(facts.integer("model.experts") == 8);
  CHECK(facts.integer("model.expert_ffn") == 96);
}
