// What code asks of a generation of GPUs, beyond the figures of one of them. Plain values; each
// comes from a file of scenarios/architectures that states its source.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"

namespace stepcast::topology {

/// Whose rows of NCCL's tables hold, which tell GPUs apart by compute capability; and whose fitted
/// constants (scenarios/network). host: a core of this machine, which runs no NCCL.
enum class NcclGeneration : std::uint8_t { volta, ampere, hopper, blackwell, host };

/// Who moves bytes between GPUs. rccl: AMD's copy of NCCL; its choices are taken for NCCL's.
enum class CollectiveLibrary : std::uint8_t { nccl, rccl };

struct Architecture {
  std::string name;   // of its file: "hopper"
  bool host = false;  // a core of this machine in a GPU's place: all its times are measured

  CollectiveLibrary collectives = CollectiveLibrary::nccl;
  NcclGeneration nccl = NcclGeneration::hopper;
  BytesPerSecond link{};          // one link between GPUs as built, one direction
  BytesPerSecond planned_link{};  // what the library takes it for
  std::int64_t channels = 24;     // whose buffers take memory

  // Products: outputs of one thread block, and shares of the tensor peak where nobody has measured.
  std::int64_t tile_rows = 128, tile_columns = 128;
  double product_reach = 0.75;   // of large products in short runs, before waves and prologues
  bool bf16 = true;              // tensor cores multiply it
  bool fp8 = false;              // the same
  bool microscales = false;      // scales of 16 or 32 elements; blocks of 128 become these
  bool transposed_fp8 = false;   // 8-bit operands are read along either dimension
  double misaligned = 1.0;       // how much longer rows take that are no multiple of 16 bytes
  double idle_data = 1.0;        // rate on random data over the rate on zeros, at the power limit
  double attention_reach = 0.5;  // forward and backward
  double sparse_reach = 0.23;    // forward, to keys that an index chose
  double recurrence_reach = 0.1;
  bool flash2_by_sms = false;  // FlashAttention-2 runs Hopper's instructions: its rate by the SM

  double embedding = 0.17;     // of the memory bandwidth, a gather of rows
  bool one_memory = false;     // norms measured on one GPU hold for all of the generation
  bool one_connection = true;  // user buffers need CUDA_DEVICE_MAX_CONNECTIONS = 1

  // The clock under a power limit, as read off one part; see sim/kernels/sustained.hpp.
  double flops_per_cycle = 0.0;  // dense, 16 bits, of an SM or CU; 0: no clock follows
  double power_exponent = 3.0;   // of the clock, which power follows
  double sustained = 1.0;        // of the short-run rate, what a step holds on that part
  std::int64_t sustained_sms = 0;
  Watts sustained_tdp{};
  FlopsPerSecond sustained_peak{};
  double sustained_exponent = 1.0 / 3.0;  // of the watts of an SM, which its rate follows
  double highest_clock = 1.0;             // of its parts, over that part's
  std::int64_t sustained_gpus = 1;        // the slowest of how many it was read on

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace stepcast::topology
