#include "sim/confidence/case.hpp"

namespace stepcast::sim {
namespace {

constexpr Bytes large = Bytes(1 << 20);  // below it latency decides, from it bandwidth

std::string reach_of(std::int64_t nodes) { return nodes > 1 ? "nodes" : "one node"; }

double beyond_measurements(const ProvenanceShares& shares) {
  return shares[static_cast<std::size_t>(Provenance::extrapolated)] +
         shares[static_cast<std::size_t>(Provenance::datasheet)];
}

}  // namespace

Case case_of(const StepReport& report) {
  const Scenario& s = report.scenario;
  Case out{s.node.gpu.architecture.name, s.software.framework, reach_of(s.nodes)};
  out.kind = kind_of(s);
  if (s.plan.tensor > s.node.gpus) out.reach = "tensor over nodes";
  const double step = seconds(report.step_time), compute = seconds(report.compute),
               exposed = seconds(report.exposed.total());
  if (step > 0) out.host = seconds(report.host) / step;
  const bool rccl = s.node.gpu.architecture.collectives == topology::CollectiveLibrary::rccl;
  if (compute + exposed > 0) {
    constexpr auto datasheet = static_cast<std::size_t>(Provenance::datasheet);
    const double network = rccl ? 1.0 : report.network_provenance[datasheet];
    out.guessed =
        (compute * report.kernel_provenance[datasheet] + exposed * network) / (compute + exposed);
    out.unmeasured = (compute * beyond_measurements(report.kernel_provenance) +
                      exposed * beyond_measurements(report.network_provenance)) /
                     (compute + exposed);
  }
  return out;
}

Case case_of_collective(const topology::Architecture& architecture, std::int64_t nodes, Bytes bytes,
                        Provenance provenance) {
  const bool beyond = provenance == Provenance::extrapolated || provenance == Provenance::datasheet;
  return {architecture.name,  bytes < large ? "below 1 MiB" : "from 1 MiB",
          reach_of(nodes),    0.0,
          beyond ? 1.0 : 0.0, dense_16_bit};
}

Case case_of(const CollectiveReport& report) {
  const Scenario& s = report.scenario;
  return case_of_collective(s.node.gpu.architecture, s.nodes,
                            s.collective ? s.collective->bytes : Bytes{}, report.time.provenance);
}

}  // namespace stepcast::sim
