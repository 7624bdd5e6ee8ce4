#include "sim/output/stored_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/check.hpp"
#include "sim/output/crash_note.hpp"
#include "sim/output/row_log.hpp"
#include "sim/program/progress.hpp"

namespace stepcast::sim {

namespace fs = std::filesystem;

StoredStudy stored_study(const std::string& folder) {
  const auto mark = read_mark(folder);
  if (!mark) throw InputError(folder, "is no folder of a sweep", "stepcast sweep --out makes one");
  refuse_foreign_files(folder, mark);
  const std::string path = (fs::path(folder) / "scenario.toml").string();
  // Under the name of its origin: what it names lies beside that.
  StoredStudy out{*mark, read_toml(read_toml_text(path), mark->from.empty() ? path : mark->from)};
  if (out.document.find("sweep") == nullptr)
    throw InputError(folder, "holds a single run", "it has no points to put together");
  return out;
}

std::size_t SweepStatus::missing() const {
  return points - std::min(points, answered + refused + failed);
}

SweepStatus status_of(const std::string& folder, const Study& study) {
  using State = PointRows::State;
  SweepStatus out;
  out.points = study.num_points();
  std::unordered_map<PointId, State> states;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!is_log(name)) continue;
    SweepStatus::File& file = out.files.emplace_back(SweepStatus::File{name});
    read_rows(entry.path().string(), [&](const LoggedRow& row) {
      ++file.rows;
      if (is_crash(row.row)) return;
      const State state = PointRows::state_of(row.row);
      State& known = states.try_emplace(PointId(row.id), state).first->second;
      if (state != State::failed) known = state;
    });
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path());
    file.age_s = std::max(0.0, std::chrono::duration<double>(age).count());
  }
  std::ranges::sort(out.files, {}, &SweepStatus::File::name);
  for (const auto& [id, state] : states) {
    out.answered += state == State::answered ? 1 : 0;
    out.refused += state == State::refused ? 1 : 0;
    out.failed += state == State::failed ? 1 : 0;
  }
  return out;
}

std::string status_text(const SweepStatus& s) {
  std::string out = fmt::format("{} points: {} answered, {} refused, {} failed, {} missing\n",
                                s.points, s.answered, s.refused, s.failed, s.missing());
  for (const SweepStatus::File& file : s.files)
    if (file.rows > 0)
      out += fmt::format("  {:<28} {:>8} rows, the last one {} ago\n", file.name, file.rows,
                         clock_text(file.age_s));
  return out;
}

std::string status_json(const SweepStatus& s) {
  nlohmann::ordered_json out{{"points", s.points},     {"answered", s.answered},
                             {"refused", s.refused},   {"failed", s.failed},
                             {"missing", s.missing()}, {"files", nlohmann::ordered_json::array()}};
  for (const SweepStatus::File& file : s.files)
    out["files"].push_back({{"name", file.name}, {"rows", file.rows}, {"age_s", file.age_s}});
  return out.dump(2) + "\n";
}

}  // namespace stepcast::sim
