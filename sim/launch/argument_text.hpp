// Megatron-LM's arguments, written a line each, every name of the one table (words.hpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// Megatron-LM is called by its year up to 2023, its core by its version since.
struct MegatronRelease {
  std::int64_t year = 0, minor = 0;
  friend auto operator<=>(const MegatronRelease&, const MegatronRelease&) = default;
};
inline constexpr MegatronRelease megatron_core{2024, 0};  // grouped heads, --normalization, context

/// Of megatron-core, megatron-lm and megatron-deepspeed.
MegatronRelease megatron_release(const Scenario& scenario);
bool is_megatron_deepspeed(const Scenario& scenario);
/// "megatron-core 0.12"
std::string framework_and_version(const Scenario& scenario);

class ArgumentText {
 public:
  explicit ArgumentText(const Scenario& scenario);

  void flag(std::string_view name) { line(name, ""); }
  template <class T>
  void set(std::string_view name, const T& value) {
    line(name, fmt::format("{}", value));
  }
  /// Names that only Megatron-DeepSpeed or a release before its core has.
  void old_flag(std::string_view name) { text += fmt::format("--{}\n", name); }
  template <class T>
  void old_set(std::string_view name, const T& value) {
    text += fmt::format("--{} {}\n", name, value);
  }
  /// Whether the release has the name, as the table says.
  bool has(std::string_view name) const;

  const MegatronRelease release;
  std::string text;
  std::vector<std::string> notes;

 private:
  void line(std::string_view name, const std::string& value);

  std::string framework_;
  bool by_core_;
};

/// What the model is.
void write_megatron_model(const Scenario& scenario, ArgumentText& out);
/// Which layers have a window: "6" where every sixth has none, else a list; "": all of them.
std::string window_frequency(const Scenario& scenario);
/// Which layers have experts, a list of 1 and 0; "": all of them.
std::string expert_frequency(const Scenario& scenario);
/// What Megatron's arguments cannot say of it in this release; empty: nothing.
std::string megatron_model_refusal(const Scenario& scenario);

}  // namespace stepcast::sim
