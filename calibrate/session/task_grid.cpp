// The grid that is measured when no scenario says what is needed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/session/task_collectives.hpp"
#include "calibrate/session/task_list.hpp"
#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/scenario/catalogue.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::calibrate {
namespace {

using workloads::CollectiveKind;
using workloads::TransformerShape;

TransformerShape model_named(const std::string& name, const sim::Catalogue& catalogue) {
  sim::TomlValue document = sim::toml_table("the catalogue");
  document.set("name", sim::toml_text(name, "the catalogue"));
  sim::TableReader table(document, "model");
  return catalogue.model(table);
}

/// A weight (out, in) of a layer.
struct Weight {
  std::int64_t out, in;
};

std::vector<Weight> weights_of(const TransformerShape& m, std::int64_t t) {
  const workloads::RankWidths rank(m, t);
  return {{rank.query + 2 * rank.kv, m.hidden},
          {m.hidden, rank.query},
          {2 * rank.ffn, m.hidden},
          {m.hidden, rank.ffn},
          {rank.vocab, m.hidden}};
}

class GridList {
 public:
  GridList(const Grid& grid, const Bench& bench) : grid_(grid), bench_(bench) {}

  void products(const TransformerShape& model, std::int64_t tensor);
  void attention(const TransformerShape& model, std::int64_t tensor);
  void elementwise(const TransformerShape& model);
  void copies();
  void anchor();
  void collectives();
  void overlaps();
  void job(Task task, Cache cache = Cache::cold) {
    Job job{std::move(task), cache};
    if (std::find(list_.jobs.begin(), list_.jobs.end(), job) == list_.jobs.end())
      list_.jobs.push_back(std::move(job));
  }
  JobList take() { return std::move(list_); }

 private:
  void product(GemmTask task, bool hot_too);
  std::vector<std::int64_t> collective_sizes() const;

  const Grid& grid_;
  const Bench& bench_;
  JobList list_;
};

void GridList::product(GemmTask task, bool hot_too) {
  const double flops =
      2.0 * static_cast<double>(task.m) * static_cast<double>(task.n) * static_cast<double>(task.k);
  if (flops > grid_.most_flops) return;
  job(task);
  if (!grid_.thorough) return;
  if (hot_too) job(task, Cache::hot);
  task.best_of_8 = true;
  job(std::move(task));
}

/// Forward (T, out, in), input gradient (T, in, out), weight gradient (out, in, T) added in fp32.
void GridList::products(const TransformerShape& model, std::int64_t tensor) {
  const std::int64_t tokens = grid_.tokens;
  for (const auto& [out, in] : weights_of(model, tensor)) {
    product({.dtype = grid_.dtype, .m = tokens, .n = out, .k = in, .layout = "NT"}, true);
    product({.dtype = grid_.dtype, .m = tokens, .n = in, .k = out, .layout = "NN"}, false);
    product({.dtype = grid_.dtype,
             .m = out,
             .n = in,
             .k = tokens,
             .layout = "TN",
             .accumulate = grid_.dtype != "fp32"},
            false);
  }
}

void GridList::attention(const TransformerShape& model, std::int64_t tensor) {
  const workloads::RankWidths rank(model, tensor);
  for (std::int64_t sequence = std::max<std::int64_t>(128, grid_.tokens / 4);
       sequence <= (grid_.thorough ? 2 : 1) * grid_.tokens; sequence *= 2)
    for (const std::int64_t head_dim : {std::int64_t{128}, std::int64_t{64}})
      for (const bool causal : {true, false})
        for (const bool backward : {false, true}) {
          const bool usual = head_dim == model.head_dim && causal;
          if (!usual && (sequence != grid_.tokens || !grid_.thorough)) continue;
          AttentionTask task{.dtype = grid_.dtype,
                             .backward = backward,
                             .batch = 1,
                             .heads = rank.heads,
                             .kv_heads = rank.kv_heads,
                             .sequence = sequence,
                             .head_dim = head_dim,
                             .causal = causal,
                             .implementation = bench_.attention()};
          const double flops = 10.0 * static_cast<double>(task.heads * task.head_dim) *
                               static_cast<double>(sequence) * static_cast<double>(sequence);
          if (flops > grid_.most_flops) continue;
          job(task);
          if (!bench_.gpu || causal) continue;
          task.implementation = "cudnn";  // beside ours, where both know the mask
          job(std::move(task));
        }
}

/// Kinds over a quarter of the tokens to all of them, so that a curve over bytes exists.
void GridList::elementwise(const TransformerShape& m) {
  struct Kind {
    const char* name;
    std::int64_t width;
    bool backward;  // has one of its own
  };
  const std::int64_t query = m.heads * m.head_dim;
  const std::vector<Kind> rows = {{"rmsnorm", m.hidden, true},     {"layernorm", m.hidden, true},
                                  {"rope", query, true},           {"silu_mul", m.ffn_hidden, true},
                                  {"gelu", m.ffn_hidden, true},    {"embedding", m.hidden, true},
                                  {"cross_entropy", m.vocab, true}};
  for (std::int64_t tokens = grid_.tokens / 4; tokens <= grid_.tokens; tokens *= 4) {
    for (const auto& [name, width, both] : rows)
      for (const bool backward : {false, true})
        job(ElementwiseTask{name, grid_.dtype, tokens, width, backward});
    for (const char* flat : {"residual_add", "cast", "copy_in", "copy_out"})
      job(ElementwiseTask{flat, grid_.dtype, 1, tokens * m.hidden});
    for (const char* flat : {"adamw", "grad_norm"})
      job(ElementwiseTask{flat, "fp32", 1, tokens * m.hidden});
  }
}

void GridList::copies() {
  job(LaunchTask{});
  for (const Bytes bytes : copy_sizes())
    if (grid_.thorough || bytes <= Bytes(64 << 20)) job(CopyTask{"memory", bytes});
  if (!bench_.gpu) return;
  for (const char* kind : {"host_to_device", "device_to_host"})
    job(CopyTask{kind, Bytes(grid_.thorough ? 256 << 20 : 16 << 20)});
}

/// The one product whose rate on random data is known elsewhere: 8192^3 in bf16 (798 TFLOP/s on an
/// H100, calibrate/report/gpu_report.cpp).
void GridList::anchor() {
  if (!bench_.gpu || grid_.dtype != "bf16") return;
  GemmTask task{.dtype = "bf16", .m = 8192, .n = 8192, .k = 8192, .layout = "NT"};
  job(task);
  task.best_of_8 = true;
  job(std::move(task));
}

std::vector<std::int64_t> GridList::collective_sizes() const {
  std::vector<std::int64_t> sizes;
  const std::int64_t most = grid_.thorough ? 1 << 30 : 16 << 20;
  for (std::int64_t bytes = 1 << 10; bytes <= most; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

void GridList::collectives() {
  if (bench_.ranks < 2) {
    list_.not_here.emplace_back("collectives: one rank takes part here");
    return;
  }
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::send_receive})
    for (const std::int64_t bytes : collective_sizes())
      job(CollectiveTask{sim::row_word(kind), Bytes(bytes), {}, {}});
  if (!grid_.thorough) return;
  for (const char* algorithm : {"ring", "tree"})
    for (const char* protocol : {"ll", "ll128", "simple"})
      for (const std::int64_t bytes : collective_sizes())
        job(CollectiveTask{"allreduce", Bytes(bytes), algorithm, protocol});
}

/// A large product and attention beside an AllReduce and an AllGather of 64 MiB.
void GridList::overlaps() {
  if (bench_.ranks < 2 || !bench_.gpu) return;
  const std::int64_t tokens = grid_.tokens;
  const GemmTask gemm{.dtype = grid_.dtype, .m = tokens, .n = tokens, .k = tokens};
  const AttentionTask attention{.dtype = grid_.dtype,
                                .batch = 1,
                                .heads = 32,
                                .kv_heads = 32,
                                .sequence = tokens,
                                .head_dim = 128,
                                .implementation = bench_.attention()};
  const std::int64_t bytes = grid_.thorough ? 64 << 20 : 4 << 20;
  for (const char* collective : {"allreduce", "allgather"}) {
    job(OverlapTask{gemm, CollectiveTask{collective, Bytes(bytes), {}, {}}});
    job(OverlapTask{attention, CollectiveTask{collective, Bytes(bytes), {}, {}}});
  }
}

}  // namespace

Grid grid_for(const std::string& device_kind, bool quick) {
  Grid grid;
  if (device_kind == "host") {
    // Two cores of a 2020s server give about 1e11 FLOP/s in fp32: 2e10 take a fifth of a second.
    grid = {.dtype = "fp32",
            .tokens = 512,
            .tensor_degrees = {4, 8},
            .models = {"llama2-7b"},
            .thorough = false,
            .most_flops = 2e10};
    if (quick)
      grid = {.dtype = "fp32",
              .tokens = 128,
              .tensor_degrees = {8},
              .models = {"llama2-7b"},
              .thorough = false,
              .most_flops = 4e9};
  } else if (quick) {
    grid.tensor_degrees = {1, 8};
    grid.models = {"llama2-7b"};
    grid.thorough = false;
  }
  return grid;
}

JobList jobs_of(const Grid& grid, const Bench& bench, const sim::Catalogue& catalogue) {
  GridList list(grid, bench);
  list.copies();
  list.anchor();
  bool first = true;
  for (const std::string& name : grid.models) {
    const TransformerShape model = model_named(name, catalogue);
    for (const std::int64_t tensor : grid.tensor_degrees) {
      list.products(model, tensor);
      if (tensor == grid.tensor_degrees.front() || tensor == grid.tensor_degrees.back())
        list.attention(model, tensor);
    }
    if (std::exchange(first, false)) list.elementwise(model);
  }
  list.collectives();
  list.overlaps();
  return list.take();
}

}  // namespace stepcast::calibrate
