#include "sim/output/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "engine/check.hpp"
#include "sim/confidence/evidence.hpp"
#include "sim/program/command_line.hpp"
#include "sim/report/results_file.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/tables/calibration_file.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view line_begin = "{\"id\":\"",
                           line_middle = "\",\"result\":", line_end = "}";
constexpr std::size_t id_length = 36;
constexpr std::size_t row_begin = line_begin.size() + id_length + line_middle.size();

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw InputError("--out", what, hint);
}

bool try_lock(int file, int how) {
  if (flock(file, how | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  std::fputs("stepcast: --out: this file system has no locks: let no second program write there\n",
             stderr);
  return true;
}

/// Another shard holds the folder alone only while it prepares it.
bool wait_for_shards(int file) {
  constexpr auto pause = std::chrono::milliseconds(20);
  for (int i = 0; i < 500; ++i) {
    if (try_lock(file, LOCK_SH)) return true;
    std::this_thread::sleep_for(pause);
  }
  return false;
}

/// The program, and the constants of its network model.
/// Of what error bars are made of; "" where a catalogue has none.
std::string id_of_evidence(const std::string& folder) {
  std::string out;
  for (const std::string& file : evidence_files(folder)) {
    std::error_code error;
    if (fs::exists(file, error)) out += id_of_file(file);
  }
  return out;
}

std::string constants_of(const std::string& catalogue) {
  std::string out = version_text() + id_of_file(catalogue + "/network/fitted.toml");
  std::set<fs::path> versions;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(catalogue + "/nccl", error))
    versions.insert(entry.path());
  for (const fs::path& path : versions) out += id_of_file(path);
  out += id_of_evidence(catalogue + "/confidence");
  return out;
}

}  // namespace

OutputFolder::OutputFolder(OutputRequest request, const Study& study, const std::string& catalogue)
    : request_(std::move(request)),
      constants_id_(constants_of(catalogue)),
      study_id_(id_of_text(write_toml(study.whole))),
      is_sweep_(study.is_sweep) {
  const std::string& folder = request_.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw InputError("--out", "cannot make the folder '" + folder + "'");
  lock();
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) close(lock_);
}

void OutputFolder::lock() {
  const std::string& folder = request_.folder;
  const bool shard = request_.shard.of > 1;
  lock_ = open((folder + "/.stepcast.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw InputError("--out", "cannot write into '" + folder + "'");
  const bool alone = try_lock(lock_, LOCK_EX);
  if (!alone && !(shard && wait_for_shards(lock_)))
    refuse("'" + folder + "' is being written by another stepcast",
           "take another folder, or give each its --shard I/N");
  if (alone) finish_replacing(folder);
  choose_place();
  if (is_sweep_) open_log();
  if (alone && shard && !try_lock(lock_, LOCK_SH))
    refuse("'" + folder + "' is being written by another stepcast", "take another folder");
}

void OutputFolder::choose_place() {
  const std::string& folder = request_.folder;
  const std::string staging = staging_in(folder);
  const auto owner = read_mark(folder), next = read_mark(staging);
  refuse_foreign_files(folder, owner);
  const bool goes_on = request_.resume || request_.shard.of > 1;
  if (request_.resume && next && next->study == study_id_) {
    place_ = staging;
  } else if (!owner || (goes_on && owner->study == study_id_)) {
    place_ = folder;
  } else if (goes_on) {
    refuse("'" + folder + "' belongs to another study",
           "without --resume and --shard it is replaced once the new one is whole");
  } else {
    fs::remove_all(staging);
    place_ = staging;
  }
  std::error_code error;
  fs::create_directories(place_, error);
  if (!read_mark(place_)) write_mark(place_, {study_id_, ""});
}

std::string OutputFolder::log_name() const {
  const Shard& shard = request_.shard;
  return shard.of > 1 ? fmt::format("results.{}-of-{}.jsonl", shard.index, shard.of)
                      : "results.jsonl";
}

void OutputFolder::open_log() {
  const std::string own = (fs::path(place_) / log_name()).string();
  if (request_.shard.of > 1 && !request_.resume && fs::exists(own))
    refuse("'" + own + "' is there already", "--resume goes on with it, or take another folder");
  for (const auto& entry : fs::directory_iterator(place_))
    if (is_log(entry.path().filename().string()) && entry.path() != own)
      read_lines(entry.path().string(), O_RDONLY);
  read_lines(own, O_RDWR | O_CREAT | O_APPEND);
  if (!try_lock(files_.back()->descriptor(), LOCK_EX))
    refuse("shard " + log_name() + " is being written by another stepcast", "let it end");
  if (ftruncate(files_.back()->descriptor(), end_) != 0)  // a torn last line
    throw OutputError(own, "cannot be written");
  fs::create_directories(fs::path(place_) / "points");
}

/// Whole lines only: the last one may be torn, or being written.
void OutputFolder::read_lines(const std::string& path, int how) {
  const int file = open(path.c_str(), how | O_CLOEXEC, 0666);
  if (file < 0) throw OutputError(path, "cannot be opened");
  files_.push_back(std::make_unique<RowFile>(file));
  std::ifstream stream(path, std::ios::binary);
  end_ = 0;
  std::int64_t number = 1;
  for (std::string line; std::getline(stream, line) && !stream.eof(); ++number) {
    const std::string_view text = line;
    const bool shaped = text.size() > row_begin && text.starts_with(line_begin) &&
                        text.substr(line_begin.size() + id_length).starts_with(line_middle) &&
                        nlohmann::json::accept(text.begin(), text.end());
    if (!shaped)
      throw InputError(path + ":" + std::to_string(number), "is no row of a sweep",
                       "take the line out: --resume runs its point again");
    const std::string_view row = text.substr(row_begin, text.size() - row_begin - line_end.size());
    const PointRows::State state = PointRows::state_of(row);
    const RowPlace place{files_.back().get(), end_ + static_cast<std::int64_t>(row_begin),
                         static_cast<std::uint32_t>(row.size())};
    if (state != PointRows::State::failed)
      known_[std::string(text.substr(line_begin.size(), id_length))] = {place, state};
    end_ += static_cast<std::int64_t>(line.size()) + 1;
  }
}

std::string OutputFolder::content_id(const std::string& path) {
  const std::lock_guard lock(reading_);
  std::string& id = contents_[path];
  if (id.empty()) id = id_of_file(path);
  return id;
}

PointId OutputFolder::id_of(const Scenario& scenario, const SweepPoint& point) {
  const RunOptions& run = scenario.run;
  std::string text = constants_id_ + write_toml(resolved_document(scenario));
  for (const std::string& table : scenario.tables) text += content_id(calibration_file(table));
  for (const std::string& runs : scenario.runs) text += content_id(runs);
  for (const bool flag : {run.fold, run.check_fold, run.ignore_memory, run.explain, run.stepped})
    text += flag ? '1' : '0';
  for (const Setting& setting : point)
    text += "\n" + setting.path + "=" + write_toml_value(setting.value);
  return id_of_text(text);
}

PointId OutputFolder::id_of(const TomlValue& document) const {
  return id_of_text(version_text() + write_toml(document));
}

const KnownRow* OutputFolder::find(const PointId& id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second;
}

std::optional<RowPlace> OutputFolder::append(const PointId& id, const std::string& row) {
  if (!is_sweep_) return std::nullopt;
  std::string line;
  line.append(line_begin).append(id).append(line_middle).append(row).append(line_end).append("\n");
  const RowFile& file = *files_.back();
  const ssize_t written = write(file.descriptor(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    unwritten_ = OutputError((fs::path(place_) / log_name()).string(), "cannot be written",
                             "is the disk full? --resume goes on");
    ensures(ftruncate(file.descriptor(), end_) == 0, "a file can be cut");
    return std::nullopt;
  }
  const RowPlace place{&file, end_ + static_cast<std::int64_t>(row_begin),
                       static_cast<std::uint32_t>(row.size())};
  end_ += written;
  return place;
}

/// Not synced: without its line in the log, which comes later, nobody relies on it.
void OutputFolder::write_point(std::size_t index, const Scenario& resolved) {
  if (!is_sweep_) return;
  const fs::path path = fs::path(place_) / "points" / fmt::format("{:04}.toml", index + 1);
  std::ofstream file(path, std::ios::binary);
  file << write_toml(resolved_document(resolved));
  file.close();
  if (file) return;
  const std::lock_guard lock(reading_);
  unwritten_ = OutputError(path.string(), "cannot be written", "is the disk full?");
}

void OutputFolder::finish(const Results& results) {
  if (unwritten_) throw OutputError(*unwritten_);
  if (is_sweep_) fsync(files_.back()->descriptor());
  if (request_.shard.of > 1) return;
  write_reports(place_, study_id_, results);
  if (place_ != request_.folder && !results.interrupted) replace_by_staging(request_.folder);
}

}  // namespace stepcast::sim
