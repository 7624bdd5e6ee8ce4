#include "sim/compare/runner.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "engine/check.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"

namespace stepcast::sim {
namespace {

bool fits_in_memory(const StepReport& report) {
  return std::ranges::none_of(
      report.warnings, [](const std::string& warning) { return warning.ends_with("(ignored)"); });
}

}  // namespace

Runner::Runner(Session& session, const RunnerOptions& options)
    : Runner(session, options, std::make_shared<Confidence>(session)) {}

Runner::Runner(Session& session, const RunnerOptions& options,
               std::shared_ptr<Confidence> confidence)
    : session_(session),
      options_(options),
      confidence_(std::move(confidence)),
      simulator_(simulator_of(session, confidence_)) {}

Scenario Runner::read(const TomlValue& document) const {
  Scenario out = read_scenario(document, session_.catalogue());
  out.run.ignore_memory = options_.ignore_memory;
  return out;
}

Side Runner::side(Asked asked) {
  if (!asked.document) return *std::move(asked.known);
  return side_of(answer(read(*asked.document), simulator_), std::move(asked.name));
}

std::vector<Side> Runner::sides(std::vector<Asked> asked) {
  std::vector<std::optional<Side>> found(asked.size());
  std::vector<std::optional<InputError>> mistakes(asked.size());
  each(asked.size(), [&](std::size_t i) {
    const std::string name = asked[i].name;
    try {
      found[i].emplace(side(std::move(asked[i])));
    } catch (const InputError& error) {
      found[i].emplace(refused_side(error.what(), name));
      mistakes[i] = error;
    }
  });
  if (std::ranges::all_of(mistakes, [](const auto& mistake) { return mistake.has_value(); }))
    throw InputError(*mistakes.front());
  std::vector<Side> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    out.push_back(*std::move(found[i]));
    out.back().label = label_of(i);
  }
  return out;
}

std::vector<Outcome> Runner::outcomes(const std::vector<TomlValue>& documents) {
  std::vector<Outcome> out(documents.size());
  std::vector<double> tokens(documents.size());
  each(documents.size(), [&](std::size_t i) {
    try {
      Scenario scenario = read(documents[i]);
      scenario.run.ignore_memory = true;
      tokens[i] = static_cast<double>(scenario.global_batch * scenario.batch.sequence);
      const StepReport report = session_.step(scenario);
      out[i].step_ps = report.step_time.count();
      out[i].fits = fits_in_memory(report);
    } catch (const InputError& error) {
      out[i].reason = error.problem();
    }
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].step_ps && tokens[i] != tokens[0] && tokens[0] > 0)
      out[i].step_ps = std::llround(static_cast<double>(*out[i].step_ps) * tokens[0] / tokens[i]);
  return out;
}

std::optional<Order> Runner::order() {
  const Order* order = confidence_->order();
  return order != nullptr ? std::optional(*order) : std::nullopt;
}

void Runner::each(std::size_t count, const std::function<void(std::size_t)>& work) {
  Progress progress(count, options_.progress);
  std::mutex showing;
  std::size_t done = 0;
  const bool all = for_each_index(count, options_.threads, options_.stop, [&](std::size_t i) {
    work(i);
    const std::lock_guard lock(showing);
    progress.show(++done);
  });
  if (!all) throw Failure(static_cast<ExitCode>(stop_code()), "interrupted");
}

}  // namespace stepcast::sim
