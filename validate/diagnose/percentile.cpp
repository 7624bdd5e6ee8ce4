#include "validate/diagnose/percentile.hpp"

#include "engine/check.hpp"
#include "sim/confidence/confidence.hpp"

namespace stepcast::validate {

std::optional<double> slower_than_share(sim::StepReport report, double measured_s,
                                        sim::Session& session) {
  sim::Confidence confidence(session);
  std::optional<double> out;
  for (int percent = 50; percent < 100; ++percent) {
    const double level = percent / 100.0;
    report.scenario.run.confidence = level;
    report.step_bar.reset();
    try {
      confidence.judge(report);
    } catch (const InputError&) {
      break;  // so few sources assure no such level
    }
    if (!report.step_bar) break;
    if (measured_s <= report.step_bar->high * seconds(report.step_time)) break;
    out = level;
  }
  return out;
}

}  // namespace stepcast::validate
