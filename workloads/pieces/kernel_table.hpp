// The distinct kernels and collectives of a step: the same description gets the same index.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/pieces/operations.hpp"

namespace stepcast::workloads {

class KernelTable {
 public:
  std::uint32_t index_of(Kernel kernel);
  std::uint32_t index_of(Collective collective);

  /// A kernel that only moves bytes: FLOPs of element-wise work (below 0.1 % of a step) are not
  /// counted.
  std::uint32_t pass(std::string name, KernelFamily family, Dtype dtype, std::int64_t bytes);

  std::vector<Kernel> take_kernels() { return std::move(kernels_); }
  std::vector<Collective> take_collectives() { return std::move(collectives_); }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const std::vector<Collective>& collectives() const { return collectives_; }

 private:
  using Indexes = std::unordered_map<std::string, std::vector<std::uint32_t>>;  // looked up only
  std::vector<Kernel> kernels_;
  std::vector<Collective> collectives_;
  Indexes kernels_by_name_, collectives_by_name_;
};

}  // namespace stepcast::workloads
