#include "validate/cluster/simulated.hpp"

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "validate/cluster/jobs.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {
namespace {

std::shared_ptr<const sim::Network> network_of(const sim::Scenario& scenario,
                                               const BoxFabric& fabric,
                                               const std::vector<sim::CollectiveRow>& rows) {
  sim::CalibrationTable table;
  table.collectives = rows;
  auto wiring = std::make_shared<const sim::Wiring>(cluster_of(scenario, fabric));
  return std::make_shared<const sim::Network>(
      sim::make_network(scenario, std::move(wiring), std::nullopt, table));
}

}  // namespace

std::vector<GroupCalls> groups_of(const sim::Scenario& s) {
  const auto program =
      workloads::make_repeating_program(s.model, s.plan, s.batch, s.precision, s.software);
  std::map<std::vector<std::int64_t>, calibrate::CollectiveSizes> groups;
  for (const workloads::Collective& c : program.collectives) {
    const auto members = workloads::groups(s.plan, c.group);
    if (members.empty() || members.front().size() < 2 || c.bytes.value == 0) continue;
    groups[members.front()].add(c.kind, c.bytes);
  }
  std::vector<GroupCalls> out;
  for (auto& [nodes, sizes] : groups) out.push_back({nodes, std::move(sizes)});
  return out;
}

std::vector<sim::CollectiveRow> rows_of(const std::vector<calibrate::CollectiveTask>& tasks,
                                        const std::vector<Duration>& times, std::int64_t nodes) {
  std::vector<sim::CollectiveRow> rows;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    sim::CollectiveRow row;
    row.gpu = "host-core";
    row.dtype = "fp32";
    row.collective = tasks[i].collective;
    row.ranks = row.nodes = nodes;
    row.gpus_per_node = 1;
    row.bytes = tasks[i].bytes;
    row.duration = times[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

BytesPerSecond expected_rate(const topology::Cluster& cluster,
                             const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  const topology::StaticRouter router(cluster);
  std::map<topology::LinkId, double> flows;
  std::vector<topology::Path> paths;
  for (const auto& [from, to] : pairs)
    for (const topology::LinkId link :
         paths.emplace_back(router.path(cluster.nic(from, 0), cluster.nic(to, 0), 0)))
      flows[link] += 1;
  double sum = 0;
  for (const topology::Path& path : paths) {
    double rate = cluster.node().nic.value;
    for (const topology::LinkId link : path)
      rate = std::min(rate, cluster.links()[link].bandwidth.value / flows.at(link));
    sum += rate;
  }
  return BytesPerSecond(sum);
}

SimulatedBox::SimulatedBox(const sim::Scenario& job, const BoxFabric& fabric,
                           const std::vector<sim::CollectiveRow>& rows, std::int64_t jobs)
    : job_(job), jobs_(jobs), network_(network_of(box_for(job, jobs, fabric), fabric, rows)) {}

BoxStep SimulatedBox::step(const sim::KernelModel& kernels) const {
  BoxStep out;
  out.report = sim::admitted(job_);
  auto program = workloads::make_repeating_program(job_.model, job_.plan, job_.batch,
                                                   job_.precision, job_.software);
  sim::BoundStep bound = sim::bind_step(job_, std::move(program), network_, kernels);
  if (jobs_ > 1) multiply(bound, jobs_);
  sim::simulate(out.report, std::move(bound), &out.timeline);
  return out;
}

Duration SimulatedBox::time_of(const calibrate::CollectiveTask& task,
                               const std::vector<std::int64_t>& nodes) const {
  const auto kind = sim::collective_named(task.collective);
  expects(kind.has_value(), "a collective");
  const auto alone =
      network_->model->time_of(sim::plain_collective(*kind, task.bytes, workloads::Dtype::fp32),
                               sim::shape_of(network_->cluster(), nodes));
  Duration longest = alone.duration;
  for (const sim::LinkLoad& load : network_->model->loads_of({*kind, alone.algorithm}, nodes)) {
    const double bytes = load.bytes_per_byte * static_cast<double>(task.bytes.value);
    const BytesPerSecond rate = network_->cluster().links()[load.link].bandwidth;
    longest = std::max(longest, to_duration(bytes / rate.value));
  }
  return longest;
}

}  // namespace stepcast::validate
