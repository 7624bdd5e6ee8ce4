#include "validate/published/residuals.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "validate/compare/collectives.hpp"
#include "validate/compare/kernels.hpp"
#include "validate/published/ran.hpp"
#include "validate/published/ranking.hpp"

namespace stepcast::validate {
namespace {

sim::CalibrationTable published_table() {
  const std::vector<std::string> names{"published"};
  return sim::read_calibrations(names);
}

std::vector<sim::Residual> collective_residuals(const std::string& file,
                                                const sim::Catalogue& catalogue) {
  const Comparison compared =
      compare_collectives(file, measured_rows(sim::read_csv(file)), published_table(), catalogue);
  std::vector<sim::Residual> out;
  for (const ComparedRow& row : compared.rows)
    if (row.scored() && row.predicted && row.measured.count() > 0)
      out.push_back(
          {row.source, "line " + std::to_string(row.line), -std::log1p(row.error()), row.forecast});
  return out;
}

template <class... More>
std::vector<const PublishedResult*> scored_of(const std::vector<PublishedResult>& results,
                                              const More&... more) {
  std::vector<const PublishedResult*> out;
  for (const auto* table : {&results, &more...})
    for (const PublishedResult& r : *table)
      if (r.scored()) out.push_back(&r);
  return out;
}

}  // namespace

std::vector<sim::Residual> step_residuals(const std::vector<PublishedResult>& results) {
  std::vector<sim::Residual> out;
  for (const PublishedResult* r : scored_of(results))
    out.push_back(
        {r->row.source_key(), r->row.id, std::log(r->measured_s / *r->predicted_s), r->forecast});
  return out;
}

std::vector<sim::Residual> memory_residuals(const std::vector<PublishedResult>& results) {
  std::vector<sim::Residual> out;
  for (const PublishedResult* r : scored_of(results))
    if (const auto peak = r->row.mem_gib_per_gpu; peak && *peak > 0 && r->memory_gib)
      out.push_back({r->row.source_key(), r->row.id, std::log(*peak / r->reported_memory_gib()),
                     r->forecast});
  return out;
}

std::vector<sim::Residual> peak_residuals(const std::vector<PublishedResult>& results) {
  std::vector<sim::Residual> out;
  for (const PublishedResult& r : results) {
    if (!entered(r) || r.row.ran_out_of_memory) continue;
    const auto peaks = peaks_of(r);
    if (peaks.empty() || !peaks.front().scored()) continue;
    const double forecast = r.memory_of(peaks.front().figure);
    out.push_back(
        {r.row.source_key(), r.row.id, std::log(peaks.front().stated_gib / forecast), r.forecast});
  }
  return out;
}

std::vector<sim::Residual> card_residuals(const std::vector<PublishedResult>& results, bool died) {
  std::vector<sim::Residual> out;
  for (const PublishedResult& r : results) {
    if (r.aside || !r.predicted_s || r.tokens_open || r.row.ran_out_of_memory != died) continue;
    if (!died && r.row.mem_gib_per_gpu.value_or(0) > 0) continue;  // its peak is known
    out.push_back(
        {r.row.source_key(), r.row.id, std::log(r.gpu_memory_gib / r.needed_gib), r.forecast});
  }
  return out;
}

namespace {

/// Of `left_out` in place of the shape alone, by GPU and kernel.
double growth_of_kernels(const std::string& kernels_csv, const sim::Catalogue& catalogue,
                         LeaveOut left_out, const char* word) {
  const auto rows = measured_rows(sim::read_csv(kernels_csv));
  const auto known = published_table();
  const Comparison without_source = compare_kernels(kernels_csv, rows, known, catalogue, left_out);
  const Comparison without_shape =
      compare_kernels(kernels_csv, rows, known, catalogue, LeaveOut::shape);
  ensures(without_source.rows.size() == without_shape.rows.size(), "the same rows twice");
  // By GPU and kernel: rows of other shapes of one table err together.
  std::map<std::pair<std::string, std::string>, std::pair<std::vector<double>, std::vector<double>>>
      errors;
  for (std::size_t i = 0; i < without_source.rows.size(); ++i) {
    const ComparedRow &far = without_source.rows[i], &near = without_shape.rows[i];
    if (!far.scored() || !near.scored() || far.group.back() != word) continue;
    auto& [source, shape] = errors[{far.group[0], far.group[1]}];
    source.push_back(std::abs(std::log1p(far.error())));
    shape.push_back(std::abs(std::log1p(near.error())));
  }
  std::vector<double> ratios;
  constexpr std::size_t least_rows = 5;
  for (const auto& [kernel, both] : errors)
    if (const double near = median(both.second); both.first.size() >= least_rows && near > 0)
      ratios.push_back(median(both.first) / near);
  return ratios.empty() ? 1.0 : std::max(1.0, median(ratios));
}

}  // namespace

double shift_of_kernels(const std::string& kernels_csv, const sim::Catalogue& catalogue) {
  return growth_of_kernels(kernels_csv, catalogue, LeaveOut::source, "source");
}

double growth_on_unmeasured(const std::string& folder, const sim::Catalogue& catalogue) {
  std::vector<double> growths;
  for (const char* file :
       {"/kernels.csv", "/products.csv", "/products_trtllm.csv", "/amd_and_rtx.csv"})
    growths.push_back(growth_of_kernels(folder + file, catalogue, LeaveOut::gpu, "GPU"));
  return median(growths);
}

sim::Evidence evidence_of(const std::vector<PublishedResult>& training,
                          const std::vector<PublishedResult>& sweep,
                          const std::vector<PublishedResult>& modern,
                          const std::vector<PublishedResult>& what_ran,
                          const std::string& measurements, const sim::Catalogue& catalogue) {
  sim::Evidence out;
  const auto append = [](std::vector<sim::Residual>& to, std::vector<sim::Residual> more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const auto* results : {&training, &sweep, &modern}) {
    append(out.steps, step_residuals(*results));
    append(out.memory, memory_residuals(*results));
  }
  append(out.memory, peak_residuals(what_ran));
  for (const auto* results : {&sweep, &what_ran}) {
    append(out.died, card_residuals(*results, true));
    append(out.fitted, card_residuals(*results, false));
  }
  out.collectives = collective_residuals(measurements + "/collectives.csv", catalogue);
  out.pairs = pair_counts(scored_of(training, sweep));
  out.shift = shift_of_kernels(measurements + "/kernels.csv", catalogue);
  out.unmeasured_gpu = growth_on_unmeasured(measurements, catalogue);
  return out;
}

}  // namespace stepcast::validate
