#include "sim/output/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "engine/check.hpp"
#include "sim/confidence/evidence.hpp"
#include "sim/output/answer_files.hpp"
#include "sim/output/crash_note.hpp"
#include "sim/output/results_file.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/tables/calibration_file.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

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

/// Of what error bars are made of; "" where a catalogue has none.
std::string id_of_evidence(const std::string& folder) {
  std::string out;
  for (const std::string& file : evidence_files(folder)) {
    std::error_code error;
    if (fs::exists(file, error)) out += id_of_file(file);
  }
  return out;
}

/// The program, and the constants of its network model.
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

/// Of "file.toml:12", where it can be found from any folder.
std::string file_of(const std::string& where) {
  std::error_code error;
  const fs::path path = fs::absolute(where.substr(0, where.rfind(':')), error);
  return error ? where : path.string();
}

std::string study_id_of(const TomlValue& document, const std::vector<std::string>& options) {
  std::string text = write_toml(document);
  for (const std::string& option : options) text += "--" + option + "\n";
  return id_of_text(text);
}

/// Whether a folder of ours holds nothing that anybody would miss.
bool holds_nothing(const fs::path& place, const OutputMark& mark) {
  if (!mark.answer.empty()) return false;
  for (const auto& entry : fs::directory_iterator(place))
    if (is_log(entry.path().filename().string()) && fs::file_size(entry) > 0) return false;
  return true;
}

}  // namespace

std::string study_id(const Study& study, const std::vector<std::string>& options) {
  return study_id_of(study.whole, options);
}

OutputFolder::OutputFolder(OutputRequest request, const Study& study, const std::string& catalogue)
    : OutputFolder(std::move(request), study.whole, study.is_sweep, catalogue) {}

OutputFolder::OutputFolder(OutputRequest request, const TomlValue& document,
                           const std::string& catalogue)
    : OutputFolder(std::move(request), document, true, catalogue) {}

OutputFolder::OutputFolder(OutputRequest request, const TomlValue& document, bool keeps_rows,
                           const std::string& catalogue)
    : request_(std::move(request)),
      constants_id_(constants_of(catalogue)),
      from_(file_of(document.where)),
      document_(keeps_rows ? write_toml(document) : ""),
      study_id_(study_id_of(document, request_.options)) {
  const std::string& folder = request_.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw OutputError("--out", "the folder '" + folder + "' cannot be written");
  lock();
}

void OutputFolder::lock() {
  const std::string& folder = request_.folder;
  lock_.emplace(
      open((folder + "/.stepcast.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  const int file = lock_->descriptor();
  if (file < 0) throw OutputError("--out", "the folder '" + folder + "' cannot be written");
  const bool alone = try_lock(file, LOCK_EX);
  if (!alone && !(is_part() && wait_for_shards(file)))
    refuse("'" + folder + "' is being written by another stepcast",
           "take another folder, or give each its --shard I/N");
  refuse_links(folder);
  if (alone) finish_replacing(folder);
  choose_place(alone);
  if (alone && is_part() && !try_lock(file, LOCK_SH))
    refuse("'" + folder + "' is being written by another stepcast", "take another folder");
  if (keeps_rows()) open_log();
}

void OutputFolder::choose_place(bool alone) {
  const std::string& folder = request_.folder;
  const std::string staging = staging_in(folder);
  const auto owner = read_mark(folder), next = read_mark(staging);
  refuse_foreign_files(folder, owner);
  const bool goes_on = request_.resume || is_part();
  const bool same = owner && owner->study == study_id_ && owner->verb == request_.verb;
  const bool plans = owner && !owner->verb.empty();
  const bool empty = plans && holds_nothing(folder, *owner);
  bool begins = !owner;
  if (request_.resume && next && next->study == study_id_) {
    place_ = staging;
    begins = false;
  } else if (!owner || (same && (goes_on || empty))) {
    place_ = folder;
  } else if (same && plans) {
    refuse("'" + folder + "': what this " + request_.verb + " found is there already",
           "--resume goes on with it, or take another folder");
  } else if (alone && empty) {
    place_ = folder;
    begins = true;
  } else if (goes_on || plans || has_plans()) {
    refuse("'" + folder + "' belongs to another study",
           plans || has_plans()
               ? "take another folder"
               : "without --resume and --shard it is replaced once the new one is whole");
  } else {
    fs::remove_all(staging);
    place_ = staging;
  }
  begin_place(begins);
}

void OutputFolder::begin_place(bool anew) {
  std::error_code error;
  fs::create_directories(place_, error);
  const fs::path scenario = fs::path(place_) / "scenario.toml";
  if (anew) fs::remove(scenario, error);  // ours, or there is none
  const OutputMark mark = own_mark(keeps_rows() ? id_of_text(document_) : "");
  const auto there = read_mark(place_);
  if (anew || !there || (keeps_rows() && there->scenario.empty())) write_mark(place_, mark);
  // After the mark, which says that it is ours. A sweep is merged from it.
  if (keeps_rows() && !fs::exists(scenario)) write_whole(scenario.string(), document_);
}

OutputMark OutputFolder::own_mark(const std::string& scenario) const {
  return {study_id_, scenario, request_.options, from_, request_.verb};
}

void OutputFolder::open_log() {
  const std::string own = own_log();
  if (is_part() && !request_.resume && fs::exists(own))
    refuse("'" + own + "' is there already", "--resume goes on with it, or take another folder");
  look_again();
  own_ = open_file(own, O_RDWR | O_CREAT | O_APPEND);
  if (!try_lock(own_->descriptor(), LOCK_EX))
    refuse("'" + own + "' is being written by another stepcast", "let it end");
  log_.emplace(*own_, read_lines(own, *own_, 0));
  std::error_code error;  // shows when the first of them is written
  if (!has_plans()) fs::create_directories(fs::path(place_) / "points", error);
}

bool OutputFolder::look_again() {
  bool more = false;
  for (const auto& entry : fs::directory_iterator(place_)) {
    const std::string path = entry.path().string();
    if (!is_log(entry.path().filename().string()) || entry.path() == own_log()) continue;
    Log& log = others_[path];
    if (log.file == nullptr) log.file = open_file(path, O_RDONLY);
    const std::int64_t end = read_lines(path, *log.file, log.end);
    more = more || end > log.end;
    log.end = end;
  }
  return more;
}

std::unique_ptr<RowFile> OutputFolder::open_file(const std::string& path, int how) {
  const int file = open(path.c_str(), how | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) throw OutputError(path, how == O_RDONLY ? "cannot be read" : "cannot be written");
  return std::make_unique<RowFile>(file);
}

std::int64_t OutputFolder::read_lines(const std::string& path, const RowFile& file,
                                      std::int64_t from) {
  const auto take = [&](const LoggedRow& logged) {
    if (is_crash(logged.row)) {
      ++crashes_[PointId(logged.id)];
      return;
    }
    const PointRows::State state = PointRows::state_of(logged.row);
    const RowPlace place{&file, logged.offset, static_cast<std::uint32_t>(logged.row.size())};
    KnownRow& known = known_[PointId(logged.id)];
    if (state != PointRows::State::failed || known.place.file == nullptr) known = {place, state};
  };
  return read_rows(path, take, from);
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

std::size_t OutputFolder::crashes(const PointId& id) const {
  const auto found = crashes_.find(id);
  return found == crashes_.end() ? 0 : found->second;
}

std::optional<RowPlace> OutputFolder::append(const PointId& id, const std::string& row) {
  if (!log_) return std::nullopt;
  auto place = log_->append(id, row);
  if (!place)
    note_unwritten({own_log(), "cannot be written", "is the disk full? --resume goes on"});
  return place;
}

void OutputFolder::note_unwritten(OutputError error) {
  const std::lock_guard lock(noting_);
  if (!unwritten_) unwritten_ = std::move(error);
}

/// Not synced: without its line in the log, which comes later, nobody relies on it.
void OutputFolder::write_point(std::size_t index, const Scenario& resolved) {
  if (!keeps_rows()) return;
  const fs::path path = fs::path(place_) / "points" / fmt::format("{:04}.toml", index + 1);
  constexpr int whole = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  std::FILE* file = nullptr;
  if (const int number = open(path.c_str(), whole, 0666); number >= 0) file = fdopen(number, "wb");
  if (file != nullptr) {
    const std::string text = write_toml(resolved_document(resolved));
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) == 0 && written) return;
    std::remove(path.c_str());  // no half one under its name
  }
  note_unwritten({path.string(), "cannot be written", "is the disk full? --resume goes on"});
}

/// Throws OutputError where any of the rows may not be on the disk.
void OutputFolder::settle_rows() {
  if (unwritten_) throw OutputError(*unwritten_);
  if (log_ && !log_->sync())
    throw OutputError(own_log(), "cannot be written",
                      "the disk says that it has not kept all of it");
}

void OutputFolder::finish(const Results& results) {
  settle_rows();
  if (is_part()) return;
  write_reports(place_, own_mark(""), results);
  if (place_ != request_.folder && !results.interrupted) replace_by_staging(request_.folder);
}

PointId OutputFolder::finished_id(const std::string& part) const {
  return id_of_text(constants_id_ + study_id_ + part);
}

void OutputFolder::note_finished() {
  if (unwritten_) throw OutputError(*unwritten_);
  const PointId id = finished_id(request_.part);
  if (find(id) == nullptr) append(id, std::string(finished_row));
  settle_rows();
}

std::vector<std::string> OutputFolder::unfinished() const {
  return unfinished_parts(
      place_, [&](const std::string& part) { return find(finished_id(part)) != nullptr; });
}

void OutputFolder::write_answer(const NamedTexts& files) {
  settle_rows();
  write_answer_files(place_, files);
}

}  // namespace stepcast::sim
