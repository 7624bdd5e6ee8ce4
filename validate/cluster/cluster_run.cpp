#include "validate/cluster/cluster_run.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "validate/cluster/box.hpp"
#include "validate/cluster/jobs.hpp"
#include "validate/cluster/probe.hpp"
#include "validate/cluster/simulated.hpp"
#include "validate/cluster/trained.hpp"
#include "validate/trainer/run/results.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

/// Nodes and NICs of points that one box can hold.
struct NetworkKey {
  std::int64_t nodes = 0;
  double nic = 0.0;
  friend auto operator<=>(const NetworkKey&, const NetworkKey&) = default;
};
NetworkKey key_of(const Point& point) {
  return {point.scenario.nodes, point.scenario.node.nic.value};
}

class ClusterRun {
 public:
  ClusterRun(const ClusterPlan& plan, sim::Session& session, ClusterReport& report)
      : plan_(plan), session_(session), report_(report) {}

  int run() {
    std::map<NetworkKey, std::vector<const Point*>> networks;
    for (const Point& point : plan_.points) networks[key_of(point)].push_back(&point);
    for (const auto& [key, points] : networks) {
      const auto rows = calibrated(*points.front(), points);
      for (const BoxFabric& fabric : plan_.fabrics) {
        if (const auto why = why_not(fabric, points.front()->scenario)) {
          report_.refused.emplace_back(
              fmt::format("{} on {} nodes", fabric.word, plan_.jobs * key.nodes), *why);
          continue;
        }
        if (const int code = run_fabric(fabric, points, rows); code != sim::exit_ok) return code;
      }
    }
    return sim::exit_ok;
  }

 private:
  /// A fabric that these nodes do not make.
  std::optional<std::string> why_not(const BoxFabric& fabric, const sim::Scenario& job) const {
    try {
      box_for(job, plan_.jobs, fabric);
      return std::nullopt;
    } catch (const InputError& error) {
      return error.problem();
    }
  }

  static Box box_of(const sim::Scenario& scenario, const BoxFabric& fabric,
                    const std::string& scratch) {
    return Box(plan_of(cluster_of(scenario, fabric), scenario.origin), scratch);
  }

  /// The collectives of all points alone, behind one switch, by the number of ranks.
  std::vector<sim::CollectiveRow> calibrated(const Point& first,
                                             const std::vector<const Point*>& points) {
    const BoxFabric plain = fabrics_of("nonblocking").front();
    const sim::Scenario scenario = on_fabric(first.scenario, plain);
    std::fprintf(stderr, "collectives on %lld nodes of %s\n",
                 static_cast<long long>(scenario.nodes), to_text(scenario.node.nic).c_str());
    const Box box = box_of(scenario, plain, plan_.scratch);
    std::map<std::int64_t, calibrate::CollectiveSizes> by_ranks;
    for (const Point* point : points)
      for (const GroupCalls& group : groups_of(point->scenario))
        by_ranks[std::ssize(group.nodes)].add_all(group.sizes);
    std::vector<sim::CollectiveRow> rows;
    for (const auto& [ranks, sizes] : by_ranks) {
      std::vector<std::int64_t> nodes;
      for (std::int64_t n = 0; n < ranks; ++n) nodes.push_back(n);
      const auto tasks = sizes.tasks(ranks);
      const auto more = rows_of(tasks, measure_collectives(box, nodes, tasks), ranks);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  }

  int run_fabric(const BoxFabric& fabric, const std::vector<const Point*>& points,
                 const std::vector<sim::CollectiveRow>& rows) {
    const sim::Scenario scenario = box_for(points.front()->scenario, plan_.jobs, fabric);
    FabricReport& report = report_.fabrics.emplace_back();
    report.title =
        fmt::format("{}: {} nodes of {}", fabric.word, scenario.nodes, to_text(scenario.node.nic));
    const Box box = box_of(scenario, fabric, plan_.scratch);
    report.paths = check_paths(box, cluster_of(scenario, fabric));
    report.alone = check_alone(box, fabric, points, rows);
    for (const Point* point : points) {
      sim::tell(stderr, report.title + ": " + point->label + "\n");
      if (const int code = run_point(box, fabric, *point, rows, report); code != sim::exit_ok)
        return code;
    }
    return sim::exit_ok;
  }

  int run_point(const Box& box, const BoxFabric& fabric, const Point& point,
                const std::vector<sim::CollectiveRow>& rows, FabricReport& report) {
    const SimulatedBox simulated(point.scenario, fabric, rows, plan_.jobs);
    const BoxStep step = simulated.step(*session_.kernels(point.scenario));
    std::vector<TrainedJob> jobs;
    for (std::int64_t j = 0; j < plan_.jobs; ++j)
      jobs.push_back({nodes_of_job(j, plan_.jobs, point.scenario.plan.ranks()),
                      point.file(fmt::format(".{}.results.json", j).c_str()),
                      point.file(fmt::format(".{}.measured.json", j).c_str())});
    const int code = train_in_box(box, point.file(".toml"), jobs, plan_.trainer_options);
    if (code != sim::exit_ok) return code;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const std::string which =
          jobs.size() > 1 ? fmt::format(", job {} of {}", j + 1, jobs.size()) : "";
      report.steps.push_back(compare(point.label + which, jobs[j], step));
    }
    return sim::exit_ok;
  }

  /// Neighbours one after the other, then every node to one of the other half at once.
  static std::vector<PathCheck> check_paths(const Box& box, const topology::Cluster& cluster) {
    std::vector<PathCheck> checks;
    const std::int64_t n = box.plan().nodes;
    std::vector<std::pair<std::int64_t, std::int64_t>> across;
    for (std::int64_t i = 0; i < n; ++i) across.emplace_back(i, (i + n / 2) % n);
    std::vector<std::pair<std::int64_t, std::int64_t>> alone{{0, 1}, {n - 2, n - 1}};
    if (n == 2) alone.pop_back();
    for (const auto& pair : alone) {
      const PathSpeed speed = measure_paths(box, {pair}).front();
      checks.push_back({fmt::format("node {} to {}", pair.first, pair.second),
                        expected_rate(cluster, {pair}), speed.rate, speed.latency});
    }
    BytesPerSecond sum{};
    for (const PathSpeed& speed : measure_paths(box, across)) sum = sum + speed.rate;
    checks.push_back({fmt::format("{} nodes to the other half at once", n),
                      expected_rate(cluster, across),
                      sum,
                      {}});
    return checks;
  }

  std::vector<AloneCheck> check_alone(const Box& box, const BoxFabric& fabric,
                                      const std::vector<const Point*>& points,
                                      const std::vector<sim::CollectiveRow>& rows) const {
    std::map<std::vector<std::int64_t>, calibrate::CollectiveSizes> groups;
    for (const Point* point : points)
      for (const GroupCalls& group : groups_of(point->scenario))
        groups[first_job(group.nodes)].add_all(group.sizes);
    const SimulatedBox simulated(points.front()->scenario, fabric, rows, plan_.jobs);
    std::vector<AloneCheck> checks;
    for (const auto& [nodes, sizes] : groups) {
      const auto tasks = sizes.largest(std::ssize(nodes));
      const auto times = measure_collectives(box, nodes, tasks);
      for (std::size_t i = 0; i < tasks.size(); ++i)
        checks.push_back({fmt::format("{} of {}, nodes {}", tasks[i].collective,
                                      to_text(tasks[i].bytes), fmt::join(nodes, " ")),
                          {"", 1, times[i], simulated.time_of(tasks[i], nodes)}});
    }
    return checks;
  }

  /// The nodes of ranks of the first job.
  std::vector<std::int64_t> first_job(std::vector<std::int64_t> ranks) const {
    for (std::int64_t& rank : ranks) rank = nodes_of_job(0, plan_.jobs, rank + 1).back();
    return ranks;
  }

  static RunComparison compare(const std::string& label, const TrainedJob& job,
                               const BoxStep& step) {
    const TrainerResults measured = read_results(job.results);
    const auto timelines = sim::read_timelines(job.timeline);
    expects(timelines.size() == 1, "one measured step");
    return compare_run(label, measured, timelines.front(), step.report, step.timeline);
  }

  const ClusterPlan& plan_;
  sim::Session& session_;
  ClusterReport& report_;
};

}  // namespace

int run_cluster(const ClusterPlan& plan, sim::Session& session, ClusterReport& report) {
  return ClusterRun(plan, session, report).run();
}

}  // namespace stepcast::validate
