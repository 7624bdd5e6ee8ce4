// Who a GPU of the catalogue is: by which names tables, CUDA and the PCI bus know it, which GPUs
// are its generation, and in which node it usually is. All of it stands in
// scenarios/gpus/NAME.toml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

struct GpuIdentity {
  topology::GpuSpec gpu;                // without its relatives
  std::vector<std::string> aliases;     // names that leave something open and mean this GPU: "h100"
  std::vector<std::string> cuda_names;  // cudaDeviceProp.name without "NVIDIA" and "Tesla"
  std::vector<std::string> pci_ids;     // PCI device ids of NVIDIA, "0x2330"
  std::string generation;               // whose rows say something of it; else its architecture
  std::int64_t compute_capability = 0;  // 90; 0: not stated
  std::string node;                     // the node of the catalogue that it is usually in, or ""
};

/// The keys of a GPU's file that say who it is; the others are members of GpuSpec.
inline constexpr const char* identity_keys[] = {"aliases",    "cuda_names",         "pci_ids",
                                                "generation", "compute_capability", "node"};

/// Of a file of the catalogue, whose GpuSpec has been read.
GpuIdentity read_identity(const TomlValue& document, topology::GpuSpec gpu);

class GpuIdentities {
 public:
  GpuIdentities() = default;
  explicit GpuIdentities(std::vector<GpuIdentity> all);

  const std::vector<GpuIdentity>& all() const { return all_; }
  /// By its name, an alias or words of its name ("h100-pcie"), in any case, or as CUDA and
  /// nvidia-smi call it; null for others.
  const GpuIdentity* find(std::string_view name) const;
  /// Also a name of the same chip in a form or memory that the catalogue lacks: "A100-SXM-64GB".
  const GpuIdentity* nearest(std::string_view name) const;
  /// By CUDA's name: "NVIDIA H100 80GB HBM3".
  const GpuIdentity* by_cuda_name(std::string_view name) const;
  const GpuIdentity* by_pci_id(std::string_view id) const;
  /// Names and aliases, for suggestions.
  std::vector<std::string> known() const;
  /// For GpuSpec::relatives of the GPU of this name; none where the catalogue lacks it.
  std::vector<topology::GpuRelative> relatives_of(std::string_view name) const;

 private:
  std::vector<GpuIdentity> all_;  // those with an alias first
};

/// CUDA's name without "NVIDIA" and "Tesla".
std::string_view without_maker(std::string_view cuda_name);

}  // namespace stepcast::sim
