// What stands around a run's steps: environment variables, NCCL's own lines, nvidia-smi's report,
// warnings of frameworks. Signs of causes, with their places. Knows no times.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "validate/diagnose/causes.hpp"
#include "validate/trace/facts.hpp"

namespace stepcast::validate {

/// A line that speaks for a cause.
struct Sign {
  CauseKind kind{};
  std::string evidence;             // "NCCL_PROTO=LL"
  std::string where;                // "run.sh:12"; of many the first
  std::string variable{}, value{};  // of the environment, where it is one
};

struct Surroundings {
  std::vector<Sign> signs;  // each once
  std::string gpu;          // as nvidia-smi names it
  std::string gpu_source;
  bool known = false;  // some line is of a tool that is understood
};

/// Streams the lines of a text. Throws InputError where the file cannot be read.
void read_surroundings(const std::string& path, Surroundings& out);

}  // namespace stepcast::validate
