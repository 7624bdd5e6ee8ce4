// Writes small traces as Kineto does, for tests.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/own_folder.hpp"
#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

class TraceWriter {
 public:
  /// Of a rank of `world`; -1: the profiler knew of no process group.
  explicit TraceWriter(int rank = -1, int world = 0) {
    text_ =
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100 80GB"
        " HBM3\", \"totalGlobalMem\": 85}],";
    if (rank >= 0)
      text_ += "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank) +
               ", \"world_size\": " + std::to_string(world) +
               ", \"pg_config\": [{\"ranks\": []}]},";
    text_ += "\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0}";
  }

  /// Times in us. `more`: further args, `, "Group size": 2`.
  void kernel(const std::string& name, double ts, double dur, int stream = 7,
              const std::string& more = "", int correlation = -1) {
    event("kernel", name, ts, dur,
          ", \"tid\": " + std::to_string(stream) +
              ", \"args\": {\"device\": 0, \"stream\": " + std::to_string(stream) +
              (correlation < 0 ? "" : ", \"correlation\": " + std::to_string(correlation)) + more +
              ", \"grid\": [1, 2, 3]}");
  }
  void collective(const std::string& name, double ts, double dur, const std::string& group,
                  const std::string& more = "") {
    kernel(
        name, ts, dur, 20,
        ", \"Process Group Name\": \"" + group + "\", \"Process Group Ranks\": \"[0, 1]\"" + more);
  }
  void mark(const std::string& category, int number, double ts, double dur) {
    event(category, "ProfilerStep#" + std::to_string(number), ts, dur, ", \"tid\": 1");
  }
  void launch(double ts, int correlation) {
    event("cuda_runtime", "cudaLaunchKernel", ts, 1,
          ", \"tid\": 1, \"args\": {\"correlation\": " + std::to_string(correlation) + "}");
  }
  void event(const std::string& category, const std::string& name, double ts, double dur,
             const std::string& more) {
    std::ostringstream out;
    out.precision(16);
    out << ",\n{\"ph\": \"X\", \"cat\": \"" << category << "\", \"name\": \"" << name
        << "\", \"pid\": 0, \"ts\": " << ts << ", \"dur\": " << dur << more << "}";
    text_ += out.str();
  }
  std::string text() const { return text_ + "\n], \"traceName\": \"t.json\"}\n"; }

 private:
  std::string text_;
};

/// A file that lives as long as this.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes, const std::string& name = "trace.json")
      : path_((tests::own_folder() / ("stepcast_" + std::to_string(::getpid()) + "_" + name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline RankTrace read_text(const std::string& bytes) {
  const TemporaryFile at(bytes);
  TraceFile file(at.path());
  return read_trace(at.path(), file);
}

}  // namespace stepcast::validate
