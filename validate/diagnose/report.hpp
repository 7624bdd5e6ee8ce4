// The diagnosis, told once: verdict, causes, ranks, what else would be faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/handout/handout.hpp"
#include "sim/run/step_report.hpp"
#include "validate/diagnose/attribution.hpp"
#include "validate/diagnose/faster.hpp"
#include "validate/trace/breakdown.hpp"

namespace stepcast::validate {

struct Diagnosis {
  std::vector<std::string> files;
  std::string scenario;  // its file
  sim::StepReport expected;
  StepBreakdown measured;
  Attribution found;
  std::vector<Faster> faster{};
  std::vector<std::string> contradictions{}, notes{};
  std::string mismatch{};  // why the files cannot be of the scenario; then no cause is named
  std::optional<double> slower_than{};  // share of such runs, where the run is slower than those

  /// Only what was run is known: the forecast is all that can be said.
  bool without_steps() const { return !(found.measured > 0); }
  /// Whether it is likelier to die of memory than to run.
  bool fits() const { return expected.p_fits.value_or(1) >= 0.5; }
};

/// Beyond the forecast's error bar, or slower by a cause that is seen without the forecast.
bool is_slower(const Diagnosis& diagnosis);

/// "Slower than 97 % of such runs: 2.75 s a step where 1.64 s (1.50 to 1.85) is expected; ...", and
/// of files without a step what is expected, and whether it fits.
std::string verdict_text(const Diagnosis& diagnosis);

/// As JSON {"verdict": ..., "measured_s": ..., "expected_s": {...}, "causes": [...], "ranks":
/// [...], "faster": [...], "notes": [...]}.
sim::ToldSection told_of(const Diagnosis& diagnosis);
const sim::Form<Diagnosis>& diagnosis_form();
nlohmann::ordered_json diagnosis_schema();
/// Broken and set below itself.
void say_item(sim::ToldSection& out, const char* name, std::size_t width, const std::string& text);
sim::Told diagnosis_page(const Diagnosis& diagnosis, const sim::Origin& origin);

}  // namespace stepcast::validate
