#include "calibrate/session/task_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/rows/cluster_facts.hpp"
#include "engine/check.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/model.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {
namespace {

class RowWriter {
 public:
  RowWriter(sim::CalibrationTable& table, const Job& job, const RowFrame& frame,
            const Measured& measured)
      : table_(table), frame_(frame), measured_(measured) {
    cache_ = job.cache == Cache::hot ? "hot" : "cold";
    quality_ = {.spread = measured.timing.spread,
                .samples = measured.timing.samples,
                .throttled = measured.timing.throttled,
                .error = measured.error};
  }

  void operator()(const GemmTask& t) const {
    table_.gemm.push_back({.gpu = frame_.gpu,
                           .dtype = t.dtype,
                           .m = t.m,
                           .n = t.n,
                           .k = t.k,
                           .layout = t.layout,
                           .data = "random",
                           .rate = rate(),
                           .source = frame_.source,
                           .accumulate = t.accumulate,
                           .choice = t.best_of_8 ? "best_of_8" : "heuristic",
                           .cache = cache_,
                           .quality = quality_});
  }

  void operator()(const AttentionTask& t) const {
    table_.attention.push_back({.gpu = frame_.gpu,
                                .dtype = t.dtype,
                                .pass = t.backward ? "backward" : "forward",
                                .implementation = t.implementation,
                                .batch = t.batch,
                                .heads = t.heads,
                                .kv_heads = t.kv_heads,
                                .sequence = t.sequence,
                                .head_dim = t.head_dim,
                                .mask = t.causal ? "causal" : "full",
                                .rate = rate(),
                                .source = frame_.source,
                                .cache = cache_,
                                .quality = quality_});
  }

  void operator()(const ElementwiseTask& t) const {
    table_.elementwise.push_back({.gpu = frame_.gpu,
                                  .dtype = t.dtype,
                                  .kind = t.kind,
                                  .implementation = "own",
                                  .tokens = t.tokens,
                                  .shape = shape_of(t),
                                  .bytes = measured_.bytes,
                                  .duration = measured_.timing.median,
                                  .source = frame_.source,
                                  .width = t.width,
                                  .pass = t.backward ? "backward" : "forward",
                                  .cache = cache_,
                                  .quality = quality_});
  }

  /// A copy of n bytes reads and writes them: its rate counts both, as for published copies.
  void operator()(const CopyTask& t) const {
    const double moved = t.kind == "memory" ? 2.0 : 1.0;
    table_.copies.push_back(
        {.gpu = frame_.gpu,
         .kind = t.kind == "memory" ? "memory" : "pcie",
         .what = t.kind == "memory" ? "copy (read and write)" : t.kind,
         .gpus = 1,
         .rate = BytesPerSecond(per_second(moved * static_cast<double>(t.bytes.value))),
         .source = frame_.source,
         .bytes = t.bytes,
         .cache = cache_,
         .quality = quality_});
  }

  void operator()(const LaunchTask&) const {
    table_.launches.push_back({.gpu = frame_.gpu,
                               .what = "kernel",
                               .duration = measured_.timing.median,
                               .source = frame_.source,
                               .quality = quality_});
  }

  void operator()(const CollectiveTask& t) const {
    const DeviceFacts& facts = frame_.facts;
    sim::CollectiveRow row{.gpu = frame_.gpu,
                           .dtype = "fp32",
                           .collective = t.collective,
                           .ranks = facts.ranks,
                           .nodes = facts.nodes,
                           .gpus_per_node = facts.ranks / std::max<std::int64_t>(1, facts.nodes),
                           .bytes = t.bytes,
                           .duration = measured_.timing.median,
                           .fabric = frame_.fabric,
                           .nccl = facts.collective_library,
                           .timing = frame_.collective_timing,
                           .processes = {},
                           .node_bandwidth = frame_.node_bandwidth,
                           .busbw = {},
                           .source = frame_.source,
                           .algorithm = t.algorithm,
                           .protocol = t.protocol,
                           .quality = quality_};
    row.processes = fmt::format("{} per node", row.gpus_per_node);
    if (const auto version = nccl_in_text("NCCL version " + facts.collective_library))
      row.nccl = *version;
    if (const auto kind = sim::collective_kind(row))
      row.busbw = BytesPerSecond(
          per_second(static_cast<double>(t.bytes.value) * sim::bus_factor(*kind, row.ranks)));
    table_.collectives.push_back(std::move(row));
  }

  void operator()(const OverlapTask& t) const {
    table_.overlaps.push_back({.gpu = frame_.gpu,
                               .kernel = to_text(t.kernel),
                               .collective = t.collective.collective,
                               .ranks = frame_.facts.ranks,
                               .nodes = frame_.facts.nodes,
                               .bytes = t.collective.bytes,
                               .kernel_alone = measured_.kernel_alone,
                               .kernel_beside = measured_.timing.median,
                               .collective_alone = measured_.collective_alone,
                               .collective_beside = measured_.timing.beside,
                               .source = frame_.source,
                               .quality = quality_});
  }

 private:
  /// What tokens and width leave open.
  static std::string shape_of(const ElementwiseTask& t) {
    std::string shape = t.per_token > 0 ? fmt::format("per_token={}", t.per_token) : "";
    if (t.rows > 0) shape += fmt::format(";rows={}", t.rows);
    return shape;
  }
  double per_second(double amount) const {
    const double time = seconds(measured_.timing.median);
    return time > 0.0 ? amount / time : 0.0;
  }
  FlopsPerSecond rate() const { return FlopsPerSecond(per_second(measured_.flops)); }

  sim::CalibrationTable& table_;
  const RowFrame& frame_;
  const Measured& measured_;
  std::string cache_;
  sim::Quality quality_;
};

}  // namespace

std::string gpu_name(const DeviceFacts& facts, const sim::GpuIdentities& gpus) {
  if (const auto* known = gpus.by_cuda_name(facts.name)) return sim::table_name(known->gpu.name);
  std::string name;
  for (const char c : sim::without_maker(facts.name)) {
    const bool gap = c == ' ' || c == '(' || c == ')' || c == '@';
    if (!gap)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

void add_row(sim::CalibrationTable& table, const Job& job, const RowFrame& frame,
             const Measured& measured) {
  std::visit(RowWriter(table, job, frame, measured), job.task);
}

bool has_row(const sim::CalibrationTable& table, const Job& job, const RowFrame& frame) {
  sim::CalibrationTable wanted;
  add_row(wanted, job, frame, {});
  return sim::covers(table, wanted);
}

}  // namespace stepcast::calibrate
