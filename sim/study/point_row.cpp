#include "sim/study/point_row.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {

using Json = nlohmann::ordered_json;

PointRow::PointRow(std::string_view json)
    : json_(std::make_unique<const Json>(Json::parse(json.begin(), json.end()))) {}
PointRow::~PointRow() = default;
PointRow::PointRow(PointRow&&) noexcept = default;

const Json* PointRow::find(std::string_view path) const {
  const Json* at = json_.get();
  while (at != nullptr && !path.empty()) {
    const auto found = at->find(path.substr(0, path.find('.')));
    at = found == at->end() ? nullptr : &*found;
    path = path.find('.') == std::string_view::npos ? "" : path.substr(path.find('.') + 1);
  }
  return at;
}

std::optional<double> PointRow::number(std::string_view path) const {
  const Json* found = find(path);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<std::string> PointRow::text(std::string_view path) const {
  const Json* found = find(path);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::vector<std::string> PointRow::texts(std::string_view path) const {
  std::vector<std::string> out;
  if (const Json* found = find(path); found != nullptr && found->is_array())
    for (const Json& one : *found) out.push_back(one.get<std::string>());
  return out;
}

std::vector<std::pair<std::string, std::string>> PointRow::leaves(std::string_view path) const {
  std::vector<std::pair<std::string, std::string>> out;
  const Json* found = find(path);
  if (found == nullptr || !found->is_object()) return out;
  for (const auto& [key, value] : found->items()) {
    const std::string at = std::string(path) + "." + key;
    if (!value.is_object()) out.emplace_back(at, value.dump());
    for (auto& leaf : leaves(at)) out.push_back(std::move(leaf));
  }
  return out;
}

std::optional<std::string> PointRow::unanswered() const {
  for (const char* word : {"refused", "failed"})
    if (const auto reason = text(word)) return std::string(word) + ": " + *reason;
  return std::nullopt;
}

RowFile::~RowFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RowFile::RowFile(RowFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string RowFile::read(std::int64_t offset, std::size_t length) const {
  std::string text(length, '\0');
  std::size_t had = 0;
  while (had < length) {
    const ssize_t now =
        pread(descriptor_, text.data() + had, length - had, offset + static_cast<off_t>(had));
    ensures(now > 0, "a row that was written can be read");
    had += static_cast<std::size_t>(now);
  }
  return text;
}

PointRows::State PointRows::state_of(std::string_view json) {
  if (json.starts_with("{\"refused\":")) return State::refused;
  if (json.starts_with("{\"failed\":")) return State::failed;
  return State::answered;
}

void PointRows::set(std::size_t point, std::string json) {
  const RowPlace place{nullptr, static_cast<std::int64_t>(texts_.size()), 0};
  entries_[point] = {state_of(json), place};
  texts_.push_back(std::move(json));
}

void PointRows::set(std::size_t point, const RowPlace& place, State state) {
  entries_[point] = {state, place};
}

std::size_t PointRows::count(State state) const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.state == state; }));
}

std::string PointRows::json(std::size_t point) const {
  const auto& [state, place] = entries_[point];
  expects(state != State::missing, "only a finished point has a row");
  if (place.file != nullptr) return place.file->read(place.offset, place.length);
  return texts_[static_cast<std::size_t>(place.offset)];
}

}  // namespace stepcast::sim
