// The file that nccl-tests writes with -J (versions 1 to 3). It carries the whole environment of
// the process, which may hold secrets: the reader drops `env` and `args` while it reads, and says
// so. What the figures mean is nccl_tests.hpp's.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/import/nccl_tests.hpp"
#include "calibrate/rows/text_lines.hpp"

namespace stepcast::calibrate {

/// Throws InputError with file:line on what is no such file, on another version, and on wrong
/// types.
NcclTestsRun parse_nccl_tests_json(const std::string& path, std::string_view text,
                                   Ignored& ignored);

}  // namespace stepcast::calibrate
