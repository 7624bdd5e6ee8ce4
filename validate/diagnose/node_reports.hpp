// What tools print of a node: nvidia-smi dmon, its GPUs second by second, and nvidia-smi topo -m,
// how they are joined. Signs of causes; knows no step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "validate/diagnose/surroundings.hpp"

namespace stepcast::validate {

/// Lines of nvidia-smi dmon, whatever columns it was asked for (-s pucvmet, -o DT).
class DmonReader {
 public:
  /// Whether the line is of it.
  bool line(std::string_view text);
  /// A GPU whose clock is lower under load than the others', power and heat that hold clocks back,
  /// idle SMs, errors of memory and PCIe.
  std::vector<Sign> signs(const std::string& path) const;

 private:
  struct Column {
    std::vector<double> values, loaded;  // loaded: of rows whose SMs are mostly busy
  };
  std::vector<std::string> names_;                              // of the header
  std::map<std::int64_t, std::map<std::string, Column>> gpus_;  // by GPU and column
};

/// Whether a file is the matrix of nvidia-smi topo -m; false for what is no text.
bool is_topology(const std::string& path);

/// The matrix beside the scenario's node: fewer NVLinks or none, NICs behind the processor.
void add_topology(const std::string& path, const sim::Scenario& scenario, Surroundings& around,
                  std::vector<std::string>& notes);

}  // namespace stepcast::validate
