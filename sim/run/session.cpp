#include "sim/run/session.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/run/folded_step.hpp"
#include "sim/run/measured_machine.hpp"
#include "sim/tables/calibration_file.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

// A sweep goes through its slowest key last, so that neighbours share; a search has one machine. A
// cluster of 2,048 GPUs takes some megabytes.
constexpr std::size_t most_files = 16, most_tables = 16, most_wirings = 16, most_networks = 16,
                      most_kernels = 64;

// Points that differ in the machine alone have one program: what-ifs, the causes of a step, sweeps
// of GPUs and fabrics. One takes up to a megabyte.
constexpr std::size_t most_programs = 8;

// Layouts of fewer GPUs are soon made, and are kept for the next step.
constexpr std::int64_t least_folded_from_the_start = 4096;

bool on_host(const Scenario& s) { return s.node.gpu.architecture.host; }

}  // namespace

Session::Session(const Catalogue& catalogue)
    : catalogue_(catalogue),
      files_(most_files),
      tables_(most_tables),
      kin_rows_(1),
      wirings_(most_wirings),
      networks_(most_networks),
      kernels_(most_kernels),
      programs_(most_programs) {}

std::shared_ptr<const CalibrationTable> Session::tables(const std::vector<std::string>& names) {
  if (names.size() == 1) return files_.get(names.front(), [&] { return read_calibrations(names); });
  return tables_.get(names, [&] {
    CalibrationTable all;
    for (const std::string& name : names) all = merge(std::move(all), *tables({name}));
    return all;
  });
}

std::shared_ptr<const CalibrationTable> Session::rows_for(const Scenario& s) {
  if (s.tables != std::vector<std::string>{"published"}) return tables(s.tables);
  std::vector<std::string> kin{s.node.gpu.name};
  for (const topology::GpuRelative& relative : s.node.gpu.relatives) kin.push_back(relative.name);
  std::ranges::sort(kin);
  kin.erase(std::unique(kin.begin(), kin.end()), kin.end());
  bool first = true;
  {
    const std::lock_guard lock(choosing_);
    if (first_kin_.empty()) first_kin_ = kin;
    first = first_kin_ == kin;
  }
  if (!first) return tables(s.tables);
  return kin_rows_.get(kin, [&] {
    return read_published(
        [&](std::string_view gpu) { return kinship(gpu, s.node.gpu) != Kinship::foreign; });
  });
}

std::shared_ptr<const Network> Session::network(const Scenario& s) {
  const WiringKey wiring{s.node, s.nodes, s.fabric};
  const NetworkKey key{wiring,           s.nccl,   s.exchange,
                       s.nccl_overrides, s.tables, on_host(s) ? s.origin : ""};
  return networks_.get(key, [&] {
    auto wires = wirings_.get(wiring, [&] { return Wiring(s.node, s.nodes, s.fabric, s.origin); });
    std::optional<NcclFacts> nccl;
    if (!on_host(s)) nccl = catalogue_.nccl(s.nccl, s.origin);
    if (nccl && !s.exchange.empty())
      nccl->exchanges = chosen_exchange_kernels(catalogue_.exchanges(), s.exchange, s.origin);
    return make_network(s, std::move(wires), std::move(nccl), *rows_for(s));
  });
}

std::shared_ptr<const KernelModel> Session::kernels(const Scenario& s) {
  const topology::HostShare host = topology::host_share(s.node);
  workloads::Software software;  // what kernels depend on: frameworks share the rest
  software.attention.kernel = s.software.attention.kernel;
  software.fusion = s.software.fusion;
  return kernels_.get(KernelsKey{s.node.gpu, software, s.tables, host},
                      [&] { return CalibratedKernels(*rows_for(s), s.node.gpu, software, host); });
}

std::shared_ptr<const workloads::StepProgram> Session::program(const Scenario& s) {
  return programs_.get(ProgramKey{s.model, s.plan, s.batch, s.precision, s.software}, [&] {
    return workloads::make_repeating_program(s.model, s.plan, s.batch, s.precision, s.software);
  });
}

namespace {

/// A time beyond the clock comes from what the scenario says: names it.
template <class Answer>
auto within_clock(const Scenario& scenario, Answer answer) {
  try {
    return answer();
  } catch (const BeyondClock& error) {
    throw InputError(scenario.origin, error.what(),
                     "is a rate far too low, or a size or latency far too large?");
  }
}

}  // namespace

const MemoryOdds& Session::memory_odds() {
  std::call_once(odds_read_, [&] {
    const auto rows = [&](const char* file) {
      const std::string path = catalogue_.directory() + "/confidence/" + file;
      std::error_code error;
      return std::filesystem::exists(path, error) ? read_residuals(path) : std::vector<Residual>{};
    };
    odds_ = MemoryOdds(rows("memory.csv"), rows("died.csv"), rows("fitted.csv"));
  });
  return odds_;
}

StepReport Session::admitted_here(const Scenario& scenario) {
  StepReport report = admitted(scenario, [&]() -> const MemoryOdds& { return memory_odds(); });
  const auto network = this->network(scenario);
  report.warnings.insert(report.warnings.end(), network->warnings.begin(), network->warnings.end());
  use_measurements(report.scenario, *rows_for(scenario));
  return report;
}

/// `report.scenario` has the measurements of the tables, `scenario` is what networks are kept by.
void Session::simulate_here(const Scenario& scenario, StepReport& report, Timeline* timeline,
                            const TimelineApproval& approval) {
  const Scenario& s = report.scenario;
  const std::shared_ptr<const workloads::StepProgram> program = this->program(s);
  const std::shared_ptr<const Network> network = this->network(scenario);
  const std::shared_ptr<const KernelModel> kernels = this->kernels(s);
  if (timeline == nullptr && s.gpus >= least_folded_from_the_start && !asks_for_the_whole(s))
    if (auto folded = fold_from_the_start(s, *program, *network, *kernels))
      return simulate_folded(report, std::move(*folded));
  sim::simulate(report, bind_step(s, *program, network, *kernels), timeline, approval);
}

StepReport Session::admit(const Scenario& scenario) {
  return within_clock(scenario, [&] { return admitted_here(scenario); });
}

void Session::simulate(const Scenario& scenario, StepReport& admitted) {
  within_clock(scenario, [&] { simulate_here(scenario, admitted, nullptr, {}); });
}

StepReport Session::step(const Scenario& scenario) {
  StepReport report = admit(scenario);
  simulate(scenario, report);
  return report;
}

StepReport Session::timeline(const Scenario& scenario, Timeline& timeline,
                             const TimelineApproval& approval) {
  StepReport report = admit(scenario);
  within_clock(scenario, [&] { simulate_here(scenario, report, &timeline, approval); });
  return report;
}

BoundStep Session::bound_step(const Scenario& scenario) {
  check_budget(scenario);
  return within_clock(scenario, [&] {
    Scenario measured = scenario;
    use_measurements(measured, *rows_for(scenario));
    auto program = workloads::make_step_program(measured.model, measured.plan, measured.batch,
                                                measured.precision, measured.software);
    return bind_step(measured, std::move(program), network(scenario), *kernels(measured));
  });
}

CollectiveReport Session::collective(const Scenario& scenario) {
  return within_clock(scenario, [&] { return simulate_collective(scenario, *network(scenario)); });
}

}  // namespace stepcast::sim
