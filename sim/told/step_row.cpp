#include "sim/told/step_row.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::sim {
namespace {

using RowJson = nlohmann::ordered_json;

/// All that Session::simulate() fills in but the warnings, and NCCL's choices, which only their
/// question needs (pinned_protocol.hpp).
template <class Report, class Visit>
void each_member(Report& r, const Visit& visit) {
  visit("step_ps", r.step_time);
  visit("step_deviation_ps", r.step_deviation);
  visit("compute_ps", r.compute);
  visit("interference_ps", r.interference);
  visit("exposed_tensor_ps", r.exposed.tensor);
  visit("exposed_pipeline_ps", r.exposed.pipeline);
  visit("exposed_data_ps", r.exposed.data);
  visit("exposed_expert_ps", r.exposed.expert);
  visit("exposed_offload_ps", r.exposed.offload);
  visit("bubble_ps", r.bubble);
  visit("wait_ps", r.wait);
  visit("host_ps", r.host);
  visit("communication_ps", r.communication);
  visit("tokens_per_s", r.tokens_per_second);
  visit("model_flops_per_s_per_gpu", r.model_flops_per_gpu.value);
  visit("mfu", r.mfu);
  visit("power_w_per_gpu", r.power_per_gpu.value);
  visit("energy_j", r.energy.value);
  visit("tokens_per_joule", r.tokens_per_joule);
  visit("kernel_provenance", r.kernel_provenance);
  visit("network_provenance", r.network_provenance);
  visit("simulated_ranks", r.simulated_ranks);
  visit("events", r.events);
}

struct RowWriter {
  RowJson& out;
  void operator()(const char* name, Duration value) const { out[name] = value.count(); }
  void operator()(const char* name, std::int64_t value) const { out[name] = value; }
  void operator()(const char* name, const ProvenanceShares& shares) const { out[name] = shares; }
  /// JSON has no infinity: tokens per joule where nothing draws power.
  void operator()(const char* name, double value) const {
    expects(!std::isnan(value), "a step comes to numbers");
    out[name] = std::isinf(value) ? RowJson(nullptr) : RowJson(value);
  }
};

struct RowReader {
  const RowJson& in;
  void operator()(const char* name, Duration& into) const {
    into = Duration(in.at(name).get<Duration::rep>());
  }
  void operator()(const char* name, std::int64_t& into) const { in.at(name).get_to(into); }
  void operator()(const char* name, ProvenanceShares& into) const { in.at(name).get_to(into); }
  void operator()(const char* name, double& into) const {
    const RowJson& value = in.at(name);
    into = value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
  }
};

}  // namespace

std::string step_row(const StepReport& report, std::size_t first_warning) {
  RowJson out;
  each_member(report, RowWriter{out});
  for (std::size_t i = first_warning; i < report.warnings.size(); ++i)
    out["warnings"].push_back(report.warnings[i]);
  return json_text(out);
}

void read_step_row(std::string_view row, StepReport& report) {
  try {
    const RowJson in = parsed_ordered_json(row);
    each_member(report, RowReader{in});
    if (const auto warnings = in.find("warnings"); warnings != in.end())
      for (const RowJson& warning : *warnings)
        report.warnings.push_back(warning.get<std::string>());
  } catch (const RowJson::exception& error) {
    throw InputError("--out", std::string("a kept step cannot be read: ") + error.what(),
                     "take its line out, and --resume runs it again");
  }
}

}  // namespace stepcast::sim
