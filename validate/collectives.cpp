#include "validate/collectives.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "engine/check.hpp"
#include "sim/gpu_names.hpp"
#include "sim/nccl_network.hpp"
#include "sim/nccl_tuning.hpp"
#include "sim/provenance.hpp"
#include "sim/toml_value.hpp"
#include "validate/source_key.hpp"

namespace stepcast::validate {
namespace {

using sim::CollectiveRow;
using workloads::CollectiveKind;

/// Why a row cannot be predicted.
struct Unpredictable {
  std::string reason;
};

const std::map<std::string, CollectiveKind> kinds = {
    {"allreduce", CollectiveKind::all_reduce},
    {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter},
    {"broadcast", CollectiveKind::broadcast},
    {"reduce", CollectiveKind::reduce},
    {"alltoall", CollectiveKind::all_to_all},
    {"sendrecv", CollectiveKind::send_receive}};

std::string band_of(Bytes bytes) {
  constexpr std::int64_t kib = 1024, mib = 1024 * kib;
  if (bytes.value < 64 * kib) return "< 64 KiB";
  if (bytes.value < mib) return "64 KiB - 1 MiB";
  if (bytes.value < 64 * mib) return "1 - 64 MiB";
  return ">= 64 MiB";
}

std::string generation_name(topology::Architecture architecture) {
  switch (architecture) {
    case topology::Architecture::volta:
      return "Volta";
    case topology::Architecture::ampere:
      return "Ampere";
    case topology::Architecture::hopper:
      return "Hopper";
    case topology::Architecture::blackwell:
      return "Blackwell";
  }
  throw BrokenPromise("a GPU generation without a name");
}

std::string size_text(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}})
    if (bytes.value >= unit && bytes.value % unit == 0)
      return fmt::format("{} {}", bytes.value / unit, name);
  return fmt::format("{} B", bytes.value);
}

/// What the columns cannot say and the source's own words do.
std::optional<std::string> not_nccl(const CollectiveRow& row) {
  const auto says = [&](const char* words) {
    return row.source.source.find(words) != std::string::npos;
  };
  if (says("osu_bw") || says("osu_latency") || says("MPI/UCX")) return "times MPI, not NCCL";
  if (says("P2P dis")) return "NVLink was switched off";
  return std::nullopt;
}

class Predictor {
 public:
  Predictor(const sim::CalibrationTable& pool, const sim::Catalogue& catalogue,
            const CollectiveOptions& options)
      : pool_(pool), nccl_directory_(catalogue.directory() + "/nccl"), options_(options) {
    for (const std::string& name : catalogue.names("nodes"))
      nodes_.push_back(catalogue.node(sim::toml_text(name, "nodes")));
  }

  ComparedRow compare(const CollectiveRow& row) {
    ComparedRow out;
    out.gpu = row.gpu;
    out.kind = row.collective;
    out.bytes = row.bytes;
    out.measured = row.duration;
    out.what = fmt::format("{} on {} GPUs, {} nodes", size_text(row.bytes), row.ranks, row.nodes);
    try {
      predict(row, out);
      if (row.source.confidence == "low") out.not_scored = "low confidence";
    } catch (const Unpredictable& why) {
      out.not_scored = why.reason;
    }
    return out;
  }

 private:
  void predict(const CollectiveRow& row, ComparedRow& out) {
    if (row.bytes <= Bytes(0)) throw Unpredictable{"a peak without a size (max)"};
    if (row.nodes < 1) throw Unpredictable{"number of nodes not stated (multi)"};
    if (row.fabric.empty()) throw Unpredictable{"fabric not stated"};
    if (const auto other = not_nccl(row)) throw Unpredictable{*other};
    const topology::NodeSpec node = machine_of(row);
    const CollectiveKind kind = kinds.at(row.collective);
    const sim::GroupShape shape{row.ranks, row.nodes, row.ranks / row.nodes, 1};
    const sim::CollectiveTime time = times_of(row, node).time_of(kind, row.bytes, shape);
    out.group = {generation_name(node.gpu.architecture), row.collective, row.fabric,
                 band_of(row.bytes)};
    out.predicted = time.duration;
    if (kind != CollectiveKind::all_to_all && kind != CollectiveKind::send_receive)
      out.nccl_estimate = time.nccl_estimate;
    out.provenance = sim::name_of(time.provenance);
    out.rests_on = time.rests_on;
  }

  /// The catalogue's node of this GPU, with the NICs that the row states.
  topology::NodeSpec machine_of(const CollectiveRow& row) const {
    const topology::NodeSpec* found = nullptr;
    for (const topology::NodeSpec& node : nodes_)
      if (found == nullptr && sim::kinship(row.gpu, node.gpu.name) == sim::Kinship::same)
        found = &node;
    if (found == nullptr) throw Unpredictable{"no node with " + row.gpu + " in the catalogue"};
    topology::NodeSpec node = *found;
    if (row.ranks % row.nodes != 0 || row.ranks / row.nodes > node.gpus)
      throw Unpredictable{fmt::format("{} ranks on {} nodes", row.ranks, row.nodes)};
    // The column holds the GPUs of a node, or only those that take part.
    const std::int64_t gpus = row.gpus_per_node;
    if (gpus > 0 && gpus != node.gpus && gpus != row.ranks / row.nodes)
      throw Unpredictable{
          fmt::format("a node of {} GPUs, the catalogue's has {}", gpus, node.gpus)};
    if (row.nodes == 1) {
      if (row.fabric != "nvlink") throw Unpredictable{"one node on " + row.fabric};
      return node;
    }
    set_nics(node, row);
    return node;
  }

  /// As many NICs of the node's own speed as the stated bandwidth holds, else one of just that.
  static void set_nics(topology::NodeSpec& node, const CollectiveRow& row) {
    if (!(row.node_bandwidth.value > 0)) throw Unpredictable{"network bandwidth not stated"};
    const double count = row.node_bandwidth / node.nic;
    const bool whole = count >= 0.99 && std::abs(count - std::round(count)) < 0.01 * count;
    node.nics = whole ? static_cast<std::int64_t>(std::llround(count)) : 1;
    if (!whole) node.nic = row.node_bandwidth;
  }

  const sim::CollectiveTimes& times_of(const CollectiveRow& row, const topology::NodeSpec& node) {
    const std::string version = row.nccl.empty() ? options_.nccl : row.nccl;
    const std::string left_out = options_.with_curves ? "" : source_key(row.source);
    const Key key{left_out, version, node.name, node.nics, node.nic.value};
    const auto known = times_.find(key);
    if (known != times_.end()) return known->second;
    const auto rows =
        options_.with_curves ? pool_.collectives : without_source(pool_.collectives, left_out);
    return times_.emplace(key, sim::CollectiveTimes(node, tuning_of(version, row), rows))
        .first->second;
  }

  /// A version that --nccl names must be known; one that a row names makes the row unpredictable.
  sim::NcclTuning tuning_of(const std::string& version, const CollectiveRow& row) const {
    try {
      return sim::nccl_tuning_of(nccl_directory_, version, "--nccl");
    } catch (const InputError&) {
      if (row.nccl.empty()) throw;
      throw Unpredictable{"NCCL " + version + " has no choice table"};
    }
  }

  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, double>;
  const sim::CalibrationTable& pool_;
  std::string nccl_directory_;
  CollectiveOptions options_;
  std::vector<topology::NodeSpec> nodes_;
  std::map<Key, sim::CollectiveTimes> times_;
};

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
  out.left_out = options.with_curves ? "nothing" : "source";
  out.notes = {options.with_curves
                   ? "CIRCULAR (--with-curves): a row may be predicted from itself."
                   : "Leave-one-source-out: no row is predicted from measured curves of its own "
                     "source.",
               "The model's constants are not refitted: some were chosen with published rows in "
               "view.",
               "NCCL " + options.nccl + " where a row states no version."};
  const sim::CalibrationTable pool = pool_of(known, rows);
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
