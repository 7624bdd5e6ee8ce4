#include "sim/told/row_members.hpp"

#include "sim/scenario/file.hpp"

namespace stepcast::sim {

std::vector<RowMember> row_members(bool collective) {
  using Kind = RowMember::Kind;
  std::vector<RowMember> out;
  for (const Metric& metric : metrics()) {
    const bool reported = collective ? metric.of_collective != nullptr : metric.of_step != nullptr;
    const bool count = metric.key == "gpus" || metric.key == "nodes";
    if (reported)
      out.push_back({std::string(metric.key), count ? Kind::count : Kind::metric, &metric});
  }
  for (const char* path : {"gpu", "refused", "failed"}) out.push_back({path, Kind::text});
  if (collective) {
    for (const char* path : {"algorithm", "protocol"}) out.push_back({path, Kind::text});
    return out;
  }
  out.push_back({"model", Kind::text});
  const TomlValue plan = plan_document(Scenario{});
  for (const TomlEntry& entry : *plan.table()) {
    const bool count = std::holds_alternative<std::int64_t>(entry.value.data);
    if (count || entry.value.text() != nullptr)
      out.push_back({"plan." + entry.key, count ? Kind::count : Kind::text});
  }
  return out;
}

}  // namespace stepcast::sim
