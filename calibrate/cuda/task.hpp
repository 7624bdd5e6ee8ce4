// What the tasks of one GPU share: its stream, timer, cache size and clocks, and the way a task of
// rotating buffers is run. Knows no kernel.
#pragma once

#include <cstdint>
#include <optional>

#include "calibrate/device/device.hpp"
#include "calibrate/device/nvml.hpp"
#include "calibrate/kernels/memory.hpp"
#include "calibrate/kernels/timer.hpp"

namespace stepcast::calibrate {

struct CudaContext {
  /// Makes the GPU the calling thread's. Throws InputError where there is none.
  explicit CudaContext(int gpu);

  int gpu;
  int compute_capability = 0;  // 80 for sm_80
  Bytes cache{};               // L2
  double default_mhz = 0;      // SM clock
  std::optional<Nvml> nvml;    // empty: no NVML, nothing is known about clocks
  std::string nvml_missing;    // why
  Stream stream;
  CudaTimer timer;
  DeviceMemory workspace;  // of products (matmul.hpp)

  /// Clocks now are so low that times are to be discarded; false where nothing is known.
  bool throttled_now() const;
};

/// A task whose operands lie in `num_sets` sets of buffers, for cold batches.
class CudaTask : public Prepared {
 public:
  explicit CudaTask(CudaContext& context) : context_(context) {}
  Batch run(std::int64_t repetitions, Cache cache) override;
  /// One repetition on another stream: for overlap.
  virtual void launch_on(cudaStream_t stream, std::int64_t set) = 0;
  std::int64_t num_sets() const { return num_sets_; }

 protected:
  /// Sets of `footprint` bytes each that together are at least twice the cache.
  void set_footprint(Bytes footprint);
  /// Runs every set once and waits, so that kernels are loaded and faults show here.
  void warm_up();

  CudaContext& context_;

 private:
  std::int64_t num_sets_ = 1;
  std::int64_t next_set_ = 0;
};

}  // namespace stepcast::calibrate
