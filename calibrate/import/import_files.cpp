#include "calibrate/import/import_files.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "calibrate/import/nccl_debug_log.hpp"
#include "calibrate/import/nccl_init_log.hpp"
#include "calibrate/import/nccl_tests.hpp"
#include "calibrate/import/nccl_tests_csv.hpp"
#include "calibrate/import/nccl_tests_json.hpp"
#include "calibrate/import/nccl_tests_log.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "engine/check.hpp"
#include "sim/import/calibration_csv.hpp"

namespace stepcast::calibrate {
namespace {

template <class Row>
void append(std::vector<Row>& to, const std::vector<Row>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string summary(const std::string& path, const std::vector<sim::CollectiveRow>& rows) {
  const sim::CollectiveRow& row = rows.front();
  return fmt::format("{}: {} rows of {}, {} ranks on {} nodes of {}, {}{}\n", path, rows.size(),
                     row.collective, row.ranks, row.nodes, row.gpu, row.fabric,
                     row.nccl.empty() ? "" : ", NCCL " + row.nccl);
}

void add_run(Import& import, const NcclTestsRun& run, const ClusterFacts& facts, Ignored& ignored) {
  const auto rows = collective_rows(run, facts, ignored);
  import.report += summary(run.path, rows);
  append(import.table.collectives, rows);
}

/// What a run of nccl-tests leaves open, as far as NCCL's lines beside it say.
ClusterFacts facts_for(const NcclTestsRun& run, const ClusterFacts& facts, NcclInit init) {
  if (!run.devices.empty()) init.ranks = init.nodes = std::nullopt;
  if (!run.nccl.empty()) init.nccl.clear();
  if (init.nodes == 1) init.fabric.clear();  // inside a node NVLink or PCIe carries the bytes
  return completed(facts, init);
}

/// A log may hold all three: nccl-tests with NCCL_DEBUG set. What the header of the one and NCCL's
/// start say completes the others.
void import_log(Import& import, const TextFile& file, const ClusterFacts& facts, Ignored& ignored) {
  const NcclInit init = nccl_init_of(file);
  const bool tests = is_nccl_tests_log(file), debug = is_nccl_debug_log(file);
  const bool start = says_something(init);
  if (!tests && !debug && !start)
    throw InputError(file.path + ":1", "is no log that is understood",
                     "CSV with a header, nccl-tests (text or -J) and NCCL_DEBUG=INFO are");
  if (start && !(tests && to_text(init) == "NCCL " + init.nccl))
    import.report += fmt::format("{}: {}\n", file.path, to_text(init));
  ClusterFacts known = facts;
  if (tests) {
    for (const NcclTestsRun& run : parse_nccl_tests_log(file, ignored)) {
      add_run(import, run, facts_for(run, facts, init), ignored);
      const sim::CollectiveRow& row = import.table.collectives.back();
      known.gpu = row.gpu;
      known.nccl = row.nccl;
      known.ranks = row.ranks;
      known.nodes = row.nodes;
      known.collective = row.collective;
    }
  }
  if (debug || start) ignored.forget(nccl_line);
  if (!debug) return;
  const NcclDebugTables tables = parse_nccl_debug_log(file, known, ignored);
  import.report += fmt::format("{}: {} figures of NCCL's tuning table, {} choices\n", file.path,
                               tables.tuning.size(), tables.choices.size());
  append(import.table.nccl_tuning, tables.tuning);
  append(import.table.nccl_choices, tables.choices);
}

/// CSV in our columns, or in nccl-tests'.
void import_table(Import& import, const sim::CsvFile& file, const ClusterFacts& facts) {
  if (!is_nccl_tests_csv(file)) return sim::append(import.table, sim::import_csv(file));
  const NcclTestsCsv csv = parse_nccl_tests_csv(file);
  ClusterFacts known = facts;
  if (!known.ranks) known.ranks = csv.ranks;
  if (!known.nodes) known.nodes = csv.nodes;
  Ignored ignored;
  for (const NcclTestsRun& run : csv.runs) add_run(import, run, known, ignored);
  import.report += ignored.text(file.path);
}

void import_one(Import& import, const std::string& path, const ClusterFacts& facts) {
  if (path.ends_with(".csv")) return import_table(import, sim::read_csv(path), facts);
  const std::string text = read_bytes(path);
  Ignored ignored;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{')
    add_run(import, parse_nccl_tests_json(path, text, ignored), facts, ignored);
  else
    import_log(import, parse_text(path, text), facts, ignored);
  import.report += ignored.text(path);
}

}  // namespace

Import import_files(std::span<const std::string> paths, const ClusterFacts& facts) {
  Import import;
  for (const std::string& path : paths) import_one(import, path, facts);
  return import;
}

}  // namespace stepcast::calibrate
