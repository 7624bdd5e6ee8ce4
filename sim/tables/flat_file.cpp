#include "sim/tables/flat_file.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

// Kinds of parts. A part is its kind, its name, and: nothing, a text, a number, or the unit, the
// number of rows and the rows. A text is its length and its bytes. Rows of text are told by their
// runs, each how often and what, behind the bytes that all runs take.
constexpr char group_part = 'g', text_part = 't', number_part = 'n';
constexpr char double_part = 'D', integer_part = 'I', texts_part = 'T';

// Rows of text of a column. A few damaged bytes may say any number of them; the shipped table has
// 6,000.
constexpr std::uint64_t most_rows = 4'000'000;

std::string attribute_of(const std::string& object, const std::string& name) {
  return object + "@" + name;
}

}  // namespace

FlatWriter::FlatWriter(const std::string& path) : whole_(path), bytes_(flat_magic) {}

void FlatWriter::number(std::uint64_t value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof value>>(value);
  bytes_.append(bytes.data(), bytes.size());
}

void FlatWriter::text(std::string_view text) {
  number(text.size());
  bytes_ += text;
}

void FlatWriter::begin(char kind, const std::string& name) {
  bytes_ += kind;
  text(name);
}

void FlatWriter::group(const std::string& name) { begin(group_part, name); }

void FlatWriter::attribute(const std::string& object, const std::string& name,
                           const std::string& value) {
  begin(text_part, attribute_of(object, name));
  text(value);
}

void FlatWriter::attribute(const std::string& object, const std::string& name, std::int64_t value) {
  begin(number_part, attribute_of(object, name));
  number(static_cast<std::uint64_t>(value));
}

void FlatWriter::column(const std::string& dataset, std::span<const double> values,
                        const std::string& unit) {
  attribute(dataset, "unit", unit);
  begin(double_part, dataset);
  number(values.size());
  for (const double value : values) number(std::bit_cast<std::uint64_t>(value));
}

void FlatWriter::column(const std::string& dataset, std::span<const std::int64_t> values,
                        const std::string& unit) {
  attribute(dataset, "unit", unit);
  begin(integer_part, dataset);
  number(values.size());
  for (const std::int64_t value : values) number(static_cast<std::uint64_t>(value));
}

void FlatWriter::column(const std::string& dataset, std::span<const std::string> values,
                        const std::string& unit) {
  if (values.size() > most_rows) throw std::length_error(dataset + ": too many rows of text");
  attribute(dataset, "unit", unit);
  begin(texts_part, dataset);
  number(values.size());
  const std::size_t size_at = bytes_.size();
  number(0);
  for (std::size_t row = 0, end; row < values.size(); row = end) {
    for (end = row + 1; end < values.size() && values[end] == values[row];) ++end;
    number(end - row);
    text(values[row]);
  }
  const auto size = std::bit_cast<std::array<char, sizeof(std::uint64_t)>>(
      std::uint64_t{bytes_.size() - size_at - sizeof(std::uint64_t)});
  bytes_.replace(size_at, size.size(), size.data(), size.size());
}

void FlatWriter::seal() {
  whole_.write(bytes_);
  whole_.seal();
}

void FlatWriter::finish() {
  seal();
  whole_.keep();
}

FlatReader::FlatReader(std::string path)
    : path_(std::move(path)), file_(path_), bytes_(file_.bytes()) {
  if (!bytes_.starts_with(flat_magic))
    throw InputError(path_, "is a flat file of columns of another version",
                     "build the program again: the build makes it");
  index(flat_magic.size());
}

void FlatReader::fail(const std::string& what) const { throw InputError(path_, what); }

std::string_view FlatReader::raw(std::size_t& at, std::uint64_t size) const {
  if (size > bytes_.size() - at) fail("is damaged");
  const std::string_view found(bytes_.data() + at, static_cast<std::size_t>(size));
  at += found.size();
  return found;
}

std::uint64_t FlatReader::number(std::size_t& at) const {
  std::uint64_t value = 0;
  std::memcpy(&value, raw(at, sizeof value).data(), sizeof value);
  return value;
}

std::string_view FlatReader::text(std::size_t& at) const { return raw(at, number(at)); }

/// Notes where every part begins, and that each ends within the file.
void FlatReader::index(std::size_t at) {
  while (at < bytes_.size()) {
    const char kind = bytes_[at++];
    const std::string_view name = text(at);
    parts_.emplace(name, Part{kind, at});
    if (kind == text_part) {
      text(at);
    } else if (kind == number_part) {
      number(at);
    } else if (kind == double_part || kind == integer_part) {
      const std::uint64_t rows = number(at);
      if (rows > bytes_.size()) fail("is damaged");
      raw(at, rows * sizeof(std::uint64_t));
    } else if (kind == texts_part) {
      number(at);
      raw(at, number(at));
    } else if (kind != group_part) {
      fail("is damaged");
    }
  }
}

std::size_t FlatReader::begin_of(const std::string& name, char kind) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) fail("lacks " + name);
  if (found->second.kind != kind) fail(name + " has the wrong type");
  return found->second.begin;
}

bool FlatReader::has_attribute(const std::string& object, const std::string& name) const {
  return parts_.contains(attribute_of(object, name));
}

std::string FlatReader::text_attribute(const std::string& object, const std::string& name) const {
  std::size_t at = begin_of(attribute_of(object, name), text_part);
  return std::string(text(at));
}

std::int64_t FlatReader::integer_attribute(const std::string& object,
                                           const std::string& name) const {
  std::size_t at = begin_of(attribute_of(object, name), number_part);
  return static_cast<std::int64_t>(number(at));
}

template <class Number>
std::vector<Number> FlatReader::numbers(const std::string& dataset, char kind) const {
  std::size_t at = begin_of(dataset, kind);
  std::vector<Number> values(static_cast<std::size_t>(number(at)));
  const std::string_view bytes = raw(at, values.size() * sizeof(Number));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> FlatReader::doubles(const std::string& dataset) const {
  return numbers<double>(dataset, double_part);
}

std::vector<std::int64_t> FlatReader::integers(const std::string& dataset) const {
  return numbers<std::int64_t>(dataset, integer_part);
}

std::vector<TextRun> FlatReader::text_runs(const std::string& dataset) const {
  std::size_t at = begin_of(dataset, texts_part);
  const std::uint64_t rows = number(at);
  const std::uint64_t size = number(at);
  const std::size_t end = at + static_cast<std::size_t>(size);  // index() has seen that it is there
  if (rows > most_rows) fail("is damaged");
  std::vector<TextRun> runs;
  std::uint64_t told = 0;
  while (at < end) {
    const std::uint64_t times = number(at);
    if (times > rows - told) fail("is damaged");
    told += times;
    runs.push_back({std::string(text(at)), static_cast<std::size_t>(told)});
  }
  if (told != rows || at != end) fail("is damaged");
  return runs;
}

std::vector<std::string> FlatReader::texts(const std::string& dataset) const {
  std::vector<std::string> values;
  for (const TextRun& run : text_runs(dataset)) values.resize(run.end, run.text);
  return values;
}

}  // namespace stepcast::sim
