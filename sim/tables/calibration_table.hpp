// The calibration table: measured kernel and collective times of one or more GPUs, and its HDF5
// file, the contract between calibrate (writes) and sim (reads).
//
// Schema version 3, written down in calibrate/TABLE.md: one group per family, one 1-D dataset per
// column, which are the members below by their names; rows point into the group /sources. Files of
// older versions are read: what they lack is empty or zero.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::sim {

/// The machine that stepcast-calibrate measured, and how it was called; empty for what was read
/// elsewhere.
struct MeasuredOn {
  std::string device, driver, runtime, gemm_library, collective_library, clocks;
  std::string date, command;

  friend bool operator==(const MeasuredOn&, const MeasuredOn&) = default;
  friend auto operator<=>(const MeasuredOn&, const MeasuredOn&) = default;
};

/// Where a row was read or measured.
struct RowSource {
  std::string source;      // "vidur profile Llama-2-7b TP1 ...", "stepcast-calibrate run ..."
  std::string reference;   // URL, repository path, or the machine and its libraries
  std::string confidence;  // high, medium, low (read from memory or indirect: never scored)
  MeasuredOn on{};

  friend bool operator==(const RowSource&, const RowSource&) = default;
  friend auto operator<=>(const RowSource&, const RowSource&) = default;
};

/// The source of a row, held once for all rows that share it: a copy is a pointer's. Rows that say
/// the same are equal, whoever made them.
class SharedSource {
 public:
  SharedSource() = default;
  SharedSource(RowSource source);  // NOLINT(google-explicit-constructor): a row is given a source
  SharedSource(std::string source, std::string reference, std::string confidence);

  const RowSource& operator*() const;
  const RowSource* operator->() const { return &**this; }

  /// The same with another confidence.
  SharedSource with_confidence(std::string confidence) const;

  friend bool operator==(const SharedSource& a, const SharedSource& b) {
    return a.source_ == b.source_ || *a == *b;
  }

 private:
  std::shared_ptr<const RowSource> source_;  // null: nothing is said
};

/// How well a row's median is known; samples = 0 where the source does not say.
struct Quality {
  double spread = 0.0;         // (third - first quartile) / median of the samples
  std::int64_t samples = 0;    // batches that count
  std::int64_t throttled = 0;  // batches thrown away because the clocks fell
  double error = 0.0;  // of the result against float64: largest difference / largest reference

  friend bool operator==(const Quality&, const Quality&) = default;
};

struct GemmRow {
  std::string gpu;  // as the source names it: "H100-SXM5-80GB"
  std::string dtype;
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout;  // opA and opB as BLAS names them: "NN", "TN", "NT", "" not stated
  std::string data;  // what was multiplied: random, small (weights near zero), zeros, "" not stated
  FlopsPerSecond rate{};
  SharedSource source;
  bool accumulate = false;  // C += in fp32
  std::string choice{};  // the library's first: heuristic; best_of_8, best_of_shapes; "" not stated
  std::string cache{};   // operands: cold, hot, "" not stated
  Quality quality{};
  std::int64_t groups =
      0;                // of experts: so many products of this shape in one call; 0: one product
  std::string call{};   // of them: loop, one_launch, "" not stated
  std::string limit{};  // power: a power limit at times; sustained: at all times; "" not stated

  /// The fastest of several proposals or shapes, not what the library picks first.
  bool is_best() const { return choice.starts_with("best_of_"); }

  friend bool operator==(const GemmRow&, const GemmRow&) = default;
};

struct AttentionRow {
  std::string gpu, dtype;
  std::string pass;            // forward, backward, forward_backward
  std::string implementation;  // flash2, flash3, cudnn, memory_efficient, ...
  std::int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;
  std::string mask;       // causal, full, not_stated
  FlopsPerSecond rate{};  // FLOPs counted as the source does: causal halves them
  SharedSource source;
  std::string cache{};
  Quality quality{};
  std::int64_t value_dim = 0;  // of a head's v and o; 0: head_dim
  std::int64_t window = 0;     // tokens that a causal mask looks back; 0: all

  friend bool operator==(const AttentionRow&, const AttentionRow&) = default;
};

struct ElementwiseRow {
  std::string gpu, dtype;
  std::string kind;            // rmsnorm, rope, silu_mul, residual_add, embedding, ...
  std::string implementation;  // vllm, eager, inductor, transformer_engine, own, ...
  std::int64_t tokens = 0;
  std::string shape;  // the rest of the shape: "model=Llama-2-7b;tp=1", "op=columnwise"
  Bytes bytes{};      // least HBM traffic
  Duration duration{};
  SharedSource source;
  std::int64_t width = 0;  // columns: tokens x width elements; 0: see shape
  std::string pass{};      // forward, backward, "" not stated
  std::string cache{};
  Quality quality{};

  friend bool operator==(const ElementwiseRow&, const ElementwiseRow&) = default;
};

struct CollectiveRow {
  std::string gpu, dtype;
  std::string collective;  // allreduce, allgather, reducescatter, alltoall, sendrecv, broadcast,
                           // reduce
  std::int64_t ranks = 0, nodes = 0, gpus_per_node = 0;  // 0: not stated ("multi")
  Bytes bytes{};        // nccl-tests' size; 0: the source gives a peak bandwidth only
  Duration duration{};  // 0 where bytes or ranks are not stated
  std::string fabric, nccl, timing, processes;
  BytesPerSecond node_bandwidth{};  // of all NICs of a node, one direction; 0: not stated
  BytesPerSecond busbw{};           // nccl-tests' bus bandwidth; 0 where it cannot be computed
  SharedSource source;
  std::string algorithm{}, protocol{};  // forced: ring, simple, ...; "" the library's choice
  Quality quality{};

  friend bool operator==(const CollectiveRow&, const CollectiveRow&) = default;
};

struct CopyRow {
  std::string gpu, kind;  // memory, nvlink, pcie, other
  std::string what;       // the source's own words: "hbm d2d BabelStream Copy (read+write)"
  std::int64_t gpus = 1;
  BytesPerSecond rate{};
  SharedSource source;
  Bytes bytes{};  // that one copy moves; 0: not stated
  std::string cache{};
  Quality quality{};

  friend bool operator==(const CopyRow&, const CopyRow&) = default;
};

/// What the host pays to start something on the device.
struct LaunchRow {
  std::string gpu;
  std::string what;  // kernel
  Duration duration{};
  SharedSource source;
  Quality quality{};

  friend bool operator==(const LaunchRow&, const LaunchRow&) = default;
};

/// A kernel and a collective, each alone and beside the other.
struct OverlapRow {
  std::string gpu;
  std::string kernel;  // "gemm bf16 4096x4096x4096 NT"
  std::string collective;
  std::int64_t ranks = 0, nodes = 0;
  Bytes bytes{};  // of the collective
  Duration kernel_alone{}, kernel_beside{};
  Duration collective_alone{}, collective_beside{};
  SharedSource source;
  Quality quality{};  // of kernel_beside

  friend bool operator==(const OverlapRow&, const OverlapRow&) = default;
};

/// Mean power of the device while one kernel runs again and again.
struct PowerRow {
  std::string gpu;
  std::string load;  // "idle", or the kernel: "gemm bf16 8192x8192x8192 NT"
  Watts power{};
  SharedSource source;

  friend bool operator==(const PowerRow&, const PowerRow&) = default;
};

/// What NCCL takes one algorithm and protocol for when it chooses (NCCL_DEBUG_SUBSYS=TUNING): no
/// measurement. Its time is latency + bytes / bandwidth.
struct NcclTuningRow {
  std::string gpu, nccl;
  std::string collective;           // as in CollectiveRow
  std::string algorithm, protocol;  // our names: ring, nvls_tree, ...; ll, ll128, simple
  std::int64_t ranks = 0, nodes = 0;
  Duration latency{};
  BytesPerSecond bandwidth{};  // algorithm bandwidth
  SharedSource source;

  friend bool operator==(const NcclTuningRow&, const NcclTuningRow&) = default;
};

/// What NCCL ran one call with, by the same log.
struct NcclChoiceRow {
  std::string gpu, nccl;
  std::string collective;
  std::int64_t ranks = 0, nodes = 0;
  Bytes bytes{};
  std::string algorithm, protocol;
  std::int64_t channels = 0;  // 0: not said
  Duration estimate{};        // NCCL's own; 0: not said
  SharedSource source;

  friend bool operator==(const NcclChoiceRow&, const NcclChoiceRow&) = default;
};

struct CalibrationTable {
  // Compiled once, as Scenario's are.
  CalibrationTable();
  CalibrationTable(const CalibrationTable&);
  CalibrationTable(CalibrationTable&&) noexcept;
  CalibrationTable& operator=(const CalibrationTable&);
  CalibrationTable& operator=(CalibrationTable&&) noexcept;
  ~CalibrationTable();

  std::string title;    // "published", "dgx-h100 node17 2026-11-21"
  std::string created;  // ISO date
  std::vector<GemmRow> gemm;
  std::vector<AttentionRow> attention;
  std::vector<ElementwiseRow> elementwise;
  std::vector<CollectiveRow> collectives;
  std::vector<CopyRow> copies;
  std::vector<NcclTuningRow> nccl_tuning;
  std::vector<NcclChoiceRow> nccl_choices;
  std::vector<LaunchRow> launches;
  std::vector<OverlapRow> overlaps;
  std::vector<PowerRow> powers;

  bool operator==(const CalibrationTable&) const;
};

/// Throws InputError on a file that is missing, truncated, not HDF5, of another schema version, or
/// whose columns disagree.
CalibrationTable read_calibration(const std::string& path);

/// InputError at `where` for a row that no measurement can be: a rate of zero, an unknown word.
void check_rows(const CalibrationTable& table, const std::string& where);

/// Rows of a table, all families.
std::size_t num_rows(const CalibrationTable&);

/// Writes beside `path` first and renames at the end: a file under this name is whole.
void write_calibration(const std::string& path, const CalibrationTable&);

/// Rows of `later` win over rows of `earlier` with an equal key (what was measured on what: all
/// members but the result and the source). A collective of one GPU, ranks, nodes and wire that
/// `later` has at three sizes or more is a curve of its own: it replaces all that `earlier` knows
/// of it, so that a user's own log stands alone against published ones of the same shape.
CalibrationTable merge(CalibrationTable earlier, const CalibrationTable& later);

/// As merge(), but row by row: a curve of `later` replaces only its own sizes. For measurements of
/// one machine that are taken bit by bit.
CalibrationTable update(CalibrationTable earlier, const CalibrationTable& later);

/// Whether `table` has a row with the key of every row of `rows`.
bool covers(const CalibrationTable& table, const CalibrationTable& rows);

/// The table of a scenario's `calibration.tables`: files in order, later ones win; "published" is
/// the table shipped beside the program, "host" the one that `./dev run` measures beside it.
CalibrationTable read_calibrations(std::span<const std::string> tables);

/// Where "published" lies: in the folder of the running program, published.columns, the flat form
/// that is read without HDF5; published.h5 where that is newer.
std::string published_calibration();

}  // namespace stepcast::sim
