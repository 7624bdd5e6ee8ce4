// A law over scenarios: drawn until as many as are wanted are accepted, those that the program
// refuses counted. A scenario that breaks it is shrunk, and printed as TOML that a user can run.
#pragma once

#include <functional>
#include <string>

#include "sim/run/step_report.hpp"
#include "tests/laws/random_scenario.hpp"

namespace stepcast::sim::laws {

struct Law {
  const char* name;
  /// How many scenarios the program must accept: half as many are drawn in the short suite, twice
  /// as many with STEPCAST_CHECK=whole, a tenth under ASan. RC_PARAMS="max_success=2000 seed=7"
  /// asks for another number.
  int scenarios;
  Depth depth = Depth::few_layers;
};

/// Whether `claim`, which fails by RC_ASSERT, does for none of them; a refusal (InputError,
/// NoFeasiblePlan, BeyondClock) draws again.
bool holds(const Law& law, const std::function<void(const TomlValue& document)>& claim);

StepReport step_of(const TomlValue& document);

/// The document with one key changed.
TomlValue with(TomlValue document, const char* path, const TomlValue& value);
TomlValue without_noise(TomlValue document);
/// NCCL's choice taken away, which is another on another machine or for another message.
TomlValue pinned(TomlValue document);

/// All of a report that a user sees, to the last digit.
std::string bits_of(const StepReport& report);

}  // namespace stepcast::sim::laws
