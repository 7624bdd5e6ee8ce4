// One rank's run as the PyTorch profiler (Kineto) records it: what ran on the GPU, when. Knows no
// steps and no model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "validate/trace/records/file.hpp"
#include "validate/trace/records/kernels.hpp"

namespace stepcast::validate {

/// What the profiler says of a collective's kernel, as far as it does.
struct CollectiveFacts {
  std::string collective{};        // "_allgather_base"
  std::string group{};             // the process group's name, the same on all its ranks
  std::string members{};           // "[0, 1, 2, 3]"
  std::int64_t group_size = 0;     // 0: not stated
  std::int64_t in = -1, out = -1;  // elements; -1: not stated
  std::string dtype{};             // "BFloat16"
  std::int64_t source = -1, destination = -1;  // of a message

  friend bool operator==(const CollectiveFacts&, const CollectiveFacts&) = default;
};

struct TraceKernel {
  Time begin{};
  Duration duration{};
  std::uint32_t name = 0;  // index into RankTrace::names
  std::int64_t stream = 0;
  std::int64_t correlation = -1;  // with its launch
  std::int64_t facts = -1;        // index into RankTrace::facts

  Time end() const { return begin + duration; }
};

/// A span that the profiler names ProfilerStep#<number>.
struct StepMark {
  std::int64_t number = 0;
  Time begin{}, end{};
};

struct Launch {
  std::int64_t correlation = 0;
  Time at{};
};

/// A communicator as torch.distributed describes it: _get_pg_config of distributed_c10d.py (2.6).
struct ProcessGroup {
  std::string description;  // "mesh_tp", "TENSOR_MODEL_PARALLEL_GROUP", "default_pg"
  std::int64_t size = 0;
};

/// Times count from the first event of the file.
struct RankTrace {
  std::string file;
  std::optional<std::int64_t> rank, world_size;
  std::string gpu;                   // name of the device
  std::int64_t devices = 0;          // that the process saw
  std::string nccl;                  // its version, "2.21.5"
  std::vector<ProcessGroup> groups;  // that the rank is in
  std::int64_t alike = 1;            // ranks that this one stands for
  std::vector<KernelName> names;
  std::vector<CollectiveFacts> facts;
  std::vector<TraceKernel> kernels;  // by begin
  std::vector<StepMark> host_marks;  // as the host's thread passed them, by begin
  std::vector<StepMark> gpu_marks;   // around the kernels of the step, by begin
  std::vector<Launch> launches;      // by correlation
  std::vector<Duration> waits;       // of each kernel for its peers; empty: the file does not say

  const KernelName& name_of(const TraceKernel& kernel) const { return names[kernel.name]; }
};

/// Whether what follows is JSON of a trace: '{', or '[' before '{' (logs begin with "[rank0]").
bool is_trace(TraceFile& file);

/// Streams the file; needs memory for the kernels alone. Throws InputError, naming the event or the
/// byte, for text that is no JSON, is cut off, or is no trace with GPU kernels.
RankTrace read_trace(const std::string& path, TraceFile& file);

}  // namespace stepcast::validate
