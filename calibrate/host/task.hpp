// A task as a kernel over two blocks of floats, what it reads and what it writes: device.hpp
// puts the blocks where it wants them and keeps the time. Knows no clock and no threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/device/device.hpp"

namespace stepcast::calibrate::host {

struct HostTask {
  std::size_t inputs = 0, outputs = 0;  // floats
  std::function<void(std::span<float> in, std::span<float> out)> run{};
  /// Puts sense into random outputs that the kernel reads as well (second moments are squares).
  std::function<void(std::span<float> out)> start{};
  /// Against the reference on inputs of this seed; as Prepared::relative_error.
  std::function<double(std::uint64_t seed)> check{};
  double tolerance = 0.0;
  double flops = 0.0;
  Bytes bytes{};
};

/// Throws Unsupported for what is not the host's: other types than fp32, transfers to a device.
HostTask host_task(const GemmTask& task);
HostTask host_task(const AttentionTask& task);
HostTask host_task(const ElementwiseTask& task);
HostTask host_task(const CopyTask& task);

/// Floats in [-1, 1], the same for the same seed on every machine.
std::vector<float> random_floats(std::size_t count, std::uint64_t seed);
/// Largest difference over the largest reference.
double relative_difference(std::span<const float> result, std::span<const double> reference);
void require_fp32(const std::string& dtype);

/// Takes consecutive pieces of a block.
class Pieces {
 public:
  explicit Pieces(std::span<float> block) : rest_(block) {}
  std::span<float> take(std::size_t count) {
    const std::span<float> piece = rest_.first(count);
    rest_ = rest_.subspan(count);
    return piece;
  }

 private:
  std::span<float> rest_;
};

}  // namespace stepcast::calibrate::host
