#include "sim/why/logged_step.hpp"

#include <fmt/format.h>

#include <numeric>

#include "engine/check.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

// Of all simulated ranks in a step. A call takes about 30 bytes over the steps that are run.
constexpr std::int64_t most_calls = 20'000'000;

void check_size(const engine::System& system, const Scenario& scenario) {
  std::vector<std::int64_t> calls;
  for (const engine::Program& role : system.roles) {
    std::int64_t& sum = calls.emplace_back();
    engine::each_call(role, [&](const engine::Instruction&, std::int64_t times) { sum += times; });
  }
  std::int64_t all = 0;
  for (const std::uint32_t role : system.role_of_rank) all += calls[role];
  if (all <= most_calls) return;
  throw InputError(scenario.origin,
                   fmt::format("{} ranks make {} calls in a step, {} can be looked into",
                               grouped(system.num_ranks()), grouped(all), grouped(most_calls)),
                   scenario.run.fold ? "fewer micro-batches" : "leave out --no-fold");
}

}  // namespace

engine::Fold folded(const engine::System& system, const engine::Classes& classes, bool fold) {
  if (fold) return engine::fold(system, classes);
  engine::Fold out{system, std::vector<std::uint32_t>(system.num_ranks()),
                   std::vector<std::int64_t>(system.num_ranks(), 1)};
  std::iota(out.representative.begin(), out.representative.end(), std::uint32_t{0});
  return out;
}

LoggedStep::LoggedStep(const Scenario& scenario, Session& session)
    : scenario_(scenario), bound_(session.bound_step(scenario)) {
  const engine::System& system = bound_.step.system;
  classes_ = bound_.step.layout->classes_of(system);
  fold_ = folded(system, *classes_, scenario.run.fold);
  first_ = fold_.first();
  check_size(fold_.system, scenario);
  const bool cold = scenario.run.steps == Steps::cold;
  log_ = std::make_unique<engine::StepLog>(fold_.system, cold);
  result_ = engine::run(fold_.system, {.cold = cold}, log_.get());
  log_->ended_with(result_);
}

}  // namespace stepcast::sim
