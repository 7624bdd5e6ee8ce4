#include "validate/cluster/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "calibrate/host/facts.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/today.hpp"
#include "sim/run/session.hpp"
#include "validate/cluster/box.hpp"
#include "validate/cluster/fabric.hpp"
#include "validate/cluster/probe.hpp"
#include "validate/cluster/report.hpp"
#include "validate/cluster/simulated.hpp"
#include "validate/cluster/trained.hpp"
#include "validate/command/points.hpp"
#include "validate/trainer/run/results.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;
using sim::Arguments;
using stepcast::to_text;

constexpr std::int64_t default_steps = 25, default_warm_up = 5;

constexpr sim::Option options[] = {
    {"fabric", "WORD[,WORD]", "",
     "own (of the scenario), nonblocking, 2:1, 4:1, slow-nic; default: own"},
    {"compute", "kernels|waits", "",
     "waits: a kernel is a pause of its calibrated length (default where ranks outnumber cores)"},
    {"tolerance", "PERCENT", "", "exit code 5 when a step time is further off"},
    {"report", "DIR", "", "write a dated report into this folder"},
    {"table", "FILE.h5", "", "the kernels' calibration (default: the scenario's own, or host.h5)"},
    {"as-calibrated", "", "", "measure no kernel anew: the table is whole"},
    {"quick", "", "", "calibrate with few samples"},
    {"steps", "N", "", "steps to train at each point (default 25)"},
    {"warm-up", "N", "", "the first of them, not counted (default 5)"},
    {"parts", "", "", "every kind of kernel and collective of every step"},
    {"set", "KEY=VALUE", "", "set any key of the scenario; more may follow, or be repeated"},
    {"json", "", "", "print JSON"},
};

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
  ClusterRun(const Arguments& arguments, const sim::Catalogue& catalogue, std::string scratch)
      : arguments_(arguments),
        scratch_(std::move(scratch)),
        fabrics_(fabrics_of(arguments.get("fabric"))),
        session_(catalogue) {
    fs::create_directories(fs::path(scratch_) / "points");
    points_ = points_of(cluster_verb, arguments, scratch_, catalogue);
    refuse_untrainable();
    report_.compute = compute_word();
  }

  int run() {
    write_points(points_);
    if (points_.empty())
      throw InputError(arguments_.first("which scenario?"), "no point is run",
                       refused_.empty() ? "" : refused_.front().second);
    if (const int code = calibrate_points(arguments_, points_); code != sim::exit_ok) return code;
    std::map<NetworkKey, std::vector<const Point*>> networks;
    for (const Point& point : points_) networks[key_of(point)].push_back(&point);
    for (const auto& [key, points] : networks) {
      const auto rows = calibrated(*points.front(), points);
      for (const BoxFabric& fabric : fabrics_) {
        if (const auto why = why_not(fabric, points.front()->scenario)) {
          refused_.emplace_back(fmt::format("{} on {} nodes", fabric.word, key.nodes), *why);
          continue;
        }
        if (const int code = run_fabric(fabric, points, rows); code != sim::exit_ok) return code;
      }
    }
    report_.refused = refused_;
    return hand_in();
  }

 private:
  void refuse_untrainable() {
    std::erase_if(points_, [&](const Point& point) {
      try {
        check_trainable(point.scenario);
        return false;
      } catch (const InputError& error) {
        refused_.emplace_back(point.label, error.problem());
        return true;
      }
    });
  }

  /// A fabric that these nodes do not make.
  static std::optional<std::string> why_not(const BoxFabric& fabric,
                                            const sim::Scenario& scenario) {
    try {
      on_fabric(scenario, fabric);
      return std::nullopt;
    } catch (const InputError& error) {
      return error.problem();
    }
  }

  std::string compute_word() const {
    if (arguments_.has("compute")) return arguments_.choice("compute");
    const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
    const bool waits = std::ranges::any_of(
        points_, [&](const Point& point) { return point.scenario.plan.ranks() > cores; });
    return waits ? "waits" : "kernels";
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
    const Box box = box_of(scenario, plain, scratch_);
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
    const sim::Scenario scenario = on_fabric(points.front()->scenario, fabric);
    FabricReport& report = report_.fabrics.emplace_back();
    report.title =
        fmt::format("{}: {} nodes of {}", fabric.word, scenario.nodes, to_text(scenario.node.nic));
    const Box box = box_of(scenario, fabric, scratch_);
    report.paths = check_paths(box, cluster_of(scenario, fabric));
    report.alone = check_alone(box, fabric, points, rows);
    for (const Point* point : points) {
      std::fprintf(stderr, "%s: %s\n", report.title.c_str(), point->label.c_str());
      const SimulatedBox simulated(on_fabric(point->scenario, fabric), fabric, rows);
      SimulatedStep step = simulated.step(session_);
      if (const int code = train_in_box(box, *point, trainer_options()); code != sim::exit_ok)
        return code;
      report.steps.push_back(compare(*point, step));
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
        groups[group.nodes].add_all(group.sizes);
    const SimulatedBox simulated(on_fabric(points.front()->scenario, fabric), fabric, rows);
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

  std::vector<std::string> trainer_options() const {
    return {"--compute", report_.compute,
            "--steps",   std::to_string(arguments_.count("steps", default_steps)),
            "--warm-up", std::to_string(arguments_.count("warm-up", default_warm_up, 0))};
  }

  static RunComparison compare(const Point& point, const SimulatedStep& step) {
    const TrainerResults measured = read_results(point.file(".results.json"));
    const auto timelines = sim::read_timelines(point.file(".measured.json"));
    expects(timelines.size() == 1, "one measured step");
    return compare_run(point.label, measured, timelines.front(), step.report, step.timeline);
  }

  int hand_in() {
    const std::string text = text_of(report_, arguments_.has("parts"));
    std::fputs((arguments_.has("json") ? json_of(report_) + "\n" : text).c_str(), stdout);
    if (arguments_.has("report")) write_report(text);
    const auto tolerance = arguments_.share("tolerance");
    const bool within = !tolerance || worst_error(report_.steps()) <= *tolerance;
    return within ? sim::exit_ok : sim::exit_too_inaccurate;
  }

  void write_report(const std::string& text) const {
    const fs::path scenario = arguments_.positional()[0];
    std::error_code error;  // shows when the file is written
    fs::create_directories(arguments_.get("report"), error);
    double load[3] = {};
    getloadavg(load, 3);
    sim::write_whole(
        fs::path(arguments_.get("report")) /
            fmt::format("{}_{}.md", scenario.stem().string(), sim::today()),
        fmt::format("# A cluster in a box: {0}\n\nMeasured {1} (UTC) by `stepcast validate cluster "
                    "{0}` on {2} ({3} cores, kernel {4}, {5}, {6}), load average {7:.1f} at its "
                    "end.\n`error` is simulated over measured less one; `+-` is how much the "
                    "measured steps vary.\n\n```\n{8}```\n",
                    scenario.filename().string(), sim::today(), calibrate::host::processor_name(),
                    std::thread::hardware_concurrency(), calibrate::host::system_name(),
                    sim::first_line_of({"ip", "-V"}), calibrate::host::clocks(), load[0], text));
  }

  const Arguments& arguments_;
  const std::string scratch_;
  const std::vector<BoxFabric> fabrics_;
  sim::Session session_;
  std::vector<Point> points_;
  std::vector<std::pair<std::string, std::string>> refused_;
  ClusterReport report_;
};

}  // namespace

const sim::Verb cluster_verb{
    "stepcast validate cluster",
    "SCENARIO.toml",
    1,
    "Builds the scenario's cluster on this machine out of network namespaces and shaped links, "
    "measures it, trains in it and simulates the same.",
    options,
    "stepcast validate cluster scenarios/cluster_in_a_box.toml --fabric nonblocking,2:1,4:1"};

int command_cluster(const Arguments& arguments, const sim::Catalogue& catalogue) {
  // A mistake shows before anything is built.
  arguments.first("which scenario?");
  fabrics_of(arguments.get("fabric"));
  arguments.choice("compute");
  arguments.share("tolerance");
  if (arguments.count("warm-up", default_warm_up, 0) >= arguments.count("steps", default_steps))
    throw sim::UsageError("--warm-up leaves no step to count");
  if (const std::string missing = missing_tools(); !missing.empty())
    throw sim::Failure(sim::exit_skipped, "no cluster in a box here: " + missing);
  return run_apart(
      [&](const std::string& scratch) { return ClusterRun(arguments, catalogue, scratch).run(); });
}

}  // namespace stepcast::validate
