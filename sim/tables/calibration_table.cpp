#include "sim/tables/calibration_table.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "engine/check.hpp"
#include "sim/tables/calibration_columns.hpp"
#include "sim/tables/calibration_file.hpp"
#include "sim/tables/column_file.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* format_name = "stepcast calibration";
constexpr std::int64_t schema_version = 3;
constexpr std::int64_t oldest_version = 1;
constexpr const char* hint = "was the file written by stepcast-calibrate?";

/// Every source once; rows name it by its place.
class SourceList {
 public:
  std::int64_t index_of(const RowSource& source) {
    const auto [at, added] = index_.try_emplace(source, static_cast<std::int64_t>(list_.size()));
    if (added) list_.push_back(source);
    return at->second;
  }
  std::vector<RowSource>& list() { return list_; }

 private:
  std::map<RowSource, std::int64_t> index_;
  std::vector<RowSource> list_;
};

std::string path_of(const Family& family, const char* column) {
  return std::string("/") + family.name + "/" + column;
}

template <class Value, class Held>
std::vector<Value> values_of(const Family& family, const Column& column,
                             const CalibrationTable& table) {
  std::vector<Value> values(family.size(table));
  for (std::size_t row = 0; row < values.size(); ++row)
    values[row] = std::get<Held>(column.get(table, row));
  return values;
}

void write_family(ColumnWriter& file, const Family& family, const CalibrationTable& table,
                  SourceList& sources) {
  file.group(std::string("/") + family.name);
  for (const Column& column : family.columns) {
    const std::string path = path_of(family, column.name);
    if (column.stored == Stored::text)
      file.column(path, values_of<std::string, std::string_view>(family, column, table),
                  column.unit);
    else if (column.stored == Stored::real)
      file.column(path, values_of<double, double>(family, column, table), column.unit);
    else
      file.column(path, values_of<std::int64_t, std::int64_t>(family, column, table), column.unit);
  }
  std::vector<std::int64_t> places(family.size(table));
  for (std::size_t row = 0; row < places.size(); ++row)
    places[row] = sources.index_of(*family.source(table, row));
  file.column(path_of(family, "source"), places, "1");
}

void write_sources(ColumnWriter& file, std::vector<RowSource>& sources) {
  file.group("/sources");
  for (const SourceColumn& column : source_columns) {
    std::vector<std::string> values;
    for (RowSource& source : sources) values.push_back(column.in(source));
    file.column(std::string("/sources/") + column.name, values);
  }
}

/// Reads the columns of one group, which must be equally long.
class GroupReader {
 public:
  GroupReader(const ColumnReader& file, std::string group) : file_(file), group_(std::move(group)) {
    if (!file_.has(group_)) throw InputError(file_.path(), "lacks the group " + group_, hint);
  }

  std::vector<TextRun> text_runs(const char* name) {
    std::vector<TextRun> runs = file_.text_runs(checked(name, "text"));
    check(name, runs.empty() ? 0 : runs.back().end);
    return runs;
  }
  std::vector<std::int64_t> integers(const char* name, const char* unit = "1") {
    return whole(name, file_.integers(checked(name, unit)));
  }
  std::vector<double> doubles(const char* name, const char* unit) {
    return whole(name, file_.doubles(checked(name, unit)));
  }

 private:
  std::string checked(const char* name, const std::string& unit) const {
    std::string column = group_ + "/" + name;
    if (!file_.has(column)) throw InputError(file_.path(), "lacks the column " + column, hint);
    if (!file_.has_attribute(column, "unit") || file_.text_attribute(column, "unit") != unit)
      throw InputError(file_.path(), "column " + column + " must have the unit " + unit, hint);
    return column;
  }

  template <class Value>
  std::vector<Value> whole(const char* name, std::vector<Value> values) {
    check(name, values.size());
    return values;
  }
  void check(const char* name, std::size_t rows) {
    if (std::exchange(first_, false)) rows_ = rows;
    if (rows != rows_)
      throw InputError(file_.path(),
                       "column " + group_ + "/" + name + " has " + std::to_string(rows) +
                           " rows, the others of its group " + std::to_string(rows_),
                       hint);
  }

  const ColumnReader& file_;
  std::string group_;
  std::size_t rows_ = 0;
  bool first_ = true;
};

/// Sources by the texts of their columns, each made when a row first asks for it: most rows of a
/// file are of other GPUs. Files of version 1 have the first three columns alone.
class Sources {
 public:
  Sources() = default;
  Sources(GroupReader& group, std::size_t num_columns) {
    for (std::size_t i = 0; i < num_columns; ++i)
      columns_.push_back(group.text_runs(source_columns[i].name));
    if (!columns_.empty() && !columns_.front().empty()) made_.resize(columns_.front().back().end);
  }

  std::size_t size() const { return made_.size(); }
  const SharedSource& at(std::size_t place) {
    if (!made_[place]) {
      RowSource source;
      for (std::size_t i = 0; i < columns_.size(); ++i)
        source_columns[i].in(source) =
            std::ranges::upper_bound(columns_[i], place, {}, &TextRun::end)->text;
      made_[place] = SharedSource(std::move(source));
    }
    return *made_[place];
  }

 private:
  std::vector<std::vector<TextRun>> columns_;
  std::vector<std::optional<SharedSource>> made_;
};

class TableReader {
 public:
  /// `wanted`: by its GPU whether a row is; empty: all are.
  explicit TableReader(const ColumnReader& file, WantedGpu wanted = {});
  CalibrationTable read();

 private:
  void choose_rows(GroupReader& group, const Family& family);
  void read_family(const Family& family);
  void read_column(GroupReader& group, const Column& column);
  template <class Value>
  void fill(const Column& column, const std::vector<Value>& values) {
    for (std::size_t row = 0; row < chosen_.size(); ++row)
      column.set(table_, row, values[chosen_[row]]);
  }

  void fill_texts(const Column& column, const std::vector<TextRun>& runs) {
    auto run = runs.begin();
    for (std::size_t row = 0; row < chosen_.size(); ++row) {
      while (chosen_[row] >= run->end) ++run;
      column.set(table_, row, run->text);
    }
  }

  const ColumnReader& file_;
  WantedGpu wanted_;
  std::vector<std::size_t> chosen_;  // of the file's rows of this family
  std::int64_t version_;
  Sources sources_;
  CalibrationTable table_;
};

TableReader::TableReader(const ColumnReader& file, WantedGpu wanted)
    : file_(file), wanted_(std::move(wanted)) {
  if (!file_.has_attribute("/", "format") || file_.text_attribute("/", "format") != format_name)
    throw InputError(file.path(), "is HDF5 but no calibration table",
                     "make one with stepcast-calibrate import");
  version_ = file_.integer_attribute("/", "version");
  if (version_ < oldest_version || version_ > schema_version)
    throw InputError(file.path(),
                     "is a calibration table of version " + std::to_string(version_) +
                         ", this program reads versions 1 to " + std::to_string(schema_version),
                     "write it again with the stepcast-calibrate of this program");
}

CalibrationTable TableReader::read() {
  table_.title = file_.text_attribute("/", "title");
  table_.created = file_.text_attribute("/", "created");
  if (version_ > 1) {
    GroupReader group(file_, "/sources");
    sources_ = Sources(group, source_columns.size());
  }
  for (const Family& family : families())
    if (version_ >= family.since || file_.has(std::string("/") + family.name)) read_family(family);
  check_rows(table_, file_.path());
  return std::move(table_);
}

void TableReader::read_family(const Family& family) {
  GroupReader group(file_, std::string("/") + family.name);
  choose_rows(group, family);
  for (const Column& column : family.columns)
    if (version_ >= column.since) read_column(group, column);
  if (version_ == 1) {  // each row with its own words
    sources_ = Sources(group, 3);
    for (std::size_t row = 0; row < chosen_.size(); ++row)
      family.set_source(table_, row, sources_.at(chosen_[row]));
    return;
  }
  const std::vector<std::int64_t> places = group.integers("source");
  for (std::size_t row = 0; row < chosen_.size(); ++row) {
    const std::int64_t place = places[chosen_[row]];
    if (place < 0 || place >= static_cast<std::int64_t>(sources_.size()))
      throw InputError(file_.path(),
                       std::string("/") + family.name + " names source " + std::to_string(place) +
                           " of " + std::to_string(sources_.size()),
                       hint);
    family.set_source(table_, row, sources_.at(static_cast<std::size_t>(place)));
  }
}

/// By their GPU, the first of every family's columns.
void TableReader::choose_rows(GroupReader& group, const Family& family) {
  chosen_.clear();
  std::size_t row = 0;
  for (const TextRun& run : group.text_runs(family.columns.front().name)) {
    const bool wanted = !wanted_ || family.of_all || wanted_(run.text);
    for (; row < run.end; ++row)
      if (wanted) chosen_.push_back(row);
  }
  family.resize(table_, chosen_.size());
}

void TableReader::read_column(GroupReader& group, const Column& column) {
  if (column.stored == Stored::text)
    fill_texts(column, group.text_runs(column.name));
  else if (column.stored == Stored::real)
    fill(column, group.doubles(column.name, column.unit));
  else
    fill(column, group.integers(column.name, column.unit));
}

}  // namespace

SharedSource::SharedSource(RowSource source)
    : source_(std::make_shared<const RowSource>(std::move(source))) {}

SharedSource::SharedSource(std::string source, std::string reference, std::string confidence)
    : SharedSource(RowSource{std::move(source), std::move(reference), std::move(confidence), {}}) {}

const RowSource& SharedSource::operator*() const {
  static const RowSource none;
  return source_ ? *source_ : none;
}

SharedSource SharedSource::with_confidence(std::string confidence) const {
  RowSource other = **this;
  other.confidence = std::move(confidence);
  return other;
}

CalibrationTable::CalibrationTable() = default;
CalibrationTable::CalibrationTable(const CalibrationTable&) = default;
CalibrationTable::CalibrationTable(CalibrationTable&&) noexcept = default;
CalibrationTable& CalibrationTable::operator=(const CalibrationTable&) = default;
CalibrationTable& CalibrationTable::operator=(CalibrationTable&&) noexcept = default;
CalibrationTable::~CalibrationTable() = default;
bool CalibrationTable::operator==(const CalibrationTable&) const = default;

void check_rows(const CalibrationTable& table, const std::string& where) {
  for (const Family& family : families()) {
    if (is_sound(family, table)) continue;
    for (std::size_t row = 0; row < family.size(table); ++row)
      if (const std::string fault = fault_of(family, table, row); !fault.empty())
        throw InputError(where, "row " + std::to_string(row) + " of /" + family.name + ": " + fault,
                         hint);
  }
}

void write_calibration(const std::string& path, const CalibrationTable& table) {
  const auto made = write_columns(path);
  ColumnWriter& file = *made;
  file.attribute("/", "format", std::string(format_name));
  file.attribute("/", "version", schema_version);
  file.attribute("/", "title", table.title);
  file.attribute("/", "created", table.created);
  SourceList sources;
  for (const Family& family : families()) write_family(file, family, table, sources);
  write_sources(file, sources.list());
  file.finish();
}

CalibrationTable read_calibration(const std::string& path) {
  return TableReader(*read_columns(path)).read();
}

CalibrationTable read_published(const WantedGpu& wanted) {
  return TableReader(*read_columns(published_calibration()), wanted).read();
}

}  // namespace stepcast::sim
