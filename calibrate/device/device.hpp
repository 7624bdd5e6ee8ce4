// A device that can be measured: a GPU (calibrate/cuda/device.hpp) or this machine's own cores
// (calibrate/host/device.hpp). Both make a task ready, check it, and run it in batches; how often,
// and when a time is good enough, is measure.hpp's business. Plain values, no CUDA, no MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include "engine/units.hpp"

namespace stepcast::calibrate {

/// C = op(A) op(B), row-major as the step program means it: m x k times k x n. `layout` names opA
/// and opB: "NN" or "NT" forward (weights stored n x k), "NN" dgrad, "TN" wgrad.
struct GemmTask {
  std::string dtype;  // of A and B: bf16, fp16, tf32, fp8, fp32
  std::int64_t m = 0, n = 0, k = 0;
  std::string layout = "NT";
  bool accumulate = false;  // C +=: TN (wgrad) and fp8 in fp32, else in the type of A and B
  bool best_of_8 = false;   // the fastest of the library's first eight proposals, else its first
  friend bool operator==(const GemmTask&, const GemmTask&) = default;
};

struct AttentionTask {
  std::string dtype;
  bool backward = false;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;
  bool causal = true;
  std::string implementation = "own_flash";  // own_flash, cudnn, host
  friend bool operator==(const AttentionTask&, const AttentionTask&) = default;
};

using KernelTask = std::variant<GemmTask, AttentionTask>;

/// A memory-bound kernel by its kind in sim/kernels/kernel_names.hpp: rmsnorm, layernorm, rope,
/// silu_mul, gelu, residual_add, embedding, cross_entropy, cast, adamw, grad_norm, copy_in,
/// copy_out; of layers of experts router, permute, unpermute, sort_rows, weighted_silu_mul.
struct ElementwiseTask {
  std::string kind, dtype;
  std::int64_t tokens = 0, width = 0;  // rows and columns; elements of a flat kernel: width
  bool backward = false;
  // Experts of each token (router, permute, unpermute) and the rows that they make (the last two).
  std::int64_t per_token = 0, rows = 0;
  friend bool operator==(const ElementwiseTask&, const ElementwiseTask&) = default;
};

struct CopyTask {
  std::string kind;  // memory (read and write), host_to_device, device_to_host
  Bytes bytes{};
  friend bool operator==(const CopyTask&, const CopyTask&) = default;
};

/// An empty kernel launched many times: what one launch costs the host.
struct LaunchTask {
  friend bool operator==(const LaunchTask&, const LaunchTask&) = default;
};

struct CollectiveTask {
  std::string
      collective;  // nccl-tests' name: allreduce, allgather, reducescatter, alltoall, sendrecv
  Bytes bytes{};   // nccl-tests' size
  std::string algorithm, protocol;  // forced; empty: the library's choice
  friend bool operator==(const CollectiveTask&, const CollectiveTask&) = default;
};

/// A kernel while a collective runs beside it: slow-down of both.
struct OverlapTask {
  KernelTask kernel;
  CollectiveTask collective;
  friend bool operator==(const OverlapTask&, const OverlapTask&) = default;
};

using Task = std::variant<GemmTask, AttentionTask, ElementwiseTask, CopyTask, LaunchTask,
                          CollectiveTask, OverlapTask>;

/// Whether operands are found in the cache: rotating buffers of at least twice its size, or not.
enum class Cache : std::uint8_t { cold, hot };

struct Batch {
  Duration total{};        // device time of all repetitions
  Duration beside{};       // OverlapTask: of the collectives meanwhile
  bool throttled = false;  // clocks fell below what the device promises: to be discarded
};

/// A task made ready: buffers filled with random data in [-1, 1].
class Prepared {
 public:
  virtual ~Prepared() = default;
  /// Of the result against a float64 reference on fresh inputs: largest difference over the
  /// largest reference. 0 for what computes nothing.
  virtual double relative_error() = 0;
  /// Largest error that is no fault: the dtype's own.
  virtual double tolerance() const = 0;
  /// Runs it back to back and waits for the end.
  virtual Batch run(std::int64_t repetitions, Cache cache) = 0;
  virtual double flops() const { return 0.0; }  // of one repetition
  virtual Bytes bytes() const { return {}; }    // least memory traffic of one repetition
};

struct DeviceFacts {
  std::string name;     // "NVIDIA H100 80GB HBM3", "host-core AMD EPYC 7B13"
  std::string driver;   // versions, empty where there is none
  std::string runtime;  // CUDA, OpenBLAS
  std::string gemm_library, collective_library;
  std::string clocks;                 // "SM 1980 MHz, memory 2619 MHz"
  std::int64_t ranks = 1, nodes = 1;  // that take part in collectives
  Bytes cache{};                      // last-level cache, for cold batches
};

/// The device cannot do this task, and why: skipped and listed, not an error.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() const = 0;
  /// Throws Unsupported; InputError when the device itself fails (out of memory names the task).
  virtual std::unique_ptr<Prepared> prepare(const Task& task, std::uint64_t seed) = 0;
  /// Mean watts of the device while a prepared task runs for about `seconds`; negative: unknown.
  virtual double watts_of(Prepared& task, double seconds) = 0;
  /// Mean watts of the device while it waits for about `seconds`; negative: unknown.
  virtual double idle_watts(double seconds) {
    static_cast<void>(seconds);
    return -1.0;
  }
};

/// In words, for progress, messages, rows and workers: "gemm bf16 4096x4096x4096 NT". Different
/// tasks, different text.
std::string to_text(const Task& task);
std::string to_text(const KernelTask& task);
/// The kernel that such words name; none where they name another task or none.
std::optional<KernelTask> kernel_in(const std::string& text);

}  // namespace stepcast::calibrate
