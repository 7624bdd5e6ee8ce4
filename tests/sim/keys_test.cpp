// The seam between a scenario's keys and its results: every key, changed, changes a figure or is
// named as without effect. Walks the one list of members.hpp, so that a new key is tested at once.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/members.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/told/json.hpp"
#include "tests/sanitizer.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

Scenario read(const TomlValue& document) { return read_scenario(document, catalogue()); }

// Small models, so that a run is quick; between them they do what most keys are about.
const std::string small_model = R"([model]
name = "small"
sequence = 512
layers = 4
hidden = 1024
heads = 16
ffn_hidden = 4096
vocab = 32000
)";
// Two tiers of switches.
const std::string cluster = R"([cluster]
nodes = 6
[cluster.node]
name = "dgx-a100"
[cluster.fabric]
name = "rail-optimized"
ports = 8
)";

const std::pair<const char*, std::string> bases[] = {
    {"pipeline and tensor", small_model + cluster + R"([plan]
data = "zero1"
tensor = 2
pipeline = 2
stage_layers = [2, 2]
[batch]
global = 48
micro_batch = 1
[software]
framework = "megatron-core"
version = "0.7"
ddp_bucket_bytes = "2 MB"
ddp_bucket_bytes_per_rank = "200 kB"
[run_goal]
tokens = "1T"
[cost]
price = "2 USD/h"
)"},
    {"FSDP with failures", small_model + cluster + R"([plan]
data = "zero3"
prefetch = 2
recompute = "full"
[batch]
global = 96
micro_batches = 2
[software]
framework = "pytorch-fsdp2"
version = "2.3"
[noise]
kernel_sigma = 0.01
gpu_sigma = 0.01
[run_goal]
tokens = "1T"
[cost]
own = true
capex = "30000 USD"
[failures]
sigma = 0.3
spares = 1
runs = 40
[failures.slow]
per_1000_node_days = 20.0
slowdown = 1.5
noticed_after = "2 h"
[failures.flap]
per_1000_node_days = 50.0
lasts = "1 min"
)"},
    {"interleaved, BERT's parts", small_model + R"(norm = "layernorm"
activation = "gelu"
rope = false
max_positions = 512
)" + cluster + R"([plan]
data = "ddp"
tensor = 2
sequence_parallel = true
context = 2
pipeline = 2
virtual_stages = 2
[batch]
global = 24
[software]
framework = "megatron-core"
version = "0.7"
)"},
    {"experts", small_model + R"(experts = 8
experts_per_token = 2
expert_ffn = 512
shared_expert_ffn = 512
dense_layers = 1
)" + cluster + R"([plan]
data = "zero1"
tensor = 2
sequence_parallel = true
expert = 4
expert_tensor = 1
[routing]
kind = "max_violation"
max_violation = 0.3
[batch]
global = 48
micro_batch = 1
[software]
framework = "megatron-core"
version = "0.7"
)"},
    {"adapters", small_model + R"(lora_rank = 8
lora_targets = ["q", "down"]
lora_base = "nf4"
)" + cluster + R"([plan]
data = "zero3"
[batch]
global = 48
[software]
framework = "pytorch-fsdp2"
version = "2.3"
[noise]
kernel_sigma = 0.01
)"},
    {"all-reduce", cluster + R"([collective]
kind = "all_reduce"
bytes = "64 MiB"
)"},
    {"GPUs without NVLink", R"([cluster]
nodes = 3
[cluster.node]
name = "pcie4-8"
[cluster.fabric]
name = "fat-tree"
[collective]
kind = "all_reduce"
bytes = "64 MiB"
)"},
    {"random places", R"([cluster]
nodes = 6
placement = "random"
fabric_nodes = 16
other_jobs = 0.2
[cluster.node]
name = "dgx-a100"
[cluster.fabric]
name = "rail-optimized"
ports = 8
oversubscription = 4.0
[collective]
kind = "all_reduce"
bytes = "256 MiB"
)"},
    {"all-to-all", R"([cluster]
nodes = 6
node = "dgx-a100"
[cluster.fabric]
name = "fat-tree"
ports = 32
oversubscription = 4.0
[collective]
kind = "all_to_all"
bytes = "1 GiB"
)"},
};

/// Changes one key to another value: the `number`-th key of the walk to its `choice`-th.
class Changer : public MemberVisitor<Changer> {
 public:
  struct State {
    std::size_t number, choice, seen = 0;
    std::string path{};
    bool changed = false;  // there is such a choice
  };
  Changer(std::string table, State& state) : table_(std::move(table)), state_(state) {}

  template <class T, class... Choices>
  void member(const Key& key, Bound bound, T& value, const Choices&... choices) {
    if (state_.seen++ != state_.number) return;
    state_.path = table_ + "." + key.name;
    auto others = others_of(value, choices...);
    if (bound != Bound::not_negative) drop_zeros(others);
    state_.changed = state_.choice < others.size();
    if (state_.changed) value = others[state_.choice];
  }
  void part(const Key&) {}

 private:
  template <class T>
  static void drop_zeros(std::vector<T>& others) {
    if constexpr (std::is_same_v<T, std::int64_t>) std::erase(others, 0);
  }
  template <class E, class Choices>
  static std::vector<E> others_of(const E& value, const Choices& choices) {
    std::vector<E> out;
    for (const auto& [name, meaning] : choices)
      if (meaning != value) out.push_back(meaning);
    return out;
  }
  template <class E, class Choices>
  static std::vector<workloads::SetOf<E>> others_of(const workloads::SetOf<E>& items,
                                                    const Choices& choices) {
    workloads::SetOf<E> without, all;
    for (const auto& [name, item] : choices) {
      all.add(item);
      if (!items.has(item)) without.add(item);
    }
    if (std::is_same_v<E, workloads::LayerModule>) {  // one by one
      std::vector<workloads::SetOf<E>> out;
      for (const auto& [name, item] : choices) out.push_back({item});
      return out;
    }
    return {without, all};
  }
  template <class T, class Choices>
  static std::vector<std::optional<T>> others_of(const std::optional<T>& value,
                                                 const Choices& choices) {
    std::vector<std::optional<T>> out;
    if (value)
      for (const T& other : others_of(*value, choices)) out.push_back(other);
    return out;
  }
  template <class Q>
  static std::vector<Q> others_of(const Q& value) {
    if (value == Q{}) return {Q(1'000'000'000'000), Q(5'000'000)};
    return {value * 2, value / 2, value * 64, value / 64};
  }
  static std::vector<Duration> others_of(const Duration& value) {
    if (value == Duration{}) return {Duration(1'000'000'000'000), Duration(5'000'000)};
    return {value * 2, value / 2, std::min(value, Duration::max() / 64) * 64, value / 64};
  }
  static std::vector<std::int64_t> others_of(const std::int64_t& value) {
    if (value == 0) return {1, 2, 4, 64};
    return {value * 2, value + 1, value / 2, value * 64, 0};
  }
  static std::vector<std::uint64_t> others_of(const std::uint64_t& value) { return {value + 1}; }
  static std::vector<double> others_of(const double& value) {
    return {value * 2 + 0.01, value / 2, value * 64};
  }
  static std::vector<bool> others_of(const bool& value) { return {!value}; }
  static std::vector<std::string> others_of(const std::string& value) {
    if (value == "intel" || value == "amd") return {value == "amd" ? "intel" : "amd"};
    if (value.starts_with("2.2")) return {"2.27", "2.8.3"};  // a version of NCCL
    return {};                                               // names
  }
  static std::vector<Ablation> others_of(const Ablation&) { return {{.latency = true}}; }
  static std::vector<std::vector<std::int64_t>> others_of(std::vector<std::int64_t> layers) {
    if (layers.size() < 2) return {};
    ++layers.front();
    --layers.back();
    return {layers};
  }
  template <class T>
  static std::vector<std::vector<T>> others_of(const std::vector<T>&) {
    return {};  // files, a mesh of NVLinks
  }
  template <class T>
  static std::vector<std::optional<T>> others_of(const std::optional<T>& value) {
    if (!value) return {};
    std::vector<std::optional<T>> out;
    for (const T& other : others_of(*value)) out.push_back(other);
    return out;
  }

  std::string table_;
  State& state_;
};

/// Without what only repeats the scenario, and what the run cost.
json figures_of(json result) {
  for (const char* key : {"plan", "cluster", "changed", "warnings", "events", "simulated_ranks"})
    result.erase(key);
  return result;
}

/// What the JSON says of the scenario alone: a forecast beside it can be read without its file.
json scenario_of(const json& result) {
  json out;
  for (const char* key : {"title", "model", "gpu", "collective", "bytes", "dtype", "plan",
                          "cluster", "changed", "without"})
    if (result.contains(key)) out[key] = result[key];
  return out;
}

/// Whether what is said of the two scenarios differs in the value of this key.
bool names(const json& before, const json& after, const std::string& path) {
  const std::string last =
      path == "collective.kind" ? "collective" : path.substr(path.rfind('.') + 1);
  const json differences = json::diff(scenario_of(before), scenario_of(after));
  return std::ranges::any_of(differences, [&](const json& difference) {
    const auto place = difference["path"].get<std::string>();
    return place.find("/" + last) != std::string::npos || place.ends_with("." + last) ||
           place.find("." + last + "/") != std::string::npos ||  // of a list
           (difference.contains("value") && difference["value"].is_object() &&
            difference["value"].contains(path));  // the first of the changed keys
  });
}

/// The warning that names a key, "plan.schedule has ..." or "schedule has ..."; empty: none.
std::string warning_of(const json& result, const std::string& path) {
  const std::string last = path.substr(path.rfind('.') + 1) + " ";
  for (const json& warning : result.value("warnings", json::array())) {
    const auto text = warning.get<std::string>();
    if (text.starts_with(path + " ") || text.starts_with(last)) return text;
  }
  return {};
}

json result_of(const Scenario& scenario) {
  static const Simulator simulator = simulator_of(session());
  return json::parse(to_json(answer(scenario, simulator)));
}

/// Parts of a machine that bind in some scenarios only (a measured curve holds for every NCCL;
/// uplinks matter where traffic needs them): they change a figure of one of the bases at least.
const std::set<std::string> binding_somewhere{
    "cluster.nccl",
    "cluster.node.cpu",
    "cluster.node.gpu_direct",
    "cluster.node.low_latency_protocols",
    "cluster.node.plugin_latency",
    "cluster.node.nvlink_latency",
    "cluster.fabric.routing",
    "cluster.fabric.kind",
    "cluster.fabric.oversubscription",
    "cluster.placement",
    "cluster.placement_seed",
    "cluster.fabric_nodes",
    "cluster.other_jobs",
};
/// They say which plans are refused, and in which software: a plan that stays allowed is the same.
const std::set<std::string> permissions{"software.data_kinds",  "software.pipeline_data_kinds",
                                        "software.cuts_layers", "software.use_megatron_fsdp",
                                        "software.experts",     "software.schedules",
                                        "run.no_limit"};

enum class Outcome { none, silent, idle, changes };

/// What became of changing one key in `base`; "" when there is no such key.
struct Tried {
  std::string path;
  Outcome outcome = Outcome::none;
};

Tried try_key(const Scenario& base, const json& before, std::size_t number) {
  Tried tried;
  const std::string written = write_toml(resolved_document(base));
  for (std::size_t choice = 0; tried.outcome <= Outcome::silent; ++choice) {
    Scenario changed = base;
    BatchKeys batch{base.global_batch, {}, base.micro};
    CollectiveQuery query = base.collective.value_or(CollectiveQuery{});
    Changer::State state{.number = number, .choice = choice};
    visit_scenario(changed, batch, query, [&](const char* table) { return Changer(table, state); });
    tried.path = state.path;
    if (!state.changed) return tried;
    if (changed.gpus == base.gpus) changed.gpus = changed.nodes * changed.node.gpus;
    changed.global_batch = batch.global.value_or(0);
    changed.micro = batch.micro;
    if (base.collective) changed.collective = query;
    const TomlValue document = resolved_document(changed);
    if (write_toml(document) == written) continue;  // not a key of this scenario
    json after;
    try {
      after = result_of(read(document));
    } catch (const InputError&) {
      continue;  // no legal value
    }
    INFO(state.path << ", its value number " << choice << ": " << after.dump(1));
    CHECK(after.dump() != before.dump());
    const bool figures = figures_of(after) != figures_of(before);
    const std::string warning = warning_of(after, state.path);
    if (figures) CHECK_THAT(warning, !Contains("no effect"));
    if (figures) CHECK(names(before, after, state.path));
    const bool named = !warning.empty();
    tried.outcome = figures ? Outcome::changes : named ? Outcome::idle : Outcome::silent;
  }
  return tried;
}

#ifdef STEPCAST_ASAN
constexpr std::size_t one_of = 5;  // keys are tried, where each takes twenty times as long
#else
constexpr std::size_t one_of = 1;
#endif

}  // namespace

TEST_CASE("every key of a scenario changes a figure or is named as without effect") {
  std::set<std::string> bound;
  std::size_t first = 0;
  for (const auto& [name, text] : bases) {
    const Scenario base = read(resolved_document(read(read_toml(text, "base.toml"))));
    const json before = result_of(base);
    for (std::size_t number = first++ % one_of;; number += one_of) {
      const Tried tried = try_key(base, before, number);
      if (tried.path.empty()) break;
      INFO(name << ": " << tried.path);
      if (tried.outcome == Outcome::changes) bound.insert(tried.path);
      if (!binding_somewhere.contains(tried.path) && !permissions.contains(tried.path))
        CHECK(tried.outcome != Outcome::silent);
    }
  }
  if (one_of > 1) return;
  for (const std::string& path : binding_somewhere) {
    INFO(path);
    CHECK(bound.contains(path));
  }
}

TEST_CASE("what nobody wrote is not warned of, and a written key without effect is, once") {
  for (const auto& [name, text] : bases) {
    INFO(name);
    for (const json& warning :
         result_of(read(read_toml(text, "base.toml"))).value("warnings", json::array()))
      CHECK_THAT(warning.get<std::string>(), !Contains("no effect"));
  }
  const json idle = result_of(read(read_toml(
      "[collective]\nkind = \"all_reduce\"\nbytes = \"1 MiB\"\n[cluster]\nnode = \"dgx-a100\"\n"
      "nodes = 2\n[cluster.fabric]\nname = \"rail-optimized\"\necmp_seed = 7\n",
      "a.toml")));
  CHECK(idle["warnings"] ==
        json{"cluster.fabric.ecmp_seed has no effect here: routing is not ecmp"});
  CHECK(idle["changed"]["cluster.fabric.ecmp_seed"] == 7);
}

TEST_CASE("the list of keys names every key once, and every option of a key once") {
  std::set<std::string> paths, options;
  for (const ScenarioKey& key : scenario_keys()) {
    INFO(key.path);
    CHECK(paths.insert(key.path).second);
    if (*key.key.option != '\0') CHECK(options.insert(key.key.option).second);
  }
  for (const char* path : {"plan.recompute_every", "batch.local", "cluster.node.gpu.memory",
                           "software.version", "noise.kernel_sigma", "collective.bytes"})
    CHECK(paths.contains(path));
}
