// The folder of --out. It belongs to one study, whose points are kept there line by line as they
// end; another study replaces it only as a whole, and nothing of the user's is ever overwritten.
// Knows neither how a report looks (results_file.hpp) nor what answers a scenario.
//
//   sweep.json                  whose folder it is
//   results.jsonl               one line per finished point; results.2-of-8.jsonl of a shard
//   points/0001.toml            every point resolved
//   scenario.toml, results.json, results.h5
//   stepcast.new/               another study, until it is whole
//   .stepcast.lock              held by who writes
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/files/whole_file.hpp"
#include "sim/output/study_run.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

struct OutputRequest {
  std::string folder;
  bool resume = false;  // go on with what is there of the same study
  Shard shard{};
};

/// Hash of all that a point's row depends on: the resolved scenario with its seed, the calibration
/// tables and the constants of the network, the version of the program; and of what the point sets.
using PointId = std::string;

/// A row of an earlier run.
struct KnownRow {
  RowPlace place;
  PointRows::State state{};
};

class OutputFolder {
 public:
  /// Makes the folder and takes it: no second program writes there, but other shards of the same
  /// study. Throws InputError (where: --out) when it is in use, is another study's that --resume or
  /// --shard cannot go on with, or holds files that would be overwritten and are not ours.
  OutputFolder(OutputRequest request, const Study& study, const std::string& catalogue);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  PointId id_of(const Scenario& scenario, const SweepPoint& point);
  /// Of a point that cannot be read.
  PointId id_of(const TomlValue& document) const;

  /// The row of an earlier run; null where there is none or it failed.
  const KnownRow* find(const PointId& id) const;
  /// None where it cannot be written: finish() tells.
  std::optional<RowPlace> append(const PointId& id, const std::string& row);
  void write_point(std::size_t index, const Scenario& resolved);

  /// Writes the reports; of a shard none. A study that was interrupted does not replace another.
  /// Throws OutputError, what was there before unharmed.
  void finish(const Results& results);

  /// Where the files are: the folder, or a part of it while it is another study's.
  const std::string& place() const { return place_; }

 private:
  void lock();
  void choose_place();
  void open_log();
  void read_lines(const std::string& path, int how);
  std::string content_id(const std::string& path);
  std::string log_name() const;

  OutputRequest request_;
  std::string constants_id_, study_id_, place_;
  bool is_sweep_ = false;
  int lock_ = -1;
  std::vector<std::unique_ptr<RowFile>> files_;  // the last one is this program's own
  std::int64_t end_ = 0;                         // of our own file
  std::unordered_map<PointId, KnownRow> known_;
  std::optional<OutputError> unwritten_;
  std::mutex reading_;
  std::map<std::string, std::string> contents_;  // content_id by path
};

}  // namespace stepcast::sim
