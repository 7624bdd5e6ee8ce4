// The folder of --out. It belongs to one study, whose points are kept there line by line as they
// end; another study replaces it only as a whole, and nothing of the user's is ever overwritten.
// Knows neither how a report looks (results_file.hpp) nor what answers a scenario.
//
//   sweep.json                  whose folder it is
//   results.jsonl               one line per finished point (row_log.hpp); results.2-of-8.jsonl of
//                               a shard, results.rank-3.jsonl of a process of stepcast-sweep
//   points/0001.toml            every point resolved; none of a long sweep
//   scenario.toml, results.json, results.h5
//   search.json, ...            of a verb whose answer comes of plans (kept_steps.hpp), each a line
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
#include "sim/output/row_log.hpp"
#include "sim/study/output_place.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

struct OutputRequest {
  std::string folder;
  bool resume = false;  // go on with what is there of the same study
  std::string part{};   // "2-of-8", whose file is results.2-of-8.jsonl; empty: the whole study
  std::vector<std::string> options{};  // that change answers, "ignore-memory"
  std::string verb{};  // "search": one whose answer comes of plans. No other study replaces it.
};

/// A row of an earlier run.
struct KnownRow {
  RowPlace place;
  PointRows::State state{};
};

/// Of the same id are runs of one study: its document, and options that change answers.
std::string study_id(const Study& study, const std::vector<std::string>& options);

class OutputFolder {
 public:
  /// Makes the folder and takes it: no second program writes there, but other parts of the same
  /// study. Throws InputError (where: --out) when it is in use, is another study's that --resume or
  /// a part cannot go on with, or holds files that would be overwritten and are not ours.
  OutputFolder(OutputRequest request, const Study& study, const std::string& catalogue);
  /// Of `request.verb`, which goes on with what is there only if it is asked to.
  OutputFolder(OutputRequest request, const TomlValue& document, const std::string& catalogue);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  PointId id_of(const Scenario& scenario, const SweepPoint& point);
  /// Of a point that cannot be read.
  PointId id_of(const TomlValue& document) const;

  /// The row of an earlier run, one that did not fail if there is one; null where there is none.
  const KnownRow* find(const PointId& id) const;
  /// How often the point has ended the program (crash_note.hpp).
  std::size_t crashes(const PointId& id) const;
  /// Where to note that it does; null without a file of points.
  const RowFile* own_file() const { return log_ ? own_.get() : nullptr; }
  /// None where it cannot be written: finish() tells.
  std::optional<RowPlace> append(const PointId& id, const std::string& row);
  void write_point(std::size_t index, const Scenario& resolved);

  /// Writes the reports; of a part none. A study that was interrupted does not replace another.
  /// Throws OutputError, what was there before unharmed.
  void finish(const Results& results);

  /// Knows as well what other parts have added since. Returns whether that is anything.
  bool look_again();
  /// Of a verb whose answer comes of plans: all that this part has to do is there.
  void note_finished();
  /// What is not finished of a study: of the division into shards that lacks least, "2/8". Of one
  /// that is not divided "the whole"; empty: nothing.
  std::vector<std::string> unfinished() const;
  /// answer_files.hpp; throws OutputError also where a row could not be written.
  void write_answer(const NamedTexts& files);

  /// Where the files are: the folder, or a part of it while it is another study's.
  const std::string& place() const { return place_; }

 private:
  OutputFolder(OutputRequest request, const TomlValue& document, bool keeps_rows,
               const std::string& catalogue);
  void lock();
  void choose_place(bool alone);
  void begin_place(bool anew);
  void open_log();
  /// A file of rows, as far as it is known.
  struct Log {
    std::unique_ptr<RowFile> file;
    std::int64_t end = 0;
  };
  static std::unique_ptr<RowFile> open_file(const std::string& path, int how);
  std::int64_t read_lines(const std::string& path, const RowFile& file, std::int64_t from);
  std::string content_id(const std::string& path);
  bool keeps_rows() const { return !document_.empty(); }
  bool has_plans() const { return !request_.verb.empty(); }
  PointId finished_id(const std::string& part) const;
  bool is_part() const { return !request_.part.empty(); }
  OutputMark own_mark(const std::string& scenario) const;
  void settle_rows();
  std::string own_log() const { return place_ + "/" + log_name(request_.part); }
  /// The first error of all threads; finish() throws it.
  void note_unwritten(OutputError error);

  OutputRequest request_;
  std::string constants_id_, from_;
  std::string document_;  // of what keeps rows
  std::string study_id_, place_;
  std::optional<RowFile> lock_;        // while it is open
  std::map<std::string, Log> others_;  // by path
  std::unique_ptr<RowFile> own_;
  std::optional<RowLog> log_;
  std::unordered_map<PointId, KnownRow> known_;
  std::unordered_map<PointId, std::size_t> crashes_;
  std::mutex noting_;  // of unwritten_
  std::optional<OutputError> unwritten_;
  std::mutex reading_;                           // of contents_
  std::map<std::string, std::string> contents_;  // content_id by path
};

}  // namespace stepcast::sim
