#include "sim/told/row_members.hpp"

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"

namespace stepcast::sim {
namespace {

RowMember::Kind column_kind_of(const TomlValue& value) {
  using Kind = RowMember::Kind;
  if (value.text() != nullptr) return Kind::text;
  if (std::holds_alternative<std::int64_t>(value.data)) return Kind::count;
  if (std::holds_alternative<double>(value.data)) return Kind::number;
  if (std::holds_alternative<bool>(value.data)) return Kind::flag;
  expects(value.array() != nullptr, "a plan has no tables");
  return Kind::list;
}

}  // namespace

std::vector<RowMember> row_members(bool collective) {
  using Kind = RowMember::Kind;
  std::vector<RowMember> out;
  for (const Metric& metric : metrics()) {
    const bool reported = collective ? metric.of_collective != nullptr : metric.of_step != nullptr;
    const bool count = metric.key == "gpus" || metric.key == "nodes";
    if (reported)
      out.push_back({std::string(metric.key), count ? Kind::count : Kind::metric, &metric});
  }
  for (const char* path :
       {"gpu", "refused", "failed", "cluster.node", "cluster.fabric", "cluster.nccl"})
    out.push_back({path, Kind::text});
  out.push_back({"cluster.gpus_per_node", Kind::count});
  out.push_back({"cluster.oversubscription", Kind::number});
  if (collective) {
    for (const char* path : {"algorithm", "protocol"}) out.push_back({path, Kind::text});
    return out;
  }
  out.push_back({"model", Kind::text});
  Scenario any;
  any.global_batch = any.gpus = 1;
  const TomlValue plan = plan_document(any);
  for (const TomlEntry& entry : *plan.table())
    out.push_back({"plan." + entry.key, column_kind_of(entry.value)});
  out.push_back({"plan.stage_layers", Kind::list});
  return out;
}

}  // namespace stepcast::sim
