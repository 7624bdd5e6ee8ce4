#include "sim/study/point_row.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {

namespace {

using Json = nlohmann::ordered_json;

/// What JSON allows between two words.
void skip_blank(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
}

/// Takes a text off, and returns what stands between its quotes.
std::string_view next_text(std::string_view& rest) {
  std::size_t end = 1;
  while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2U : 1U;
  expects(end < rest.size(), "a row's texts are closed");
  const std::string_view inside = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return inside;
}

/// Takes an array off.
void skip_array(std::string_view& rest) {
  for (int depth = 0; !rest.empty();) {
    if (rest.front() == '"') {
      next_text(rest);
      continue;
    }
    depth += rest.front() == '[' ? 1 : rest.front() == ']' ? -1 : 0;
    rest.remove_prefix(1);
    if (depth == 0) return;
  }
}

std::string unescaped(std::string_view inside) {
  if (inside.find('\\') == std::string_view::npos) return std::string(inside);
  return parsed_ordered_json("\"" + std::string(inside) + "\"").get<std::string>();
}

}  // namespace

PointRow::PointRow(std::string json) : json_(std::make_unique<const std::string>(std::move(json))) {
  std::string_view rest = *json_;
  skip_blank(rest);
  if (rest.starts_with('{')) note_members(rest);
}

/// Takes a value off, with the blanks behind it, and returns it without them.
std::string_view PointRow::note_value(std::string_view& rest) {
  const char* const begin = rest.data();
  if (rest.starts_with('{'))
    note_members(rest);
  else if (rest.starts_with('['))
    skip_array(rest);
  else if (rest.starts_with('"'))
    next_text(rest);
  else
    rest.remove_prefix(std::min(rest.find_first_of(",}] \t\r\n"), rest.size()));
  const std::string_view value(begin, static_cast<std::size_t>(rest.data() - begin));
  skip_blank(rest);
  return value;
}

/// Takes an object off.
void PointRow::note_members(std::string_view& rest) {
  do {
    rest.remove_prefix(1);  // "{" or ","
    skip_blank(rest);
    if (!rest.starts_with('"')) break;
    const std::size_t own = members_.size();
    const std::string_view key = next_text(rest);
    members_.push_back({key, {}, 0, key.find('\\') != std::string_view::npos});
    skip_blank(rest);
    rest.remove_prefix(1);  // ":"
    skip_blank(rest);
    const std::string_view value = note_value(rest);
    members_[own].value = value;
    members_[own].next = members_.size();
  } while (rest.starts_with(','));
  expects(rest.starts_with('}'), "a row's objects are closed");
  rest.remove_prefix(1);
}

bool PointRow::is_named(const Member& member, std::string_view name) {
  return member.escaped ? unescaped(member.key) == name : member.key == name;
}

std::optional<PointRow::Found> PointRow::find(std::string_view path) const {
  Found out{*json_, 0, members_.size()};
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    std::size_t at = out.first;
    while (at < out.end && !is_named(members_[at], name)) at = members_[at].next;
    if (at >= out.end) return std::nullopt;
    out = {members_[at].value, at + 1, members_[at].next};
    path = path.find('.') == std::string_view::npos ? "" : path.substr(path.find('.') + 1);
  }
  return out;
}

std::optional<double> PointRow::number(std::string_view path) const {
  const auto found = find(path);
  return found ? number_in<double>(found->value) : std::nullopt;
}

std::optional<std::string> PointRow::text(std::string_view path) const {
  const auto found = find(path);
  if (!found || !found->value.starts_with('"')) return std::nullopt;
  return unescaped(found->value.substr(1, found->value.size() - 2));
}

std::optional<bool> PointRow::flag(std::string_view path) const {
  const auto found = find(path);
  if (!found || (found->value != "true" && found->value != "false")) return std::nullopt;
  return found->value == "true";
}

std::optional<std::string> PointRow::written(std::string_view path) const {
  const auto found = find(path);
  if (!found || found->value == "null") return std::nullopt;
  return std::string(found->value);
}

std::vector<std::string> PointRow::texts(std::string_view path) const {
  std::vector<std::string> out;
  const auto found = find(path);
  if (!found || !found->value.starts_with('[') || found->value == "[]") return out;
  for (const Json& one : parsed_ordered_json(found->value)) out.push_back(one.get<std::string>());
  return out;
}

std::vector<std::pair<std::string, std::string>> PointRow::leaves(std::string_view path) const {
  std::vector<std::pair<std::string, std::string>> out;
  const auto found = find(path);
  if (!found || !found->value.starts_with('{')) return out;
  for (std::size_t at = found->first; at < found->end; at = members_[at].next) {
    const std::string inner = std::string(path) + "." + unescaped(members_[at].key);
    if (!members_[at].value.starts_with('{')) out.emplace_back(inner, members_[at].value);
    for (auto& leaf : leaves(inner)) out.push_back(std::move(leaf));
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

void PointRows::set(std::size_t point, std::string_view json) {
  const RowPlace place{nullptr, static_cast<std::int64_t>(texts_.add(json)), 0};
  entries_[point] = {state_of(json), place};
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
  return texts_.text(static_cast<std::size_t>(place.offset));
}

}  // namespace stepcast::sim
