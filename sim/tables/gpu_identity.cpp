#include "sim/tables/gpu_identity.hpp"

#include <algorithm>
#include <utility>

#include "sim/files/toml_table.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::sim {
namespace {

bool holds(const std::vector<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& word) { return table_name(word) == table_name(name); });
}

}  // namespace

GpuIdentity read_identity(const TomlValue& document, topology::GpuSpec gpu) {
  TableReader table(document, "");
  GpuIdentity out;
  out.gpu = std::move(gpu);
  out.aliases = table.texts("aliases").value_or(out.aliases);
  out.cuda_names = table.texts("cuda_names").value_or(out.cuda_names);
  out.pci_ids = table.texts("pci_ids").value_or(out.pci_ids);
  table.value("architecture");
  out.generation = table.text("generation").value_or(out.gpu.architecture.name);
  out.compute_capability = table.integer("compute_capability").value_or(0);
  out.node = table.text("node").value_or("");
  return out;
}

GpuIdentities::GpuIdentities(std::vector<GpuIdentity> all) : all_(std::move(all)) {
  std::stable_partition(all_.begin(), all_.end(),
                        [](const GpuIdentity& one) { return !one.aliases.empty(); });
}

const GpuIdentity* GpuIdentities::find(std::string_view name) const {
  const GpuIdentity* best = nearest(name);
  if (best != nullptr && holds(best->aliases, name)) return best;
  if (best != nullptr && fitness(name, best->gpu.name) > fits_chip) return best;
  return by_cuda_name(name);
}

const GpuIdentity* GpuIdentities::nearest(std::string_view name) const {
  const GpuIdentity* best = nullptr;
  int most = 0;
  for (const GpuIdentity& one : all_) {
    if (holds(one.aliases, name) || table_name(one.gpu.name) == table_name(name)) return &one;
    if (const int fit = fitness(name, one.gpu.name); fit > most) most = fit, best = &one;
  }
  return best;
}

const GpuIdentity* GpuIdentities::by_cuda_name(std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const GpuIdentity& one) {
    return std::find(one.cuda_names.begin(), one.cuda_names.end(), without_maker(name)) !=
           one.cuda_names.end();
  });
  return found == all_.end() ? nullptr : &*found;
}

const GpuIdentity* GpuIdentities::by_pci_id(std::string_view id) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const GpuIdentity& one) { return holds(one.pci_ids, id); });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<std::string> GpuIdentities::known() const {
  std::vector<std::string> out;
  for (const GpuIdentity& one : all_) {
    out.push_back(one.gpu.name);
    out.insert(out.end(), one.aliases.begin(), one.aliases.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<topology::GpuRelative> GpuIdentities::relatives_of(std::string_view name) const {
  std::vector<topology::GpuRelative> out;
  const auto self = std::find_if(all_.begin(), all_.end(),
                                 [&](const GpuIdentity& one) { return one.gpu.name == name; });
  if (self == all_.end()) return out;
  for (const GpuIdentity& one : all_)
    if (one.generation == self->generation)
      out.push_back({one.gpu.name, one.gpu.tensor_peak, one.gpu.nvlink, one.gpu.fp8_peak,
                     one.gpu.fp4_peak, one.gpu.tdp, one.gpu.sms, one.gpu.memory_bandwidth});
  return out;
}

std::string_view without_maker(std::string_view cuda_name) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla "})
    if (cuda_name.starts_with(maker)) cuda_name.remove_prefix(maker.size());
  return cuda_name;
}

}  // namespace stepcast::sim
