#include "validate/published/own_kernels.hpp"

#include <algorithm>

#include "calibrate/rows/source_key.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::validate {

OwnKernels::OwnKernels(const sim::CalibrationTable& table) {
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows)
      if (row.source->confidence != "low")  // no forecast rests on these
        gpus_[calibrate::source_key(*row.source)].insert(row.gpu);
  };
  add(table.gemm);
  add(table.attention);
  add(table.elementwise);
}

bool OwnKernels::measured(const std::string& url, const std::string& gpu) const {
  sim::RowSource source;
  source.reference = url;
  const auto found = gpus_.find(calibrate::source_key(source));
  return found != gpus_.end() && std::ranges::any_of(found->second, [&](const std::string& name) {
           return sim::kinship(name, gpu) <= sim::Kinship::same_chip;
         });
}

}  // namespace stepcast::validate
