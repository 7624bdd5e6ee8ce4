#include "calibrate/import/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/names.hpp"

namespace stepcast::calibrate {
namespace {

std::string text_of(std::int64_t number) { return std::to_string(number); }

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// What the header says of the group; checked to be whole.
struct Group {
  std::int64_t ranks = 0, nodes = 0, processes = 0;
};

/// Ranks, nodes and processes of the devices that the header lists. Where one process drives
/// several GPUs, JSON lists the first of each process only.
Group group_of(const NcclTestsRun& run) {
  std::map<std::string, std::int64_t> devices_on;
  std::map<std::string, std::string> host_of;
  std::set<std::int64_t> ranks;
  for (const NcclTestsDevice& device : run.devices) {
    if (device.group != run.devices.front().group)
      run.fail(device.line, "several groups ran at once and shared links",
               "import a run without NCCL_TESTS_SPLIT");
    if (!ranks.insert(device.rank).second)
      run.fail(device.line, "rank " + text_of(device.rank) + " is listed twice");
    ++devices_on[device.process];
    host_of[device.process] = device.host;
  }
  const auto processes = static_cast<std::int64_t>(devices_on.size());
  const bool first_only = std::all_of(devices_on.begin(), devices_on.end(),
                                      [](const auto& entry) { return entry.second == 1; });
  Group group{.processes = processes};
  group.ranks = first_only && run.gpus_per_process > 0 ? processes * run.gpus_per_process
                                                       : static_cast<std::int64_t>(ranks.size());
  std::map<std::string, std::int64_t> ranks_on;
  for (const auto& [process, host] : host_of) ranks_on[host] += group.ranks / processes;
  group.nodes = static_cast<std::int64_t>(ranks_on.size());
  if (*ranks.rbegin() >= group.ranks)
    run.fail(
        run.devices.back().line,
        "rank " + text_of(*ranks.rbegin()) + " in a list of " + text_of(group.ranks) + " devices",
        "was the log cut?");
  for (const auto& [host, count] : ranks_on)
    if (count * group.nodes != group.ranks)
      run.fail(run.devices.front().line,
               "host " + host + " has " + text_of(count) + " of " + text_of(group.ranks) +
                   " ranks on " + text_of(group.nodes) + " hosts",
               "only equal numbers on every host are understood");
  return group;
}

/// The numbers of ranks that the figures of a run leave open; all of a table say the same.
struct RankRange {
  double low = 2, high = std::numeric_limits<double>::infinity();

  bool holds(std::int64_t ranks) const {
    return low <= static_cast<double>(ranks) && static_cast<double>(ranks) <= high;
  }
  std::optional<std::int64_t> only() const {
    return low == high ? std::optional(static_cast<std::int64_t>(low)) : std::nullopt;
  }
  std::string text() const {
    if (low > high) return "no number of ranks";
    if (low == high) return fmt::format("{:.0f} ranks", low);
    if (std::isinf(high)) return fmt::format("{:.0f} ranks or more", low);
    return fmt::format("{:.0f} to {:.0f} ranks", low, high);
  }
};

/// Bytes over time in GB/s, from the least to the most that the printed figures leave open.
struct Bounds {
  double low = 0, high = 0;
};

Bounds around(const NcclTestsNumber& number) {
  return {std::max(0.0, number.value - number.rounding), number.value + number.rounding};
}

/// Of the printed algbw, and of the size over the printed time, what both allow.
Bounds algbw_of(const NcclTestsRun& run, const NcclTestsRow& row, const NcclTestsFigure& figure) {
  constexpr double slack = 1e-3;  // JSON's figures are of one more division than we make
  const Bounds time = around(figure.time_us), printed = around(figure.algbw);
  const double kilobytes = static_cast<double>(row.bytes) * 1e-3;
  const Bounds counted{kilobytes / time.high * (1 - slack),
                       kilobytes / std::max(time.low, 0.5 * time.high) * (1 + slack)};
  const Bounds both{std::max(counted.low, printed.low), std::min(counted.high, printed.high)};
  if (both.low > both.high)
    run.fail(row.line, "size, time and algbw contradict each other", "was the line edited or cut?");
  return both;
}

/// busbw / algbw is c (n - 1) / n (bus_factor), so n = c / (c - busbw / algbw).
RankRange ranks_of(const NcclTestsRun& run, const NcclTestsRow& row, const NcclTestsFigure& figure,
                   const std::string& collective) {
  const Bounds alg = algbw_of(run, row, figure), bus = around(figure.busbw);
  const double least = bus.low / alg.high;
  const double most = alg.low > 0 ? bus.high / alg.low : std::numeric_limits<double>::infinity();
  const double limit = bus_factor(collective, std::numeric_limits<std::int64_t>::max());
  const bool told = bus_factor(collective, 2) < limit;  // sendrecv and its like say nothing of n
  RankRange range;
  if (told && least > limit * 0.5) range.low = std::ceil(limit / (limit - least) - 1e-6);
  if (told && most < limit) range.high = std::floor(limit / (limit - most) + 1e-6);
  const bool beyond = told ? least >= limit : least > limit;
  if (beyond || most < bus_factor(collective, 2) || range.low > range.high)
    run.fail(row.line, "algbw and busbw are not those of " + collective + " among any ranks",
             "check --collective");
  return range;
}

RankRange ranks_of(const NcclTestsRun& run, const std::string& collective) {
  RankRange all;
  for (const NcclTestsRow& row : run.rows)
    for (const auto* figure : {&row.out_of_place, &row.in_place}) {
      if (row.bytes == 0 || !*figure) continue;
      const RankRange one = ranks_of(run, row, **figure, collective);
      all = {std::max(all.low, one.low), std::min(all.high, one.high)};
      if (all.low > all.high)
        run.fail(row.line, "algbw and busbw say " + one.text() + ", earlier rows another number",
                 "are these rows of one run?");
    }
  return all;
}

Group group_of(const NcclTestsRun& run, const ClusterFacts& facts, const std::string& collective,
               Ignored& ignored) {
  Group group;
  if (!run.devices.empty()) group = group_of(run);
  const RankRange solved = ranks_of(run, collective);
  const auto settle = [&](std::int64_t& found, const std::optional<std::int64_t>& said,
                          const char* option) {
    if (said && found != 0 && *said != found)
      throw InputError(option, text_of(*said) + " is given, " + run.path + " lists " +
                                   text_of(found) + " of them");
    if (said) found = *said;
  };
  settle(group.ranks, facts.ranks, "--ranks");
  settle(group.nodes, facts.nodes, "--nodes");
  if (group.ranks == 0 && solved.only()) {
    group.ranks = *solved.only();
    ignored.note("lists no devices: busbw over algbw says " + solved.text(), run.line);
  }
  if (group.ranks == 0)
    run.fail(run.line, "lists no devices", "give --ranks N; its rows say " + solved.text());
  if (group.nodes == 0) run.fail(run.line, "lists no devices", "give --nodes N");
  if (group.ranks < 2) run.fail(run.line, "a collective of one rank", "nothing to learn from it");
  if (!solved.holds(group.ranks))
    run.fail(run.line,
             "algbw and busbw are those of " + solved.text() + " in " + collective + ", not of " +
                 text_of(group.ranks),
             "check --collective and --ranks");
  if (group.ranks % group.nodes != 0)
    throw InputError("--nodes", text_of(group.ranks) + " ranks are not spread evenly over " +
                                    text_of(group.nodes) + " nodes");
  return group;
}

std::string collective_of(const NcclTestsRun& run, const ClusterFacts& facts) {
  if (run.program.empty()) {
    if (!facts.collective.empty()) return facts.collective;
    if (const auto guess = collective_in_file_name(run.path)) return *guess;
    run.fail(run.line, "does not say which collective it measured",
             "give --collective all_reduce (or another)");
  }
  const auto named = collective_named(run.program);
  if (!named)
    run.fail(run.line, "the table has no place for " + run.program,
             "all_reduce, all_gather, reduce_scatter, alltoall, sendrecv, broadcast, reduce have");
  if (!facts.collective.empty() && facts.collective != *named)
    throw InputError("--collective",
                     facts.collective + " is given, " + run.path + " is of " + run.program);
  return *named;
}

std::string gpu_of(const NcclTestsRun& run, const ClusterFacts& facts) {
  std::string found;
  for (const NcclTestsDevice& device : run.devices) {
    const auto named = gpu_named(device.gpu, facts.gpus);
    if (!named) {
      if (facts.gpu.empty())
        run.fail(device.line, "unknown GPU '" + device.gpu + "'", "name it with --gpu");
      return facts.gpu;
    }
    if (!found.empty() && *named != found)
      run.fail(device.line, "a " + *named + " among " + found + " GPUs",
               "only groups of one kind are understood");
    found = *named;
  }
  if (facts.gpu.empty() && found.empty())
    run.fail(run.line, "does not say which GPU it ran on", "name it with --gpu");
  if (facts.gpu.empty()) return found;
  const auto* listed = facts.gpus.nearest(found);
  const auto* given = facts.gpus.nearest(facts.gpu);
  if (listed != nullptr && given != nullptr && listed->generation != given->generation)
    throw InputError("--gpu", facts.gpu + " is given, " + run.path + " lists " + found);
  return facts.gpu;
}

std::string nccl_of(const NcclTestsRun& run, const ClusterFacts& facts, Ignored& ignored) {
  if (!run.nccl.empty() && !facts.nccl.empty() && run.nccl != facts.nccl)
    throw InputError("--nccl", facts.nccl + " is given, " + run.path + " says " + run.nccl);
  if (run.nccl.empty() && facts.nccl.empty())
    ignored.note("does not say its NCCL version: give --nccl to store it", run.line);
  return run.nccl.empty() ? facts.nccl : run.nccl;
}

struct Wire {
  std::string fabric;
  BytesPerSecond node_bandwidth{};
};

Wire wire_of(const NcclTestsRun& run, const ClusterFacts& facts, std::int64_t nodes,
             const std::string& gpu) {
  const sim::GpuIdentity* known = facts.gpus.nearest(gpu);
  Wire wire{.fabric = facts.fabric};
  if (nodes == 1) {
    // The option speaks of the cluster; inside a node NVLink carries the bytes.
    if (known != nullptr && known->gpu.nvlink.value > 0) wire.fabric = "nvlink";
    if (wire.fabric.empty())
      run.fail(run.line, gpu + " may have NVLink or not", "give --fabric nvlink or --fabric pcie");
    return wire;
  }
  if (wire.fabric.empty())
    run.fail(run.line, "does not say what joins its " + text_of(nodes) + " nodes",
             "give --fabric infiniband (or roce, efa, ethernet, nvlink)");
  if (wire.fabric == "nvlink") return wire;
  if (!facts.node_bandwidth)
    run.fail(run.line, "does not say how fast its nodes are joined",
             "give --node-bandwidth \"3200 Gbit/s\", the NICs of a node together");
  wire.node_bandwidth = *facts.node_bandwidth;
  return wire;
}

std::string dtype_of(const NcclTestsRun& run, const NcclTestsRow& row) {
  if (const auto dtype = sim::dtype_named(row.type)) return sim::word_for(sim::dtype_names, *dtype);
  // Types that training does not send.
  static const std::map<std::string, std::string> names = {
      {"double", "fp64"},   {"int8", "int8"},         {"uint8", "uint8"},    {"int32", "int32"},
      {"uint32", "uint32"}, {"int64", "int64"},       {"uint64", "uint64"},  {"int", "int32"},
      {"char", "int8"},     {"fp8_e5m2", "fp8_e5m2"}, {"f8e5m2", "fp8_e5m2"}};
  const auto found = names.find(row.type);
  if (found == names.end()) run.fail(row.line, "unknown type '" + row.type + "'");
  return found->second;
}

/// Nodes as far as the run or the options say; 0: they do not.
std::int64_t nodes_said(const NcclTestsRun& run, const ClusterFacts& facts) {
  std::set<std::string> hosts;
  for (const NcclTestsDevice& device : run.devices) hosts.insert(device.host);
  return hosts.empty() ? facts.nodes.value_or(0) : static_cast<std::int64_t>(hosts.size());
}

/// Of several facts that are missing, all at once.
void ask_for_missing(const NcclTestsRun& run, const ClusterFacts& facts) {
  Unsaid unsaid;
  const bool listed = !run.devices.empty(), named = !run.program.empty();
  std::string collective = facts.collective;
  if (collective.empty()) collective = collective_in_file_name(run.path).value_or("");
  unsaid.add(!named && collective.empty(), "which collective it measured",
             "--collective all_reduce");
  unsaid.add(!listed && facts.gpu.empty(), "which GPU it ran on", "--gpu NAME");
  if (!listed && !facts.ranks && !named && !collective.empty())
    unsaid.add(!ranks_of(run, collective).only(), "how many ranks", "--ranks N");
  const std::int64_t nodes = nodes_said(run, facts);
  unsaid.add(nodes == 0, "on how many nodes", "--nodes N");
  unsaid.add(nodes > 1 && facts.fabric.empty(), "what joins them", "--fabric infiniband");
  unsaid.add(nodes > 1 && facts.fabric != "nvlink" && !facts.node_bandwidth,
             "how fast they are joined", "--node-bandwidth \"3200 Gbit/s\"");
  if (unsaid.several()) run.fail(run.line, "does not say " + unsaid.what(), unsaid.hint());
}

}  // namespace

void NcclTestsRun::fail(std::int64_t at_line, const std::string& what,
                        const std::string& hint) const {
  throw InputError(path + ":" + text_of(at_line), what, hint);
}

double bus_factor(const std::string& collective, std::int64_t ranks) {
  return sim::bus_factor(*sim::collective_named(collective), ranks);
}

std::vector<sim::CollectiveRow> collective_rows(const NcclTestsRun& run, const ClusterFacts& facts,
                                                Ignored& ignored) {
  ask_for_missing(run, facts);
  const std::string collective = collective_of(run, facts);
  const Group group = group_of(run, facts, collective, ignored);
  const std::string gpu = gpu_of(run, facts);
  const Wire wire = wire_of(run, facts, group.nodes, gpu);
  sim::CollectiveRow common;
  common.gpu = gpu;
  common.collective = collective;
  common.ranks = group.ranks;
  common.nodes = group.nodes;
  common.gpus_per_node = group.ranks / group.nodes;
  common.fabric = wire.fabric;
  common.node_bandwidth = wire.node_bandwidth;
  common.nccl = nccl_of(run, facts, ignored);
  common.timing = "wall";
  if (group.processes > 0)
    common.processes =
        group.processes == 1 ? "1" : text_of(group.processes / group.nodes) + " per node";
  const double factor = bus_factor(common.collective, group.ranks);

  std::vector<sim::CollectiveRow> rows;
  for (const NcclTestsRow& row : run.rows) {
    if (row.bytes == 0) {
      ignored.add("a row of no bytes", row.line);
      continue;
    }
    for (const auto& [figure, place] :
         {std::pair(&row.out_of_place, "out-of-place"), std::pair(&row.in_place, "in-place")}) {
      if (!*figure) continue;
      if ((*figure)->wrong > 0)
        run.fail(row.line, "wrong results", "a run that computes wrongly measures nothing");
      rows.push_back(common);
      rows.back().dtype = dtype_of(run, row);
      rows.back().bytes = Bytes(row.bytes);
      rows.back().duration = to_duration((*figure)->time_us.value * 1e-6);
      rows.back().busbw = BytesPerSecond(static_cast<double>(row.bytes) * factor /
                                         ((*figure)->time_us.value * 1e-6));
      rows.back().source = {file_name(run.path) + " (nccl-tests, " + place + ")",
                            file_name(run.path), "high"};
    }
  }
  if (rows.empty()) run.fail(run.line, "holds no measurement", "was the log cut?");
  return rows;
}

}  // namespace stepcast::calibrate
