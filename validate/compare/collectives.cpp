#include "validate/compare/collectives.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <tuple>

#include "calibrate/import/collective_case.hpp"
#include "calibrate/rows/source_key.hpp"
#include "engine/check.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/tables/provenance.hpp"

namespace stepcast::validate {
namespace {

using calibrate::CollectiveCase;
using calibrate::Unpredictable;
using sim::CollectiveRow;
using workloads::CollectiveKind;

std::string band_of(Bytes bytes) {
  constexpr std::int64_t kib = 1024, mib = 1024 * kib;
  if (bytes.value < 64 * kib) return "< 64 KiB";
  if (bytes.value < mib) return "64 KiB - 1 MiB";
  if (bytes.value < 64 * mib) return "1 - 64 MiB";
  return ">= 64 MiB";
}

/// "Hopper".
std::string generation_name(const topology::Architecture& architecture) {
  std::string out = architecture.name;
  if (!out.empty()) out.front() = static_cast<char>(std::toupper(out.front()));
  return out;
}

std::string size_text(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}})
    if (bytes.value >= unit && bytes.value % unit == 0)
      return fmt::format("{} {}", bytes.value / unit, name);
  return fmt::format("{} B", bytes.value);
}

class Predictor {
 public:
  Predictor(const sim::CalibrationTable& pool, const sim::Catalogue& catalogue,
            const CollectiveOptions& options)
      : pool_(pool),
        catalogue_(catalogue),
        options_(options),
        cases_(catalogue),
        constants_(catalogue.network_constants()) {}

  ComparedRow compare(const CollectiveRow& row) {
    ComparedRow out;
    out.gpu = row.gpu;
    out.kind = row.collective;
    out.source = calibrate::source_key(*row.source);
    out.bytes = row.bytes;
    out.measured = row.duration;
    out.what = fmt::format("{} on {} GPUs, {} nodes", size_text(row.bytes), row.ranks, row.nodes);
    try {
      predict(row, out);
      if (row.source->confidence == "low") out.not_scored = "low confidence";
    } catch (const Unpredictable& why) {
      out.not_scored = why.reason;
    }
    return out;
  }

 private:
  void predict(const CollectiveRow& row, ComparedRow& out) {
    const CollectiveCase question = cases_.case_of(row);
    const CollectiveKind kind = question.kind;
    const sim::CollectiveTime time =
        times_of(row, question.node).time_of(kind, row.bytes, question.shape);
    out.group = {generation_name(question.node.gpu.architecture), row.collective, row.fabric,
                 band_of(row.bytes)};
    out.predicted = sim::as_measured(time.duration, row, constants_.measurement);
    out.within_reading_error = calibrate::error_of(*out.predicted, row, kind) == 0.0;
    if (kind != CollectiveKind::all_to_all && kind != CollectiveKind::send_receive)
      out.nccl_estimate = time.nccl_estimate;
    out.provenance = sim::name_of(time.provenance);
    out.forecast = sim::case_of_collective(question.node.gpu.architecture, row.nodes, row.bytes,
                                           time.provenance);
    out.rests_on = time.rests_on;
    if (question.assumed) out.what += ", NICs assumed";
  }

  const sim::CollectiveTimes& times_of(const CollectiveRow& row, const topology::NodeSpec& node) {
    const std::string version = row.nccl.empty() ? options_.nccl : row.nccl;
    const std::string left_out =
        options_.curves == Curves::all ? "" : calibrate::source_key(*row.source);
    const Key key{left_out,  version,        node.name,
                  node.nics, node.nic.value, node.low_latency_protocols};
    const auto known = times_.find(key);
    if (known != times_.end()) return known->second;
    std::vector<CollectiveRow> rows;
    if (options_.curves != Curves::none)
      rows = left_out.empty() ? pool_.collectives
                              : calibrate::without_source(pool_.collectives, left_out);
    return times_.emplace(key, sim::CollectiveTimes(node, nccl_of(version, row), rows))
        .first->second;
  }

  /// A version that --nccl names must be known; one that a row names makes the row unpredictable.
  const sim::NcclFacts& nccl_of(const std::string& version, const CollectiveRow& row) const {
    try {
      return catalogue_.nccl(version, "--nccl");
    } catch (const InputError&) {
      if (row.nccl.empty()) throw;
      throw Unpredictable{"NCCL " + version + " has no choice table"};
    }
  }

  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, double, bool>;
  const sim::CalibrationTable& pool_;
  const sim::Catalogue& catalogue_;
  CollectiveOptions options_;
  calibrate::CollectiveCases cases_;
  sim::NetworkConstants constants_;
  std::map<Key, sim::CollectiveTimes> times_;
};

std::string note_of(Curves curves) {
  switch (curves) {
    case Curves::all:
      return "CIRCULAR (--with-curves): a row may be predicted from itself.";
    case Curves::none:
      return "The model alone (--model-only): no measured curve is used.";
    case Curves::other_sources:
      return "Measured curves of other sources are used, none of a row's own, none of this file.";
  }
  throw BrokenPromise("a use of curves without a note");
}

}  // namespace

Comparison compare_collectives(const std::string& file, const std::vector<MeasuredRow>& rows,
                               const sim::CalibrationTable& known, const sim::Catalogue& catalogue,
                               const CollectiveOptions& options) {
  Comparison out{.file = file,
                 .title = "Collectives",
                 .left_out = {},
                 .notes = {},
                 .group_headings = {"GPUs", "collective", "network", "size"},
                 .rows = {}};
  out.left_out = options.curves == Curves::all ? "nothing" : "source";
  out.notes = {
      note_of(options.curves),
      "The model's constants are fitted on published rows (scenarios/network/fitted.toml).",
      "A reading error that a row states counts as none.",
      "NCCL " + options.nccl + " where a row states no version."};
  const sim::CalibrationTable pool = options.curves == Curves::all ? pool_of(known, rows) : known;
  Predictor predictor(pool, catalogue, options);
  for (const MeasuredRow& row : rows) {
    if (row.table.collectives.empty()) {
      ++out.other_kinds;
      continue;
    }
    ComparedRow compared = predictor.compare(row.table.collectives.front());
    compared.line = row.line;
    out.rows.push_back(std::move(compared));
  }
  if (out.rows.empty()) throw InputError(file, "holds no collective");
  return out;
}

}  // namespace stepcast::validate
