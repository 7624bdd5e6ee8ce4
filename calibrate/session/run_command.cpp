#include "calibrate/session/run_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "calibrate/session/session.hpp"
#include "calibrate/session/task_list.hpp"
#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"

namespace stepcast::calibrate {
namespace {

/// "12 of 80 tasks, 40 s left: gemm ..."
void show(sim::ProgressLine& line, const SessionProgress& p) {
  const auto now = sim::ProgressLine::Clock::now();
  if (p.task.empty()) return line.wipe();
  if (p.done > 0 && line.style() == sim::ProgressLine::Style::lines && !line.due(now)) return;
  const std::string left =
      p.left > Duration(0) ? ", " + sim::clock_text(seconds(p.left)) + " left" : "";
  line.show(fmt::format("{} of {} tasks{}: {}", p.done, p.total, left, p.task), now);
}

SessionOptions session_options(const RunRequest& request, const std::string& kind) {
  SessionOptions options;
  if (request.quick) {
    options.rule = quick_rule();
    options.warm_up = std::chrono::milliseconds(200);
    options.power_time = std::chrono::milliseconds(500);
  } else if (kind == "host") {
    // A shared machine is never as quiet as a GPU with fixed clocks: 0.5 % would end in time-outs.
    options.rule.timeout = std::chrono::seconds(5);
    options.rule.minimum_time = std::chrono::milliseconds(250);
  }
  options.seed = request.seed;
  options.out = request.out;
  options.resume = request.resume;
  options.date = request.date;
  options.command = request.command;
  options.gpus = request.facts.gpus;
  options.fabric = request.facts.fabric;
  if (request.facts.node_bandwidth) options.node_bandwidth = *request.facts.node_bandwidth;
  options.collective_timing = "wall";  // as nccl-tests: each rank's own clock round its calls
  return options;
}

/// A host runs a kernel on as many cores at once as a node of the scenarios has ranks.
DeviceOptions device_options(const RunRequest& request, const std::string& kind,
                             const std::vector<sim::Scenario>& scenarios) {
  DeviceOptions options = request.options;
  if (kind != "host" || options.ranks > 0) return options;
  for (const sim::Scenario& s : scenarios)
    options.ranks = std::max(options.ranks, std::min(s.gpus, s.node.gpus));
  return options;
}

}  // namespace

int run_calibration(const RunRequest& request, const sim::Catalogue& catalogue) {
  sim::stop_requested();  // before anything is read
  const std::string kind = request.device.empty() ? default_device() : request.device;
  const std::vector<sim::Scenario> scenarios = scenarios_in(request.scenarios, catalogue);
  const auto device = make_device(kind, device_options(request, kind, scenarios));
  const DeviceFacts facts = device->facts();
  const Bench bench{.gpu = kind != "host", .ranks = facts.ranks};
  const JobList list = request.scenarios.empty()
                           ? jobs_of(grid_for(kind, request.quick), bench, catalogue)
                           : jobs_of(scenarios, bench);
  sim::ProgressLine line("stepcast-calibrate: ", sim::ProgressLine::style_for(false));
  const SessionReport report =
      run_session(*device, list.jobs, session_options(request, kind), sim::stop_requested(),
                  wall_clock(), [&](const SessionProgress& progress) { show(line, progress); });
  sim::tell(request.report, to_text(report));
  if (!list.not_here.empty()) {
    sim::tell(request.report, fmt::format("{} not measurable here:\n", list.not_here.size()));
    for (const std::string& what : list.not_here) sim::tell(request.report, "  " + what + "\n");
  }
  const bool saved = report.saved_to.empty() && !report.lost;
  if (saved && !request.scratch && report.measured + report.known > 0)
    sim::tell(request.report, "table: " + request.out + "\n");
  if (!saved) return sim::exit_unwritten;
  if (report.interrupted) return sim::stop_code();
  return report.wrong.empty() ? sim::exit_ok : sim::exit_wrong_kernel;
}

}  // namespace stepcast::calibrate
