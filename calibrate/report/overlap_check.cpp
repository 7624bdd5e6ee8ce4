#include "calibrate/report/overlap_check.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

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

/// Blocks and bandwidth of the kernel in words (task_text.cpp) that takes `alone` on its own.
std::optional<sim::KernelTime> kernel_of(const std::string& words, Duration alone,
                                         const topology::GpuSpec& gpu) {
  std::array<char, 16> dtype{}, implementation{}, pass{};
  long m = 0, n = 0, k = 0, batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;
  sim::KernelTime time{.duration = alone};
  double elements = 0;  // read and written once; 16 bits each
  if (std::sscanf(words.c_str(), "gemm %15s %ldx%ldx%ld", dtype.data(), &m, &n, &k) == 4) {
    time.tiles = sim::gemm_tiles({m, n, k, 1}, gpu.architecture);
    elements = static_cast<double>(m * k + k * n + m * n);
  } else if (std::sscanf(words.c_str(), "attention %15s %15s %15s b=%ld h=%ld kv=%ld s=%ld d=%ld",
                         implementation.data(), pass.data(), dtype.data(), &batch, &heads,
                         &kv_heads, &sequence, &head_dim) == 8) {
    time.tiles = sim::AttentionShape{.batch = batch, .heads = heads, .sequence = sequence}.blocks();
    elements = static_cast<double>(batch * sequence * head_dim * 2 * (heads + kv_heads));
  } else {
    return std::nullopt;
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
  const auto kernel = kernel_of(row.kernel, row.kernel_alone, *gpu);
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
  const auto time = network->model->time_of(*kind, row.bytes, workloads::Dtype::fp32,
                                            sim::shape_of(network->cluster(), ranks));
  return sim::stretch(*kernel, *gpu, time.ctas, time.memory_traffic);
}

}  // namespace stepcast::calibrate
