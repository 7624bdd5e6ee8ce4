// A kernel of an overlap as one line for a worker, and back.
#pragma once

#include <string>
#include <variant>

#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {

using KernelTask = std::variant<GemmTask, AttentionTask>;

/// "gemm bf16 4096 4096 4096 NT 0 1"
std::string to_line(const KernelTask& task);
/// Throws InputError where the line is none of to_line's.
KernelTask kernel_from_line(const std::string& line);

}  // namespace stepcast::calibrate
