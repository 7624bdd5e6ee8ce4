// What became of one point of a study, as the JSON object that --json prints for it: what a sweep
// keeps of a point, in memory or in a file, and makes its tables from. Knows no scenario.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/study/alike_texts.hpp"

namespace stepcast::sim {

/// Reads one such object: notes where its members stand, and reads those that are asked for.
class PointRow {
 public:
  /// JSON as nlohmann's library writes it.
  explicit PointRow(std::string json);

  /// Members by path: "step_time_s", "plan.tensor". None where there is no such number, text or
  /// flag.
  std::optional<double> number(std::string_view path) const;
  std::optional<std::string> text(std::string_view path) const;
  std::optional<bool> flag(std::string_view path) const;
  /// A number or an array as JSON writes it: "1.0", "[10,12]".
  std::optional<std::string> written(std::string_view path) const;
  /// An array of texts; empty where there is none.
  std::vector<std::string> texts(std::string_view path) const;
  /// Every value inside the object at `path`, by path, as JSON writes it.
  std::vector<std::pair<std::string, std::string>> leaves(std::string_view path) const;
  /// "refused: reason" or "failed: reason"; none where the point was answered.
  std::optional<std::string> unanswered() const;

 private:
  /// A member of an object; those of its own value follow, up to the place `next`.
  struct Member {
    std::string_view key, value;  // as they stand, without the quotes of the key
    std::size_t next = 0;
    bool escaped = false;  // the key
  };
  static bool is_named(const Member& member, std::string_view name);
  std::string_view note_value(std::string_view& rest);
  void note_members(std::string_view& rest);
  /// A value as it stands, and its members, from `first` to `end`.
  struct Found {
    std::string_view value;
    std::size_t first, end;
  };
  /// None where there is no such member.
  std::optional<Found> find(std::string_view path) const;

  std::unique_ptr<const std::string> json_;  // where the members stand, wherever this goes
  std::vector<Member> members_;
};

/// Lines of rows in a file, read by place.
class RowFile {
 public:
  explicit RowFile(int descriptor) : descriptor_(descriptor) {}
  ~RowFile();
  RowFile(RowFile&& other) noexcept;
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string read(std::int64_t offset, std::size_t length) const;

 private:
  int descriptor_;
};

/// Where a row stands.
struct RowPlace {
  const RowFile* file = nullptr;
  std::int64_t offset = 0;
  std::uint32_t length = 0;
};

/// The rows of a study by point. Those in files are not held in memory.
class PointRows {
 public:
  enum class State : std::uint8_t { missing, answered, refused, failed };

  explicit PointRows(std::size_t points) : entries_(points) {}

  void set(std::size_t point, std::string_view json);
  void set(std::size_t point, const RowPlace& place, State state);
  /// The reason comes first in the object of a point without an answer.
  static State state_of(std::string_view json);

  std::size_t size() const { return entries_.size(); }
  State state(std::size_t point) const { return entries_[point].state; }
  bool has(std::size_t point) const { return state(point) != State::missing; }
  std::size_t count(State state) const;
  std::string json(std::size_t point) const;
  PointRow row(std::size_t point) const { return PointRow(json(point)); }

 private:
  struct Entry {
    State state = State::missing;
    RowPlace place;  // without a file: `offset` is a place in texts_
  };
  std::vector<Entry> entries_;
  AlikeTexts texts_;
};

}  // namespace stepcast::sim
