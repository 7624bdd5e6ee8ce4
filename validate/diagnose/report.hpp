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
};

/// Beyond the forecast's error bar, or slower by a cause that is seen without the forecast.
bool is_slower(const Diagnosis& diagnosis);

/// "Slower than expected: 2.75 s a step where 1.64 s (1.50 to 1.85) is expected; ..."
std::string verdict_text(const Diagnosis& diagnosis);

/// As JSON {"verdict": ..., "measured_s": ..., "expected_s": {...}, "causes": [...], "ranks":
/// [...], "faster": [...], "notes": [...]}.
sim::ToldSection told_of(const Diagnosis& diagnosis);
const sim::Form<Diagnosis>& diagnosis_form();
nlohmann::ordered_json diagnosis_schema();
sim::Told diagnosis_page(const Diagnosis& diagnosis, const sim::Origin& origin);

}  // namespace stepcast::validate
