#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "calibrate/device/device.hpp"
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
  std::string out = fmt::format("{}{} {} {}x{}", t.kind, t.backward ? " backward" : "", t.dtype,
                                t.tokens, t.width);
  if (t.per_token > 0) out += fmt::format(" top {}", t.per_token);
  if (t.rows > 0) out += fmt::format(" in {} rows", t.rows);
  return out;
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

std::optional<KernelTask> gemm_in(std::istringstream& words) {
  GemmTask t;
  char by = 0;
  std::string rest;
  if (!(words >> t.dtype >> t.m >> by >> t.n >> by >> t.k)) return std::nullopt;
  if (words >> rest) t.layout = rest;
  std::getline(words, rest);
  t.accumulate = rest.find(" accumulating") != std::string::npos;
  t.best_of_8 = rest.find(" best of 8") != std::string::npos;
  return t;
}

std::optional<KernelTask> attention_in(std::istringstream& words) {
  AttentionTask t;
  std::string pass, causal;
  words >> t.implementation >> pass >> t.dtype;
  for (const auto& [name, number] : {std::pair{"b=", &t.batch},
                                     {"h=", &t.heads},
                                     {"kv=", &t.kv_heads},
                                     {"s=", &t.sequence},
                                     {"d=", &t.head_dim}}) {
    words >> std::ws;
    for (const char* letter = name; *letter != 0; ++letter)
      if (words.get() != *letter) return std::nullopt;
    words >> *number;
  }
  if (!words) return std::nullopt;
  t.backward = pass == "backward";
  t.causal = words >> causal && causal == "causal";
  return t;
}

}  // namespace

std::string to_text(const Task& task) {
  return std::visit([](const auto& t) { return text(t); }, task);
}

std::string to_text(const KernelTask& task) {
  return std::visit([](const auto& t) { return text(t); }, task);
}

std::optional<KernelTask> kernel_in(const std::string& text) {
  std::istringstream words(text);
  std::string verb;
  words >> verb;
  return verb == "gemm" ? gemm_in(words) : verb == "attention" ? attention_in(words) : std::nullopt;
}

}  // namespace stepcast::calibrate
