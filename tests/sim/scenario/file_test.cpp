#include "sim/scenario/file.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "engine/check.hpp"
#include "sim/study/sweep.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

Scenario read(const std::string& text) {
  return read_scenario(read_toml(text, "a.toml"), catalogue());
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string good = R"([model]
name = "llama2-7b"
sequence = 4096
[cluster]
node = "dgx-h100"
nodes = 16
[plan]
data = "zero2"
tensor = 1
pipeline = 1
[batch]
local = 2
)";

std::string exchanged(std::string text, const std::string& lines, const std::string& others) {
  const std::size_t at = text.find(lines + "\n");
  REQUIRE(at != std::string::npos);
  return text.replace(at, lines.size(), others);
}

/// `good` with some lines exchanged.
std::string with(const std::string& lines, const std::string& others) {
  return exchanged(good, lines, others);
}

}  // namespace

TEST_CASE("a sequence counts its k and M as makers of models do, other counts want a number") {
  const auto sequence = [](const std::string& text) {
    return read(with("sequence = 4096", "sequence = " + text)).batch.sequence;
  };
  CHECK(sequence("\"4k\"") == 4096);
  CHECK(sequence("\"128K\"") == 131'072);
  CHECK(sequence("\"1M\"") == 1'048'576);
  CHECK_THAT(refusal(with("sequence = 4096", "sequence = \"4.5k\"")),
             Contains("a.toml:3: 'sequence' in [model] is \"4.5k\", write the number out"));
  CHECK_THAT(refusal(with("sequence = 4096", "sequence = \"long\"")),
             Contains("must be an integer, not a string"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = \"1k\"")),
             Contains("a.toml:6: 'nodes' in [cluster] is \"1k\", write the number out"));
}

TEST_CASE("GPUs stand for their nodes, and a part of one node for itself") {
  const auto size = [](const std::string& lines) {
    const Scenario s = read(with("nodes = 16", lines));
    return std::pair(s.nodes, s.gpus);
  };
  CHECK(size("gpus = 128") == size("nodes = 16"));
  CHECK(size("gpus = 128\nnodes = 16") == size("nodes = 16"));
  CHECK(size("gpus = 8") == std::pair<std::int64_t, std::int64_t>(1, 8));
  CHECK(size("gpus = 4") == std::pair<std::int64_t, std::int64_t>(1, 4));
}

TEST_CASE("the example of the grammar is read as it says") {
  const Scenario s = read(R"(title = "Llama-2 7B, FSDP, local batch 2: 8 to 2,048 H100"
[model]
name = "llama2-7b"
sequence = 4096
[cluster]
node   = "dgx-h100"
nodes  = 16
fabric = "rail-optimized"
nccl   = "2.20"
[plan]
data = "zero2"
tensor = 1
sequence_parallel = false
pipeline = 1
schedule = "1f1b"
recompute = "none"
reduce = "last"
[batch]
local = 2
micro_batch = 2
[precision]
compute = "bf16"
gradient_reduce = "fp32"
[calibration]
tables = ["published"]
[software]
framework = "pytorch-fsdp2"
version = "2.3"
[run]
steps = "steady"
seed = 1
jitter = "none"
)");
  CHECK(s.model.layers == 32);
  CHECK(s.gpus == 128);
  CHECK(s.plan.data_degree == 128);
  CHECK(s.global_batch == 256);
  CHECK(s.batch == workloads::Batch{2, 1, 4096});
  CHECK(s.tables == std::vector<std::string>{"published"});
  CHECK(s.software.framework == "pytorch-fsdp2");
}

TEST_CASE("the batch follows from what is given: global = micro_batch x micro_batches x replicas") {
  const auto batch = [](const std::string& plan, const std::string& lines) {
    const Scenario s = read(exchanged(with("tensor = 1\npipeline = 1", plan), "local = 2", lines));
    return std::tuple(s.plan.data_degree, s.batch.micro_batch, s.batch.micro_batches);
  };
  using T = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  const std::string flat = "tensor = 1\npipeline = 1", cut = "tensor = 2\npipeline = 4";
  CHECK(batch(flat, "local = 2") == T{128, 2, 1});
  CHECK(batch(flat, "global = 512") == T{128, 4, 1});
  CHECK(batch(flat, "local = 4\nmicro_batch = 1") == T{128, 1, 4});
  CHECK(batch(flat, "local = 4\nmicro_batches = 2") == T{128, 2, 2});
  CHECK(batch(cut, "local = 2") == T{16, 1, 16});
  CHECK(batch(cut, "local = 0.5") == T{16, 1, 4});
  CHECK(batch(cut, "local = 2\nmicro_batches = 8") == T{16, 2, 8});
}

TEST_CASE("every bad input has one message with its place") {
  CHECK(refusal(good) == "no error");
  CHECK(refusal(with("sequence = 4096", "sequense = 4096")) ==
        "a.toml:3: unknown key 'sequense' in [model], did you mean 'sequence'?");
  CHECK_THAT(refusal("[modle]\nname = \"llama2-7b\"\n" + good),
             Contains("a.toml:1: unknown key 'modle', did you mean 'model'?"));
  CHECK_THAT(refusal(with("name = \"llama2-7b\"", "")), Contains("missing key 'name' in [model]"));
  CHECK_THAT(refusal(with("node = \"dgx-h100\"", "")), Contains("missing key 'node' in [cluster]"));
  CHECK_THAT(refusal(with("local = 2", "")), Contains("missing key 'local' in [batch]"));
  CHECK_THAT(refusal(with("name = \"llama2-7b\"", "name = \"llama2-7c\"")),
             Contains("a.toml:2: unknown model 'llama2-7c', did you mean 'llama2-7b'?"));
  CHECK_THAT(refusal(with("node = \"dgx-h100\"", "node = \"dgx-h10\"")),
             Contains("a.toml:5: unknown node 'dgx-h10', did you mean 'dgx-h100'?"));
  CHECK_THAT(refusal(with("node = \"dgx-h100\"", "node = {name = \"dgx-h100\", gpu = \"h10\"}")),
             Contains("unknown gpu 'h10'"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 0")), Contains("a.toml:6: 'nodes' in [cluster]"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = -4")), Contains("a.toml:6"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 100000000000")), Contains("a.toml:6: more than"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 999999999999999999999")), Contains("a.toml:6"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 16\nnodes = 8")),
             Contains("a.toml:7: duplicate key 'nodes'"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 16\ngpus = 100")),
             Contains("a.toml:7: 100 GPUs are not 16 nodes of 8"));
  CHECK_THAT(refusal(with("nodes = 16", "gpus = 100")),
             Contains("a.toml:6: 100 GPUs are no whole nodes of 8 (dgx-h100), 96 or 104 are"));
  CHECK_THAT(refusal(with("nodes = 16", "gpus = 8000000000")), Contains("a.toml:6: more than"));
  CHECK_THAT(refusal(with("tensor = 1", "tensor = 3")),
             Contains("tensor 3 x pipeline 1 does not divide the 128 GPUs"));
  CHECK_THAT(refusal(with("tensor = 1", "tensor = 64")), Contains("a.toml:9"));    // 32 heads
  CHECK_THAT(refusal(with("pipeline = 1", "pipeline = 64")), Contains("a.toml"));  // 32 layers
  CHECK_THAT(refusal(with("tensor = 1", "tensor = \"most\"")), Contains("or \"best\""));
  CHECK_THAT(refusal(with("data = \"zero2\"", "data = \"zero4\"")), Contains("a.toml:8"));
  CHECK_THAT(refusal(with("local = 2", "local = 2\nglobal = 256")),
             Contains("both 'local' and 'global'"));
  CHECK_THAT(refusal(with("local = 2", "local = 2\nmicro_batch = 1\nmicro_batches = 2")),
             Contains("both 'micro_batch' and 'micro_batches'"));
  CHECK_THAT(refusal(with("local = 2", "local = 2\nmicro_batch = 3")),
             Contains("micro_batch = 3 does not divide the 2 sequences of a replica"));
  CHECK_THAT(refusal(with("local = 2", "local = 0.3")), Contains("no whole number of sequences"));
  CHECK_THAT(refusal(with("local = 2", "local = 0.5")),
             Contains("does not divide over 128 replicas"));
  CHECK_THAT(refusal(with("local = 2", "local = 1e17")), Contains("too large"));
  CHECK_THAT(refusal(with("local = 2", "local = -1")), Contains("negative"));
  CHECK_THAT(refusal(with("local = 2", "global = 100")), Contains("does not divide over"));
  CHECK_THAT(refusal(good + "[run]\njitter = \"lognormal\"\n"), Contains("[noise] says how"));
  CHECK_THAT(refusal(good + "[software]\nframework = \"pytorch-fsdp\"\n"),
             Contains("unknown framework 'pytorch-fsdp', did you mean 'pytorch-fsdp"));
  CHECK_THAT(refusal(good + "[software]\nversion = \"9.9\"\n"),
             Contains("no data for pytorch-fsdp2 9.9"));
  CHECK_THAT(refusal(good + "[collective]\nkind = \"all_reduce\"\nbytes = \"1 MiB\"\n"),
             Contains("beside [collective]"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 16\nfabric = {name = \"fat-tree\", link = 400}")),
             Contains("'link' in [cluster.fabric] needs a unit"));
  CHECK_THAT(refusal(with("nodes = 16",
                          "nodes = 16\nfabric = {name = \"fat-tree\", oversubscription = 0.5}")),
             Contains("less than 1"));
  CHECK_THAT(refusal(with("nodes = 16", "nodes = 16\nnccl = \"new\"")),
             Contains("is no NCCL version"));
  CHECK_THAT(refusal("model = 3\n"), Contains("'model' must be a table"));
  CHECK_THAT(refusal(with("name = \"llama2-7b\"",
                          "name = \"x\"\nlayers = 2\nhidden = 100\nheads = 3\nffn_hidden = 10\n"
                          "vocab = 10")),
             Contains("3 heads do not divide hidden 100"));
}

TEST_CASE("a member of a catalogue entry can be changed alone") {
  Scenario s =
      read(with("node = \"dgx-h100\"", "node = {name = \"dgx-h100\", nic = \"100 GB/s\"}"));
  CHECK(s.node.nic == 100_GBps);
  CHECK(s.node.gpus == 8);
  s = read(with("node = \"dgx-h100\"", "node = {name = \"dgx-h100\", gpu = {tdp = \"500 W\"}}"));
  CHECK(s.node.gpu.tdp == Watts(500));
  CHECK(s.node.gpu.sms == 132);
  CHECK(s.node.gpu.name == "h100-sxm5-80gb");
  s = read(with("sequence = 4096", "layers = 4"));
  CHECK(s.model.layers == 4);
  CHECK(s.model.hidden == 4096);
}

TEST_CASE("a resolved scenario reads back to the same scenario") {
  for (const std::string extra :
       {"", "[precision]\ncompute = \"fp16\"\n[software]\nattention = \"memory_efficient\"\n",
        "[run]\nseed = 7\nsteps = \"cold\"\n"}) {
    for (const char* node : {"dgx-h100", "dgx-a100", "dgx-1v"}) {
      const Scenario first =
          read(with("node = \"dgx-h100\"", "node = \"" + std::string(node) + "\"") + extra);
      const std::string text = write_toml(resolved_document(first));
      const Scenario second = read(text);
      CHECK(write_toml(resolved_document(second)) == text);
      CHECK(first.model == second.model);
      CHECK(first.node == second.node);
      CHECK(first.fabric == second.fabric);
      CHECK(first.plan == second.plan);
      CHECK(first.batch == second.batch);
      CHECK(first.precision == second.precision);
      CHECK(first.software == second.software);
    }
  }
}

TEST_CASE("a resolved scenario needs no catalogue entry") {
  // Under names that the catalogue does not have, everything must stand in the file.
  std::string text = write_toml(resolved_document(read(good)));
  for (const char* name :
       {"\"llama2-7b\"", "\"dgx-h100\"", "\"h100-sxm5-80gb\"", "\"rail-optimized\"", "\"2.3\""}) {
    const std::size_t at = text.find(name);
    REQUIRE(at != std::string::npos);
    text.replace(at + 1, 1, "Z");
  }
  const Scenario s = read(text);
  CHECK(s.model.layers == 32);
  CHECK(s.node.name == "Zgx-h100");
  CHECK(s.node.gpu.sms == 132);
}

TEST_CASE("every scenario of the study reads, point by point") {
  for (const char* name : {"weak_scaling", "weak_scaling_shares", "strong_scaling",
                           "model_parallel_256", "model_parallel_2048", "hardware_generations",
                           "model_sizes", "context_lengths", "collectives"}) {
    INFO(name);
    const Study study =
        read_study(read_toml_file(std::string(STEPCAST_SOURCE_DIR "/scenarios/") + name + ".toml"));
    CHECK(study.is_sweep);
    for (std::size_t i = 0; i < study.num_points(); ++i)
      CHECK_NOTHROW(read_scenario(study.document_of(study.point(i)), catalogue()));
  }
}

TEST_CASE("random scenarios end as a Scenario or an InputError, nothing else") {
  // Valid texts are mutated: lines dropped, doubled or swapped, values exchanged for awkward ones,
  // bytes overwritten. Whatever comes out must be one of the two.
  const std::vector<std::string> awkward{"0",
                                         "-1",
                                         "1",
                                         "3",
                                         "7",
                                         "1e999",
                                         "nan",
                                         "-inf",
                                         "9223372036854775807",
                                         "\"\"",
                                         "\"best\"",
                                         "\"zero3\"",
                                         "true",
                                         "[]",
                                         "[1]",
                                         "{}",
                                         "{name = \"dgx-a100\"}",
                                         "\"400 Gbit/s\"",
                                         "\"1 ms\"",
                                         "\"llama2-70b\"",
                                         "\"fp8\"",
                                         "\"dgx-1v\"",
                                         "2.5",
                                         "1000000",
                                         "0x10",
                                         "1979-05-27",
                                         "'''x'''"};
  const std::string base = good +
                           "micro_batch = 1\n[precision]\ncompute = \"bf16\"\n[software]\n"
                           "framework = \"torchtitan\"\n[run]\nseed = 3\n";
  std::mt19937 random(20261121);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  int read_well = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < base.size();) {
      const std::size_t end = base.find('\n', at);
      lines.push_back(base.substr(at, end - at));
      at = end + 1;
    }
    for (std::size_t edits = below(4); edits > 0; --edits) {
      const std::size_t i = below(lines.size());
      const std::size_t equals = lines[i].find(" = ");
      switch (below(5)) {
        case 0:
          lines[i].clear();
          break;
        case 1:
          lines.push_back(lines[i]);
          break;
        case 2:
          std::swap(lines[i], lines[below(lines.size())]);
          break;
        case 3:
          if (equals != std::string::npos)
            lines[i] = lines[i].substr(0, equals + 3) + awkward[below(awkward.size())];
          break;
        default:
          if (!lines[i].empty()) lines[i][below(lines[i].size())] = static_cast<char>(below(256));
      }
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    INFO(text);
    try {
      const Scenario s = read(text);
      ++read_well;
      if (s.open.empty()) {
        REQUIRE(s.plan.ranks() == s.gpus);
        REQUIRE(s.batch.micro_batch * s.batch.micro_batches * s.plan.data_degree == s.global_batch);
        const std::string resolved = write_toml(resolved_document(s));
        REQUIRE(write_toml(resolved_document(read(resolved))) == resolved);
      }
    } catch (const InputError& error) {
      REQUIRE(!error.where().empty());
      REQUIRE(!error.problem().empty());
    }
  }
  CHECK(read_well > 300);  // the generator does reach the far side
}

TEST_CASE("[nccl] holds NCCL's variables, read back from a resolved scenario as they were") {
  const Scenario s = read(good + "[nccl]\nNCCL_ALGO = \"Ring,Tree\"\nNCCL_NVLS_ENABLE = 0\n");
  CHECK(s.nccl_overrides.nvls == false);
  CHECK_FALSE(s.nccl_overrides.allows(workloads::CollectiveKind::all_reduce, Algorithm::nvls));
  const Scenario again = read_scenario(resolved_document(s), catalogue());
  REQUIRE(again.nccl_variables.size() == 2);
  CHECK(again.nccl_variables[0].value == "Ring,Tree");
  CHECK(again.nccl_overrides.algorithms == s.nccl_overrides.algorithms);
}

TEST_CASE("a bad variable in [nccl] is named with its line") {
  CHECK_THAT(refusal(good + "[nccl]\nNCCL_ALGO = \"Rign\"\n"),
             Contains("a.toml:") && Contains("did you mean 'Ring'"));
  CHECK_THAT(refusal(good + "[nccl]\nNCCL_ALGO = [\"Ring\"]\n"), Contains("must be a string"));
}
