#include "tests/laws/random_scenario.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace stepcast::sim::laws {
namespace {

using Counts = std::vector<std::int64_t>;
using Words = std::vector<const char*>;

/// Below n, of the size that a long run has: RapidCheck starts with small numbers.
std::size_t index(const char* what, std::size_t n) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, n)).as(what);
}

template <class T>
T one_of(const char* what, const std::vector<T>& all) {
  return all[index(what, all.size())];
}

/// The first of them in two cases of three.
template <class T>
T mostly_first(const char* what, const std::vector<T>& all) {
  const std::size_t others = all.size() - 1, drawn = index(what, 3 * others);
  return all[drawn < 2 * others ? 0 : drawn - 2 * others + 1];
}

struct NodeKind {
  const char* name;
  std::int64_t gpus;
  Words recipes{""};  // of low precision that the GPUs have
};
const Words of_hopper{"", "fp8_delayed", "fp8_current", "fp8_block"};
const std::vector<NodeKind> node_kinds{
    {"dgx-h100", 8, of_hopper},
    {"dgx-a100", 8},
    {"dgx-b200", 8, {"", "fp8_delayed", "fp8_current", "mxfp8", "nvfp4"}},
    {"dgx-1v", 8},
    {"pcie4-8", 8},
    {"l40s-8", 8},
    {"aws-p4d", 8},
    {"dgx-h200", 8, of_hopper},
    {"gh200-quad", 4, of_hopper},
    {"dgx-2", 16}};

/// Writes what is drawn where it is not what holds without it, so that a shrunk scenario is short.
class Writer {
 public:
  void set(const char* path, const char* word) { set_path(out, path, toml_text(word, "drawn")); }
  void set(const char* path, std::int64_t n) { set_path(out, path, {n, "drawn"}); }
  void set(const char* path, double x) { set_path(out, path, {x, "drawn"}); }
  void set(const char* path, bool flag) { set_path(out, path, {flag, "drawn"}); }

  std::int64_t count(const char* path, const Counts& all, std::int64_t usual) {
    const std::int64_t n = mostly_first(path, all);
    if (n != usual) set(path, n);
    return n;
  }
  /// The first word stands for nothing written.
  void word(const char* path, const Words& all) {
    const std::string drawn = mostly_first(path, all);
    if (!drawn.empty()) set(path, drawn.c_str());
  }
  void flag(const char* path, bool value) {
    if (mostly_first(path, Counts{0, 1}) == 1) set(path, value);
  }
  void share(const char* path) {
    const std::int64_t percent = mostly_first(path, Counts{0, 50, 100});
    if (percent != 0) set(path, static_cast<double>(percent) / 100);
  }

  TomlValue out = toml_table("drawn");
};

void draw_own_model(Writer& w, bool with_experts) {
  const std::int64_t heads = one_of("model.heads", Counts{8, 16}),
                     head = one_of("model.head_dim", Counts{64, 128});
  w.set("model.name", "own");
  w.set("model.hidden", heads * head);
  w.set("model.heads", heads);
  w.set("model.kv_heads", heads / one_of("heads of a group", Counts{1, 4}));
  w.set("model.ffn_hidden", 4 * heads * head);
  w.set("model.vocab", std::int64_t{32000});
  w.flag("model.tied_embeddings", true);
  if (!with_experts) return;
  w.set("model.experts", one_of("model.experts", Counts{4, 8, 16}));
  w.set("model.experts_per_token", one_of("model.experts_per_token", Counts{1, 2}));
  w.set("model.expert_ffn", 2 * heads * head);
}

const Words dense_models{"llama2-1b", "llama2-7b", "gpt2-xl",    "bert-large",  "llama3-8b",
                         "qwen3-8b",  "gpt-22b",   "llama2-70b", "llama3-405b", "gpt3-175b"};
const Words expert_models{"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b",
                          "moonlight-16b-a3b"};

/// Whether its layers have experts. Some layers for each of `parts`.
bool draw_model(Writer& w, Depth depth, std::int64_t parts, bool modern) {
  const bool experts = modern && index("experts", 3) == 2;
  if (depth == Depth::whole || index("model of the catalogue", 2) == 1)
    w.set("model.name", one_of("model.name", experts ? expert_models : dense_models));
  else
    draw_own_model(w, experts);
  if (depth == Depth::few_layers)
    w.set("model.layers",
          std::max<std::int64_t>(2, parts * one_of("layers of a part", Counts{1, 2, 3}) +
                                        mostly_first("uneven layers", Counts{0, 0, 0, -1, 1})));
  w.set("model.sequence", one_of("model.sequence", Counts{1024, 512, 2048, 4096}));
  return experts;
}

std::int64_t draw_cluster(Writer& w, const NodeKind& node) {
  w.set("cluster.node", node.name);
  const std::int64_t nodes = one_of("cluster.nodes", Counts{1, 2, 4, 3, 8});
  const std::int64_t left_idle = nodes == 1 ? mostly_first("left idle", Counts{0, 1, 2}) : 0;
  const std::int64_t gpus = (nodes * node.gpus) >> left_idle;
  if (left_idle == 0)
    w.set("cluster.nodes", nodes);
  else
    w.set("cluster.gpus", gpus);
  w.word("cluster.fabric", {"", "fat-tree", "rail-only", "quantum-2"});
  w.word("cluster.nccl", {"", "2.18.6", "2.27", "2.30", "2.12"});
  return gpus;
}

/// Whether it is one of those that run experts, low precision and other orders of stages.
bool draw_software(Writer& w) {
  const Words modern{"megatron-core", "nemo", "torchtitan", "deepspeed"};
  const Words others{"pytorch-fsdp2", "pytorch-ddp", "pytorch-fsdp1",     "megatron-lm",
                     "nanotron",      "jax-xla",     "hf-trainer",        "gpt-neox",
                     "lightning",     "llm-c",       "megatron-deepspeed"};
  const bool is_modern = index("modern software", 2) == 0;
  w.set("software.framework", one_of("software.framework", is_modern ? modern : others));
  w.flag("software.gradient_overlap", true);
  w.flag("software.clip_gradients", false);
  w.word("software.cuda_graphs", {"", "layers", "iteration"});
  w.word("software.context_exchange", {"", "ring", "all_gather", "all_to_all"});
  return is_modern;
}

struct Degrees {
  std::int64_t tensor = 1, context = 1, pipeline = 1, chunks = 1;
  std::int64_t ranks() const { return tensor * context * pipeline; }
};

Degrees draw_degrees(Writer& w, std::int64_t gpus, bool modern) {
  const auto most = [](Counts degrees, std::int64_t ranks) {
    std::erase_if(degrees, [&](std::int64_t degree) { return degree > ranks; });
    return degrees.size() > 1 ? degrees : Counts{1, 1};
  };
  Degrees out;
  out.tensor = w.count("plan.tensor", most({1, 2, 4, 8}, gpus), 1);
  out.pipeline = w.count("plan.pipeline", most({1, 2, 4}, gpus / out.tensor), 1);
  out.context = w.count("plan.context", most({1, 2, 4}, gpus / out.tensor / out.pipeline), 1);
  if (out.pipeline == 1) return out;
  out.chunks = w.count("plan.virtual_stages", {1, 2}, 1);
  if (!modern) return out;
  const char* schedules[] = {"1f1b", "gpipe", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"};
  const std::string schedule = one_of("plan.schedule", Words(schedules, std::end(schedules)));
  TomlValue::Array runs;  // whatever its version
  for (const char* each : schedules) runs.push_back(toml_text(each, "drawn"));
  if (schedule != "1f1b") set_path(w.out, "software.schedules", {runs, "drawn"});
  if (schedule != "1f1b") w.set("plan.schedule", schedule.c_str());
  return out;
}

void draw_plan_of_experts(Writer& w, const Degrees& degrees) {
  if (degrees.tensor > 1) w.set("plan.sequence_parallel", true);  // else refused
  const std::int64_t ranks = one_of("plan.expert", Counts{1, 2, 4});
  w.set("plan.expert", ranks);
  w.word("plan.dispatcher", {"", "all_gather", "all_to_all"});
  if (ranks > 1) w.flag("plan.expert_overlap", true);
}

void draw_rest_of_plan(Writer& w, bool experts) {
  const std::string data = one_of("plan.data", Words{"zero1", "ddp", "zero2", "zero3"});
  w.set("plan.data", data.c_str());
  if (data != "ddp" && !experts) w.count("plan.shard_degree", {0, 2, 4}, 0);
  w.flag("plan.sequence_parallel", true);
  w.word("plan.recompute", {"", "full", "selective"});
  w.word("plan.reduce", {"", "last", "each"});
  w.count("plan.prefetch", {1, 0, 2}, 1);
  if (mostly_first("offload and overlap", Counts{0, 1}) == 0) return;
  w.word("plan.tensor_overlap", {"", "userbuffers", "async_tp"});
  w.share("plan.activation_offload");
  w.share("plan.optimizer_offload");
}

void draw_batch(Writer& w, std::int64_t copies) {
  const std::int64_t one = one_of("batch.micro_batch", Counts{1, 2, 4});
  const std::int64_t all = one_of("batch.micro_batches", Counts{1, 2, 4, 8, 3, 16});
  w.set("batch.micro_batch", one);
  w.set("batch.global", one * all * copies);
}

void draw_precision(Writer& w, const Words& recipes) {
  w.word("precision.compute", {"", "fp16"});
  w.word("precision.gradient_reduce", {"", "bf16"});
  const std::string recipe = one_of("precision.recipe", recipes);
  if (!recipe.empty()) w.set("precision.recipe", recipe.c_str());
}

void draw_noise(Writer& w) {
  const std::int64_t kind = mostly_first("noise", Counts{0, 1, 2, 3});
  if (kind == 1) w.set("noise.gpu_sigma", 0.02);
  if (kind == 2) w.set("noise.pace_sigma", 0.02);
  if (kind == 3) w.set("noise.kernel_sigma", 0.02), w.set("noise.steps", std::int64_t{2});
  w.word("run.steps", {"", "cold"});
}

void draw_adapters(Writer& w, bool experts) {
  const std::int64_t rank = mostly_first("model.lora_rank", Counts{0, 16, 64});
  if (rank == 0) return;
  w.set("model.lora_rank", rank);
  w.flag("model.lora_dropout", true);
  if (experts) return;  // with adapters of attention alone, beside frozen weights of 16 bits
  w.word("model.lora_base", {"", "int8", "nf4", "nf4_double"});
  if (mostly_first("model.lora_targets", Counts{0, 1}) == 0) return;
  TomlValue::Array targets;
  for (const char* target : {"o", "up", "down"}) targets.push_back(toml_text(target, "drawn"));
  set_path(w.out, "model.lora_targets", {targets, "drawn"});
}

}  // namespace

TomlValue drawn_scenario(Depth depth) {
  Writer w;
  const NodeKind node = one_of("cluster.node", node_kinds);
  const std::int64_t gpus = draw_cluster(w, node);
  const bool modern = draw_software(w);
  const Degrees degrees = draw_degrees(w, gpus, modern);
  const bool experts = draw_model(w, depth, degrees.pipeline * degrees.chunks, modern);
  draw_rest_of_plan(w, experts);
  if (experts) draw_plan_of_experts(w, degrees);
  draw_batch(w, std::max<std::int64_t>(1, gpus / degrees.ranks()));
  draw_precision(w, modern ? node.recipes : Words{""});
  draw_noise(w);
  draw_adapters(w, experts);
  return std::move(w.out);
}

}  // namespace stepcast::sim::laws
