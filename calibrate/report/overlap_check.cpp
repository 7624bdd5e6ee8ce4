#include "calibrate/report/overlap_check.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "calibrate/device/device.hpp"
#include "engine/check.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/kernels/attention_times.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {
namespace {

std::optional<topology::GpuSpec> gpu_of(const sim::Catalogue& catalogue, const std::string& name) {
  for (const std::string& entry : catalogue.names("gpus")) {
    topology::GpuSpec gpu = catalogue.gpu(sim::toml_text(entry, "gpus"));
    if (sim::kinship(name, gpu.name) == sim::Kinship::same) return gpu;
  }
  return std::nullopt;
}

/// Blocks and bandwidth of a kernel that takes `alone` on its own.
sim::KernelTime time_of(const KernelTask& task, Duration alone, const topology::GpuSpec& gpu) {
  sim::KernelTime time{.duration = alone};
  double elements = 0;  // read and written once; 16 bits each
  if (const auto* t = std::get_if<GemmTask>(&task)) {
    time.tiles = sim::gemm_tiles({t->m, t->n, t->k, 1}, gpu.architecture);
    elements = static_cast<double>(t->m * t->k + t->k * t->n + t->m * t->n);
  } else if (const auto* a = std::get_if<AttentionTask>(&task)) {
    time.tiles =
        sim::AttentionShape{.batch = a->batch, .heads = a->heads, .sequence = a->sequence}.blocks();
    elements =
        static_cast<double>(a->batch * a->sequence * a->head_dim * 2 * (a->heads + a->kv_heads));
  }
  time.memory_fraction =
      std::min(1.0, 2.0 * elements / seconds(alone) / gpu.memory_bandwidth.value);
  return time;
}

}  // namespace

std::optional<double> modelled_stretch(const sim::OverlapRow& row, sim::Session& session) {
  const sim::Catalogue& catalogue = session.catalogue();
  const auto gpu = gpu_of(catalogue, row.gpu);
  sim::CollectiveRow collective;
  collective.collective = row.collective;
  const auto kind = sim::collective_kind(collective);
  if (!gpu || !kind) return std::nullopt;
  const auto kernel = kernel_in(row.kernel);
  if (!kernel) return std::nullopt;
  sim::Scenario machine;  // without tables: the model alone
  machine.node = catalogue.node(catalogue.node_of_gpu(gpu->name, "report").value("report"));
  machine.nodes = row.nodes;
  machine.fabric = catalogue.fabric(sim::toml_text("rail-optimized", "report"));
  const std::int64_t in_node = row.ranks / std::max<std::int64_t>(1, row.nodes);
  if (in_node < 1 || in_node > machine.node.gpus) return std::nullopt;
  std::vector<std::int64_t> ranks;
  for (std::int64_t r = 0; r < in_node * row.nodes; ++r)
    ranks.push_back(r / in_node * machine.node.gpus + r % in_node);
  const auto network = session.network(machine);
  const auto time =
      network->model->time_of(sim::plain_collective(*kind, row.bytes, workloads::Dtype::fp32),
                              sim::shape_of(network->cluster(), ranks));
  return sim::stretch(time_of(*kernel, row.kernel_alone, *gpu), *gpu, time.ctas,
                      time.memory_traffic);
}

}  // namespace stepcast::calibrate
