// Tasks in words: progress, messages, and rows that name a kernel. Different tasks, different text.
#include <fmt/format.h>

#include "calibrate/device/device.hpp"
#include "calibrate/session/task_list.hpp"
#include "engine/units_text.hpp"

namespace stepcast::calibrate {
namespace {

std::string text(const GemmTask& t) {
  return fmt::format("gemm {} {}x{}x{} {}{}{}", t.dtype, t.m, t.n, t.k, t.layout,
                     t.accumulate ? " accumulating" : "", t.best_of_8 ? " best of 8" : "");
}

std::string text(const AttentionTask& t) {
  return fmt::format("attention {} {} {} b={} h={} kv={} s={} d={}{}", t.implementation,
                     t.backward ? "backward" : "forward", t.dtype, t.batch, t.heads, t.kv_heads,
                     t.sequence, t.head_dim, t.causal ? " causal" : "");
}

std::string text(const ElementwiseTask& t) {
  return fmt::format("{}{} {} {}x{}", t.kind, t.backward ? " backward" : "", t.dtype, t.tokens,
                     t.width);
}

std::string text(const CopyTask& t) { return fmt::format("copy {} {} B", t.kind, t.bytes.value); }

std::string text(const LaunchTask&) { return "launch"; }

std::string text(const CollectiveTask& t) {
  std::string out = fmt::format("{} {} B", t.collective, t.bytes.value);
  for (const std::string& forced : {t.algorithm, t.protocol})
    if (!forced.empty()) out += " " + forced;
  return out;
}

std::string text(const OverlapTask& t) {
  return std::visit([](const auto& kernel) { return text(kernel); }, t.kernel) + " beside " +
         text(t.collective);
}

}  // namespace

std::string to_text(const Task& task) {
  return std::visit([](const auto& t) { return text(t); }, task);
}

std::string to_text(const Job& job) {
  return to_text(job.task) + (job.cache == Cache::hot ? ", hot" : "");
}

}  // namespace stepcast::calibrate
