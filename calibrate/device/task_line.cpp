#include "calibrate/device/task_line.hpp"

#include <sstream>

#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

std::string line_of(const GemmTask& task) {
  std::ostringstream line;
  line << "gemm " << task.dtype << " " << task.m << " " << task.n << " " << task.k << " "
       << task.layout << " " << task.accumulate << " " << task.best_of_8;
  return line.str();
}

std::string line_of(const AttentionTask& task) {
  std::ostringstream line;
  line << "attention " << task.dtype << " " << task.backward << " " << task.batch << " "
       << task.heads << " " << task.kv_heads << " " << task.sequence << " " << task.head_dim << " "
       << task.causal << " " << task.implementation;
  return line.str();
}

}  // namespace

std::string to_line(const KernelTask& task) {
  return std::visit([](const auto& kernel) { return line_of(kernel); }, task);
}

KernelTask kernel_from_line(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "gemm") {
    GemmTask task;
    words >> task.dtype >> task.m >> task.n >> task.k >> task.layout >> task.accumulate >>
        task.best_of_8;
    if (words) return task;
  } else if (verb == "attention") {
    AttentionTask task;
    words >> task.dtype >> task.backward >> task.batch >> task.heads >> task.kv_heads >>
        task.sequence >> task.head_dim >> task.causal >> task.implementation;
    if (words) return task;
  }
  throw InputError("worker", "\"" + line + "\" is no kernel",
                   "are both programs of the same version?");
}

}  // namespace stepcast::calibrate
