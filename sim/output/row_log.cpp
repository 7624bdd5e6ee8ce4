#include "sim/output/row_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

constexpr std::string_view line_begin = "{\"id\":\"",
                           line_middle = "\",\"result\":", line_end = "}";
constexpr std::size_t id_length = 36;
constexpr std::size_t row_begin = line_begin.size() + id_length + line_middle.size();

// What a machine that dies may take with it: run again, not lost.
constexpr std::size_t most_unsynced = 100;
constexpr auto longest_unsynced = std::chrono::seconds(1);

bool is_row_line(std::string_view line) {
  return line.size() > row_begin && line.starts_with(line_begin) &&
         line.substr(line_begin.size() + id_length).starts_with(line_middle) &&
         nlohmann::json::accept(line.begin(), line.end());
}

}  // namespace

std::int64_t read_rows(const std::string& path, const std::function<void(const LoggedRow&)>& take,
                       std::int64_t from) {
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(from);
  std::int64_t end = from, number = 1;
  for (std::string line; std::getline(stream, line) && !stream.eof(); ++number) {
    if (!is_row_line(line))
      throw InputError(
          from == 0 ? fmt::format("{}:{}", path, number) : fmt::format("{}, byte {}", path, end),
          "is no row of a sweep", "take the line out: --resume runs its point again");
    const std::string_view text = line;
    take({text.substr(line_begin.size(), id_length),
          text.substr(row_begin, text.size() - row_begin - line_end.size()),
          end + static_cast<std::int64_t>(row_begin)});
    end += static_cast<std::int64_t>(line.size()) + 1;
  }
  return end;
}

RowLog::RowLog(const RowFile& file, std::int64_t end) : file_(file), end_(end) {
  if (ftruncate(file.descriptor(), end) != 0)
    throw OutputError("--out", "the file of finished points cannot be written");
}

std::optional<RowPlace> RowLog::append(const PointId& id, const std::string& row) {
  std::string line;
  line.append(line_begin).append(id).append(line_middle).append(row).append(line_end).append("\n");
  if (torn_ || !write_line(line)) {
    // A torn line is no row: the next one would go on with it.
    torn_ = torn_ || ftruncate(file_.descriptor(), end_) != 0;
    return std::nullopt;
  }
  const RowPlace place{&file_, end_ + static_cast<std::int64_t>(row_begin),
                       static_cast<std::uint32_t>(row.size())};
  end_ += static_cast<std::int64_t>(line.size());
  if ((++unsynced_ >= most_unsynced || Clock::now() - synced_ >= longest_unsynced) && !sync())
    return std::nullopt;
  return place;
}

bool RowLog::write_line(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(file_.descriptor(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool RowLog::sync() {
  unsynced_ = 0;
  synced_ = Clock::now();
  return fsync(file_.descriptor()) == 0 || errno == EINVAL || errno == EROFS;
}

}  // namespace stepcast::sim
