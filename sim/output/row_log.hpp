// The file in which one process keeps finished points, a line each as they end:
//   {"id":"...","result":{...}}
// It is only appended to, by whole lines; what a kill leaves of the last one is cut off. Knows no
// study.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/study/point_row.hpp"

namespace stepcast::sim {

/// Hash of all that a point's row depends on: the resolved scenario with its seed, the calibration
/// tables and the constants of the network, the version of the program; and of what the point sets.
using PointId = std::string;

/// A line of such a file; `offset` is where its row begins.
struct LoggedRow {
  std::string_view id, row;
  std::int64_t offset = 0;
};

/// Hands out whole lines in their order, from the end of one on; the last one may be torn, or being
/// written. Returns the end of the last whole one. Throws InputError (where: file and line) for a
/// line that is no row.
std::int64_t read_rows(const std::string& path, const std::function<void(const LoggedRow&)>& take,
                       std::int64_t from = 0);

/// This process's own file. What was written is on the disk after a second or a hundred rows.
class RowLog {
 public:
  /// Goes on behind `end`, and cuts off what is there. `file` is open for appending.
  RowLog(const RowFile& file, std::int64_t end);

  /// None where it cannot be written (the disk is full): nothing is left of the row.
  std::optional<RowPlace> append(const PointId& id, const std::string& row);
  /// False where the disk says that it has not what was written.
  bool sync();

 private:
  bool write_line(std::string_view line);

  using Clock = std::chrono::steady_clock;
  const RowFile& file_;
  std::int64_t end_;
  bool torn_ = false;  // a row that could neither be written nor cut off
  std::size_t unsynced_ = 0;
  Clock::time_point synced_ = Clock::now();
};

}  // namespace stepcast::sim
