#include "sim/output/stored_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/output/crash_note.hpp"
#include "sim/output/row_log.hpp"
#include "sim/program/progress.hpp"
#include "sim/program/shard.hpp"

namespace stepcast::sim {

namespace fs = std::filesystem;

StoredStudy stored_study(const std::string& folder, const std::string& verb) {
  const bool sweep = verb == "sweep";
  const auto mark = read_mark(folder);
  if (!mark || mark->verb != (sweep ? "" : verb))
    throw InputError(folder, "is no folder of a " + verb, "stepcast " + verb + " --out makes one");
  refuse_foreign_files(folder, mark);
  const std::string path = (fs::path(folder) / "scenario.toml").string();
  // Under the name of its origin: what it names lies beside that.
  StoredStudy out{*mark, read_toml(read_toml_text(path), mark->from.empty() ? path : mark->from)};
  if (sweep && out.document.find("sweep") == nullptr)
    throw InputError(folder, "holds a single run", "it has no points to put together");
  return out;
}

namespace {

/// Each file of rows, its rows handed out one by one but for the one that says that it is finished.
std::vector<KeptFile> kept_files(const std::string& folder,
                                 const std::function<void(const LoggedRow&)>& take) {
  std::vector<KeptFile> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!is_log(name)) continue;
    KeptFile& file = out.emplace_back(KeptFile{name});
    read_rows(entry.path().string(), [&](const LoggedRow& row) {
      file.finished = row.row == finished_row;
      if (file.finished) return;
      ++file.rows;
      take(row);
    });
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path());
    file.age_s = std::max(0.0, std::chrono::duration<double>(age).count());
  }
  std::ranges::sort(out, {}, &KeptFile::name);
  return out;
}

}  // namespace

std::size_t SweepStatus::missing() const {
  return points - std::min(points, answered + refused + failed);
}

SweepStatus status_of(const std::string& folder, const Study& study) {
  using State = PointRows::State;
  SweepStatus out;
  out.points = study.num_points();
  std::unordered_map<PointId, State> states;
  out.files = kept_files(folder, [&](const LoggedRow& row) {
    if (is_crash(row.row)) return;
    const State state = PointRows::state_of(row.row);
    State& known = states.try_emplace(PointId(row.id), state).first->second;
    if (state != State::failed) known = state;
  });
  for (const auto& [id, state] : states) {
    out.answered += state == State::answered ? 1 : 0;
    out.refused += state == State::refused ? 1 : 0;
    out.failed += state == State::failed ? 1 : 0;
  }
  return out;
}

namespace {

std::string files_text(const std::vector<KeptFile>& files) {
  std::string out;
  for (const KeptFile& file : files)
    if (file.rows > 0 || file.finished)
      out += fmt::format("  {:<28} {:>8} rows, the last one {} ago{}\n", file.name, file.rows,
                         clock_text(file.age_s), file.finished ? ", finished" : "");
  return out;
}

Form<KeptFile> file_form() {
  using F = const KeptFile&;
  return Form<KeptFile>()
      .has("name", "", [](F f) { return f.name; })
      .has("rows", "", [](F f) { return f.rows; })
      .has("age_s", "Since a row was added.", [](F f) { return f.age_s; });
}

const Form<SweepStatus>& sweep_status_form() {
  using S = const SweepStatus&;
  static const Form<SweepStatus> form =
      Form<SweepStatus>()
          .has("points", "Of the sweep.", [](S s) { return s.points; })
          .has("answered", "", [](S s) { return s.answered; })
          .has("refused", "Plans that are impossible or do not fit.", [](S s) { return s.refused; })
          .has("failed", "Errors of stepcast itself.", [](S s) { return s.failed; })
          .has("missing", "Not yet run.", [](S s) { return s.missing(); })
          .list("files", "Of rows.", file_form(), [](S s) { return s.files; });
  return form;
}

const Form<PlansStatus>& plans_status_form() {
  using S = const PlansStatus&;
  static const Form<PlansStatus> form =
      Form<PlansStatus>()
          .has("plans", "That were simulated.", [](S s) { return s.plans; })
          .has("finished", "", [](S s) { return s.unfinished.empty(); })
          .has("unfinished", "Shards, \"2/8\", or \"the whole\".", [](S s) { return s.unfinished; })
          .list("files", "Of rows.",
                file_form().has("finished", "Whether its last row says so.",
                                [](const KeptFile& f) { return f.finished; }),
                [](S s) { return s.files; });
  return form;
}

}  // namespace

std::string status_text(const SweepStatus& s) {
  return fmt::format("{} points: {} answered, {} refused, {} failed, {} missing\n", s.points,
                     s.answered, s.refused, s.failed, s.missing()) +
         files_text(s.files);
}

std::string status_json(const SweepStatus& s) {
  return json_text(stamped("sweep-status", sweep_status_form().json(s)), 2) + "\n";
}

std::vector<std::string> unfinished_parts(const std::string& folder,
                                          const std::function<bool(const std::string&)>& finished) {
  std::set<std::size_t> divisions{1};
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); is_log(name))
      divisions.insert(shard_of_name(part_of_log(name)).of);
  std::optional<std::vector<std::string>> least;
  for (const std::size_t of : divisions) {
    std::vector<std::string> missing;
    for (Shard shard{1, of}; shard.index <= of; ++shard.index)
      if (!finished(shard.name()))
        missing.push_back(shard.is_part() ? fmt::format("{}/{}", shard.index, of) : "the whole");
    if (missing.empty()) return {};
    // Of a folder of shards nobody asked for the whole at once.
    if (!least || least->front() == "the whole" || missing.size() < least->size())
      least = std::move(missing);
  }
  return *least;
}

std::string words_of(const std::vector<std::string>& parts) {
  constexpr std::size_t most = 5;
  const std::size_t shown = std::min(most, parts.size());
  std::string out = fmt::format(
      "{}", fmt::join(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (parts.size() > shown) out += fmt::format(" and {} others", parts.size() - shown);
  return out;
}

PlansStatus plans_status_of(const std::string& folder) {
  PlansStatus out;
  std::unordered_set<PointId> plans;
  out.files = kept_files(folder, [&](const LoggedRow& row) { plans.insert(PointId(row.id)); });
  out.plans = plans.size();
  out.unfinished = unfinished_parts(folder, [&](const std::string& part) {
    const auto file = std::ranges::find(out.files, log_name(part), &KeptFile::name);
    return file != out.files.end() && file->finished;
  });
  return out;
}

std::string status_text(const PlansStatus& s) {
  std::string out = fmt::format("{} plans simulated; ", s.plans);
  out += s.unfinished.empty() ? "finished" : "not finished: " + words_of(s.unfinished);
  return out + "\n" + files_text(s.files);
}

std::string status_json(const PlansStatus& s) {
  return json_text(stamped("plans-status", plans_status_form().json(s)), 2) + "\n";
}

nlohmann::ordered_json sweep_status_schema() {
  return document_schema("sweep-status", "What stepcast sweep --status prints.",
                         sweep_status_form().schema_of());
}
nlohmann::ordered_json plans_status_schema() {
  return document_schema("plans-status", "What stepcast search --status and design --status print.",
                         plans_status_form().schema_of());
}

}  // namespace stepcast::sim
