#include "calibrate/import/nccl_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "calibrate/import/collective_case.hpp"
#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/network/nccl/choice.hpp"
#include "sim/network/search/graph.hpp"

namespace stepcast::calibrate {
namespace {

using workloads::CollectiveKind;

// Where one term alone is left: nothing is smaller than NCCL's first size of Tree's table, and
// beyond 16 GiB no factor depends on the size any more.
constexpr Bytes shortest{64};
constexpr Bytes longest{std::int64_t{16} << 30};

CollectiveKind kind_of(const std::string& collective) {
  sim::CollectiveRow row;
  row.collective = collective;
  return calibrate::kind_of(row);
}

/// Our restatement for one communicator.
class Restated {
 public:
  Restated(const sim::NcclTuning& tuning, const topology::NodeSpec& node, std::int64_t ranks,
           std::int64_t nodes)
      : tuning_(tuning),
        machine_(sim::nccl_machine(
            node, {.ranks = ranks, .nodes = nodes, .ranks_per_node = ranks / nodes})) {}

  std::optional<sim::NcclOption> option(const std::string& collective, const std::string& algorithm,
                                        const std::string& protocol, Bytes bytes) const {
    for (const sim::NcclOption& option : options(collective, bytes))
      if (sim::name_of(option.algorithm) == algorithm && sim::name_of(option.protocol) == protocol)
        return option;
    return std::nullopt;
  }

  NcclFigures figures(const std::string& collective, const std::string& algorithm,
                      const std::string& protocol) const {
    const auto small = option(collective, algorithm, protocol, shortest);
    const auto large = option(collective, algorithm, protocol, longest);
    if (!small || !large) return {};
    return {small->estimate - shortest / small->bandwidth, large->bandwidth};
  }

  std::vector<sim::NcclOption> options(const std::string& collective, Bytes bytes) const {
    return sim::nccl_options(tuning_, machine_, {.kind = kind_of(collective), .bytes = bytes});
  }

  std::string choice(const std::string& collective, Bytes bytes) const {
    const auto best =
        sim::nccl_choice(tuning_, machine_, {.kind = kind_of(collective), .bytes = bytes});
    return fmt::format("{} {}", sim::name_of(best.algorithm), sim::name_of(best.protocol));
  }

  /// NCCL's time by its own figures, with the size's influence on them as we restate it.
  double seconds_of(const TuningLine& line, Bytes bytes) const {
    double latency = seconds(line.nccl.latency), bandwidth = line.nccl.bandwidth.value;
    const auto here = option(line.collective, line.algorithm, line.protocol, bytes);
    if (here && line.ours.bandwidth.value > 0 && line.ours.latency > Duration(0)) {
      latency *= seconds(here->estimate - bytes / here->bandwidth) / seconds(line.ours.latency);
      bandwidth *= here->bandwidth / line.ours.bandwidth;
    }
    return latency + static_cast<double>(bytes.value) / bandwidth;
  }

 private:
  const sim::NcclTuning& tuning_;
  sim::NcclMachine machine_;
};

struct JobShape {
  std::string nccl;
  std::int64_t ranks = 0, nodes = 0;
  friend auto operator<=>(const JobShape&, const JobShape&) = default;

  template <class Row>
  bool is_of(const Row& row) const {
    return row.nccl == nccl && row.ranks == ranks && row.nodes == nodes;
  }
};

std::vector<TuningLine> figure_lines(const sim::CalibrationTable& table, const JobShape& shape,
                                     const Restated& ours) {
  std::vector<TuningLine> lines;
  std::set<std::string> collectives;
  for (const sim::NcclTuningRow& row : table.nccl_tuning) {
    if (!shape.is_of(row)) continue;
    collectives.insert(row.collective);
    lines.push_back({row.collective,
                     row.algorithm,
                     row.protocol,
                     {row.latency, row.bandwidth},
                     ours.figures(row.collective, row.algorithm, row.protocol)});
  }
  // What we take NCCL to offer, and it does not.
  for (const std::string& collective : collectives)
    for (const sim::NcclOption& option : ours.options(collective, longest)) {
      const std::string algorithm(sim::name_of(option.algorithm));
      const std::string protocol(sim::name_of(option.protocol));
      const bool known = std::any_of(lines.begin(), lines.end(), [&](const TuningLine& line) {
        return line.collective == collective && line.algorithm == algorithm &&
               line.protocol == protocol;
      });
      if (!known)
        lines.push_back(
            {collective, algorithm, protocol, {}, ours.figures(collective, algorithm, protocol)});
    }
  std::sort(lines.begin(), lines.end(), [](const TuningLine& a, const TuningLine& b) {
    return std::tie(a.collective, a.algorithm, a.protocol) <
           std::tie(b.collective, b.algorithm, b.protocol);
  });
  return lines;
}

/// What NCCL's table makes it choose. Empty when the table has nothing of this collective.
std::string chosen_by_table(const std::vector<TuningLine>& lines, const std::string& collective,
                            Bytes bytes, const Restated& ours) {
  double least = std::numeric_limits<double>::infinity();
  std::string best;
  for (const TuningLine& line : lines) {
    if (line.collective != collective || line.nccl.bandwidth.value == 0) continue;
    const double time = ours.seconds_of(line, bytes);
    if (time >= least) continue;
    least = time;
    best = line.algorithm + " " + line.protocol;
  }
  return best;
}

std::vector<ChoiceLine> choice_lines(const sim::CalibrationTable& table, const JobShape& shape,
                                     const std::vector<TuningLine>& figures, const Restated& ours) {
  std::vector<ChoiceLine> lines;
  std::set<std::string> collectives;
  for (const TuningLine& line : figures) collectives.insert(line.collective);
  for (const std::string& collective : collectives)
    for (Bytes bytes{4096}; bytes <= Bytes{1 << 30}; bytes = bytes * 4)
      lines.push_back({collective, bytes, false, chosen_by_table(figures, collective, bytes, ours),
                       ours.choice(collective, bytes)});
  for (const sim::NcclChoiceRow& row : table.nccl_choices)
    if (shape.is_of(row) && row.collective != "alltoall" && row.collective != "sendrecv")
      lines.push_back({row.collective, row.bytes, true, row.algorithm + " " + row.protocol,
                       ours.choice(row.collective, row.bytes)});
  return lines;
}

std::string microseconds(const NcclFigures& figures) {
  return figures.bandwidth.value == 0 ? "-" : fmt::format("{:.1f}", seconds(figures.latency) * 1e6);
}
std::string gigabytes(const NcclFigures& figures) {
  return figures.bandwidth.value == 0 ? "-" : fmt::format("{:.1f}", figures.bandwidth.value / 1e9);
}

}  // namespace

std::vector<TuningComparison> compare_tuning(const sim::CalibrationTable& table,
                                             const topology::NodeSpec& node,
                                             const std::string& directory) {
  std::set<JobShape> shapes;
  for (const auto& row : table.nccl_tuning) shapes.insert({row.nccl, row.ranks, row.nodes});
  for (const auto& row : table.nccl_choices) shapes.insert({row.nccl, row.ranks, row.nodes});
  std::vector<TuningComparison> comparisons;
  for (const JobShape& shape : shapes) {
    const sim::NcclTuning tuning = sim::nccl_tuning_of(directory, shape.nccl, "NCCL of the log");
    const Restated ours(tuning, node, shape.ranks, shape.nodes);
    TuningComparison comparison{.nccl = shape.nccl,
                                .key = tuning.version,
                                .node = node.name,
                                .ranks = shape.ranks,
                                .nodes = shape.nodes,
                                .figures = figure_lines(table, shape, ours),
                                .choices = {}};
    comparison.choices = choice_lines(table, shape, comparison.figures, ours);
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

std::string to_text(const TuningComparison& comparison) {
  using Align = sim::TextTable::Align;
  std::string text =
      fmt::format("NCCL {}, {} ranks on {} nodes; ours: {}, constants of {}\n\n", comparison.nccl,
                  comparison.ranks, comparison.nodes, comparison.node, comparison.key);
  sim::TextTable figures;
  for (const char* heading : {"collective", "algorithm", "protocol"})
    figures.column(heading, "", Align::left);
  figures.column("latency", "NCCL us");
  figures.column("latency", "ours us");
  figures.column("bandwidth", "NCCL GB/s");
  figures.column("bandwidth", "ours GB/s");
  for (const TuningLine& line : comparison.figures)
    figures.row({line.collective, line.algorithm, line.protocol, microseconds(line.nccl),
                 microseconds(line.ours), gigabytes(line.nccl), gigabytes(line.ours)});
  sim::TextTable choices;
  choices.column("collective", "", Align::left);
  choices.column("size");
  for (const char* heading : {"NCCL", "ours", "from", "agree"})
    choices.column(heading, "", Align::left);
  std::size_t agreed = 0;
  for (const ChoiceLine& line : comparison.choices) {
    if (line.agree()) ++agreed;
    choices.row({line.collective, to_text(line.bytes), line.nccl, line.ours,
                 line.logged ? "call" : "table", line.agree() ? "yes" : "NO"});
  }
  if (!comparison.figures.empty()) text += figures.text() + "\n";
  return text + choices.text() +
         fmt::format("\n{} of {} choices agree\n", agreed, comparison.choices.size());
}

}  // namespace stepcast::calibrate
