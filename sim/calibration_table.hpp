// The calibration table: measured kernel and collective times of one or more GPUs, and its HDF5
// file, the contract between calibrate (writes) and sim (reads). One group per family, one dataset
// per column, units as attributes, schema version 1. The schema stands in calibration_table.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::sim {

/// Where a row was read or measured.
struct RowSource {
  std::string source;      // "vidur profile Llama-2-7b TP1 ...", "stepcast-calibrate run ..."
  std::string reference;   // URL, repository path, or command line
  std::string confidence;  // high, medium, low
};

struct GemmRow {
  std::string gpu;  // as the source names it: "H100-SXM5-80GB"
  std::string dtype;
  std::int64_t m = 0, n = 0, k = 0;
  FlopsPerSecond rate{};
  RowSource source;
};

struct AttentionRow {
  std::string gpu, dtype;
  std::string pass;            // forward, backward, forward_backward
  std::string implementation;  // flash2, flash3, cudnn, memory_efficient, ...
  std::int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;
  bool causal = false;
  FlopsPerSecond rate{};  // FLOPs counted as the source does: causal halves them
  RowSource source;
};

struct ElementwiseRow {
  std::string gpu, dtype;
  std::string kind;            // rmsnorm, rope, silu_mul, residual_add, embedding, ...
  std::string implementation;  // vllm, eager, inductor, transformer_engine, own, ...
  std::int64_t tokens = 0, width = 0;
  Bytes bytes{};  // least HBM traffic
  Duration duration{};
  RowSource source;
};

struct CollectiveRow {
  std::string gpu, dtype;
  std::string collective;  // allreduce, allgather, reducescatter, alltoall, sendrecv
  std::int64_t ranks = 0, nodes = 0, gpus_per_node = 0;
  Bytes bytes{};
  Duration duration{};
  std::string fabric, nccl, timing;
  BytesPerSecond node_bandwidth{};  // of all NICs of a node, one direction; 0: not stated
  RowSource source;
};

struct CopyRow {
  std::string gpu, kind;  // memory, nvlink, pcie
  BytesPerSecond rate{};
  RowSource source;
};

struct CalibrationTable {
  std::string title;    // "published", "dgx-h100 node17 2026-11-21"
  std::string created;  // ISO date
  std::vector<GemmRow> gemm;
  std::vector<AttentionRow> attention;
  std::vector<ElementwiseRow> elementwise;
  std::vector<CollectiveRow> collectives;
  std::vector<CopyRow> copies;
};

/// Throws InputError on a file that is missing, truncated, not HDF5, of another schema version, or
/// whose columns disagree.
CalibrationTable read_calibration(const std::string& path);
void write_calibration(const std::string& path, const CalibrationTable&);

/// Rows of `later` win over equal keys of `earlier`.
CalibrationTable merge(CalibrationTable earlier, const CalibrationTable& later);

}  // namespace stepcast::sim
