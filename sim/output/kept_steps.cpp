#include "sim/output/kept_steps.hpp"

#include "sim/told/step_row.hpp"

namespace stepcast::sim {

std::optional<std::string> KeptSteps::row_of(const PointId& id) {
  const std::lock_guard lock(keeping_);
  if (const auto own = kept_.find(id); own != kept_.end()) return own->second;
  const KnownRow* known = folder_.find(id);
  if (known == nullptr) return std::nullopt;
  return known->place.file->read(known->place.offset, known->place.length);
}

void KeptSteps::keep(const PointId& id, std::string row) {
  const std::lock_guard lock(keeping_);
  if (!kept_.try_emplace(id, row).second) return;  // another thread was at it as well
  folder_.append(id, row);
}

StepReport KeptSteps::step(const Scenario& scenario) {
  StepReport report = session_.admit(scenario);
  const PointId id = folder_.id_of(scenario, {});
  if (const auto row = row_of(id)) {
    read_step_row(*row, report);
    const std::lock_guard lock(keeping_);
    ++recalled_;
    return report;
  }
  const std::size_t warnings = report.warnings.size();
  session_.simulate(scenario, report);
  keep(id, step_row(report, warnings));
  return report;
}

}  // namespace stepcast::sim
