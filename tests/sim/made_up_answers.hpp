// Reports with made-up numbers, for the tests of what prints and writes them.
#pragma once

#include "engine/check.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/table_view.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::sim {

inline StepReport made_up_report(const Scenario& scenario) {
  StepReport report;
  report.scenario = scenario;
  const auto ms = [](std::int64_t n) { return Duration(n * 1'000'000'000); };
  report.compute = ms(700);
  report.interference = ms(20);
  report.exposed = {ms(30), ms(20), ms(50)};
  report.bubble = ms(60);
  report.wait = ms(40);
  report.host = ms(100);
  report.step_time = ms(1000);
  report.communication = ms(400);
  const double tokens = static_cast<double>(scenario.global_batch * scenario.batch.sequence);
  report.tokens_per_second = tokens / seconds(report.step_time);
  report.model_flops_per_gpu = FlopsPerSecond(412.3e12);
  report.mfu = 0.4167;
  report.memory.parts = {{"parameters", 10_GiB}, {"activations", 30_GiB}};
  report.memory.allocated = report.memory.reserved = report.memory.held = 40_GiB;
  report.power_per_gpu = Watts(650);
  report.energy = Joules(650.0 * static_cast<double>(scenario.gpus));
  report.tokens_per_joule = tokens / report.energy.value;
  report.kernel_provenance[static_cast<std::size_t>(Provenance::interpolated)] = 0.75;
  report.kernel_provenance[static_cast<std::size_t>(Provenance::derived)] = 0.25;
  report.network_provenance[static_cast<std::size_t>(Provenance::model)] = 1.0;
  report.warnings = {"made up"};
  report.simulated_ranks = 2;
  report.events = 1234;
  return report;
}

inline CollectiveReport made_up_collective(const Scenario& scenario) {
  CollectiveReport report{scenario, {}};
  report.time.duration = Duration(1'500'000'000);  // 1.5 ms
  report.time.algorithm = Algorithm::ring;
  report.time.protocol = Protocol::simple;
  report.time.channels = 16;
  report.time.algbw = BytesPerSecond(44.7e9);
  report.time.busbw = BytesPerSecond(87.3e9);
  report.time.provenance = Provenance::model;
  return report;
}

inline Simulator made_up_simulator() { return {made_up_report, made_up_collective}; }

inline const Catalogue& shipped_catalogue() {
  static const Catalogue shipped(STEPCAST_SOURCE_DIR "/scenarios");
  return shipped;
}

inline Scenario read_shipped(const TomlValue& document) {
  return read_scenario(document, shipped_catalogue());
}

/// A table as --refused shows it.
inline TableView refused_shown() {
  constexpr Option options[] = {refused_option};
  return TableView(parse_arguments({"stepcast run", "", 0, "", options, ""}, {"--refused"}));
}

/// What --csv FILE asks for.
inline TableView csv_written() {
  return TableView(
      parse_arguments({"stepcast run", "", 0, "", table_options, ""}, {"--csv", "all.csv"}));
}

/// Every point of a scenario file's text.
inline Results results_of(const std::string& text,
                          const Simulator& simulator = made_up_simulator()) {
  static const std::atomic<bool> stop = false;
  return run_study(read_study(read_toml(text, "a.toml")),
                   {.read = read_shipped, .simulator = simulator, .stop = stop});
}

}  // namespace stepcast::sim
