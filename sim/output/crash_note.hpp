// A point that ends the whole program is told of in the file of finished points, so that it is not
// run for ever: {"id":"...","result":{"crashed":11}}, by the number of the signal. What SIGKILL
// ends is not told of: it says nothing about the point. Knows no study.
#pragma once

#include <string_view>

#include "sim/output/row_log.hpp"

namespace stepcast::sim {

/// While it lives, a fatal signal of this thread (SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL) writes
/// such a line, then ends the program as it would have.
class CrashNote {
 public:
  CrashNote(const RowFile& file, const PointId& id);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

bool is_crash(std::string_view row);

}  // namespace stepcast::sim
