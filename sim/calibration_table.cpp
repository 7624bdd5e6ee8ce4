#include "sim/calibration_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/check.hpp"
#include "sim/calibration_schema.hpp"
#include "sim/hdf5_file.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* hint = "was the file written by stepcast-calibrate?";

// How a member lies in the file: text, a whole number or a real number.
const std::string& stored(const std::string& text) { return text; }
std::int64_t stored(std::int64_t count) { return count; }
std::int64_t stored(Bytes bytes) { return bytes.value; }
std::int64_t stored(Duration duration) { return duration.count(); }
double stored(FlopsPerSecond rate) { return rate.value; }
double stored(BytesPerSecond rate) { return rate.value; }
double stored(Watts power) { return power.value; }
double stored(double number) { return number; }
std::int64_t stored(bool flag) { return flag ? 1 : 0; }

template <class Row>
class ColumnWriter {
 public:
  ColumnWriter(Hdf5Writer& file, std::string group, const std::vector<Row>& rows)
      : file_(file), group_(std::move(group)), rows_(rows) {
    file_.group(group_);
  }
  template <class Member>
  void operator()(const char* name, Member member, std::int64_t = 1) {
    using Value = std::decay_t<std::invoke_result_t<Member, const Row&>>;
    std::vector<std::decay_t<decltype(stored(std::declval<Value>()))>> values;
    values.reserve(rows_.size());
    for (const Row& row : rows_) values.push_back(stored(std::invoke(member, row)));
    file_.column(group_ + "/" + name, values, detail::unit_of(Value{}));
  }

 private:
  Hdf5Writer& file_;
  std::string group_;
  const std::vector<Row>& rows_;
};

template <class Row>
class ColumnReader {
 public:
  ColumnReader(const Hdf5Reader& file, std::string group, std::vector<Row>& rows,
               std::int64_t version)
      : file_(file), group_(std::move(group)), rows_(rows), version_(version) {
    if (!file_.has(group_)) throw InputError(file_.path(), "lacks the group " + group_, hint);
  }
  template <class Member>
  void operator()(const char* name, Member member, std::int64_t since = 1) {
    if (version_ < since) return;
    using Value = std::decay_t<std::invoke_result_t<Member, Row&>>;
    using Stored = std::decay_t<decltype(stored(std::declval<Value>()))>;
    read<Stored>(name, detail::unit_of(Value{}), [&](Row& row, Stored&& value) {
      auto& cell = std::invoke(member, row);
      cell = std::decay_t<decltype(cell)>(std::move(value));
    });
  }

  /// Hands every row the value of one column; the first column sets the number of rows.
  template <class Stored, class Take>
  void read(const char* name, const std::string& unit, Take&& take) {
    const std::string column = group_ + "/" + name;
    check_unit(column, unit);
    std::vector<Stored> values;
    if constexpr (std::is_same_v<Stored, std::string>)
      values = file_.texts(column);
    else if constexpr (std::is_same_v<Stored, std::int64_t>)
      values = file_.integers(column);
    else
      values = file_.doubles(column);
    if (std::exchange(first_, false)) rows_.resize(values.size());
    if (values.size() != rows_.size())
      throw InputError(file_.path(),
                       "column " + column + " has " + std::to_string(values.size()) +
                           " rows, the others of its group " + std::to_string(rows_.size()),
                       hint);
    for (std::size_t i = 0; i < values.size(); ++i) take(rows_[i], std::move(values[i]));
  }

 private:
  void check_unit(const std::string& column, const std::string& unit) const {
    if (!file_.has(column)) throw InputError(file_.path(), "lacks the column " + column, hint);
    if (!file_.has_attribute(column, "unit") || file_.text_attribute(column, "unit") != unit)
      throw InputError(file_.path(), "column " + column + " must have the unit " + unit, hint);
  }

  const Hdf5Reader& file_;
  std::string group_;
  std::vector<Row>& rows_;
  std::int64_t version_;
  bool first_ = true;
};

/// Every source once; rows name it by its place.
class SourceList {
 public:
  std::int64_t index_of(const RowSource& source) {
    const auto [at, added] = index_.try_emplace(source, static_cast<std::int64_t>(list_.size()));
    if (added) list_.push_back(source);
    return at->second;
  }
  const std::vector<RowSource>& list() const { return list_; }

 private:
  std::map<RowSource, std::int64_t> index_;
  std::vector<RowSource> list_;
};

template <class Row>
void write_family(Hdf5Writer& file, const char* group, const std::vector<Row>& rows,
                  SourceList& sources) {
  ColumnWriter<Row> writer(file, group, rows);
  detail::list_columns(writer, static_cast<const Row*>(nullptr));
  writer("source", [&](const Row& row) { return sources.index_of(row.source); });
}

template <class Row>
void read_family(const Hdf5Reader& file, const char* group, std::vector<Row>& rows,
                 const std::vector<RowSource>& sources, std::int64_t version) {
  ColumnReader<Row> reader(file, group, rows, version);
  detail::list_columns(reader, static_cast<const Row*>(nullptr));
  if (version == 1) {  // each row with its own words
    reader(
        "source", [](Row & row) -> auto& { return row.source.source; });
    reader(
        "reference", [](Row & row) -> auto& { return row.source.reference; });
    reader(
        "confidence", [](Row & row) -> auto& { return row.source.confidence; });
    return;
  }
  reader.template read<std::int64_t>("source", "1", [&](Row& row, std::int64_t index) {
    if (index < 0 || index >= static_cast<std::int64_t>(sources.size()))
      throw InputError(file.path(),
                       std::string(group) + " names source " + std::to_string(index) + " of " +
                           std::to_string(sources.size()),
                       hint);
    row.source = sources[static_cast<std::size_t>(index)];
  });
}

std::int64_t version_of(const Hdf5Reader& file) {
  if (!file.has_attribute("/", "format") ||
      file.text_attribute("/", "format") != detail::format_name)
    throw InputError(file.path(), "is HDF5 but no calibration table",
                     "make one with stepcast-calibrate import");
  const std::int64_t version = file.integer_attribute("/", "version");
  if (version < detail::oldest_version || version > detail::schema_version)
    throw InputError(file.path(),
                     "is a calibration table of version " + std::to_string(version) +
                         ", this program reads versions 1 to " +
                         std::to_string(detail::schema_version),
                     "write it again with the stepcast-calibrate of this program");
  return version;
}

[[noreturn]] void refuse_row(const std::string& path, const char* family, std::size_t row) {
  throw InputError(path,
                   "row " + std::to_string(row) + " of " + family +
                       " holds a number that is not positive or not finite, or an unknown word",
                   hint);
}

bool positive(double value) { return std::isfinite(value) && value > 0; }
bool not_negative(double value) { return std::isfinite(value) && value >= 0; }
bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool good_cache(const std::string& cache) { return one_of(cache, {"", "cold", "hot"}); }
bool good(const Quality& q) {
  return not_negative(q.spread) && not_negative(q.error) && q.samples >= 0 && q.throttled >= 0;
}
bool good(const GemmRow& r) {
  return positive(r.rate.value) && r.m > 0 && r.n > 0 && r.k > 0 && r.layout.size() <= 2 &&
         r.layout.size() != 1 && good_cache(r.cache) && good(r.quality);
}
bool good(const AttentionRow& r) {
  return positive(r.rate.value) && r.sequence > 0 && r.head_dim > 0 && r.batch >= 0 &&
         r.heads >= 0 && r.kv_heads >= 0 && good_cache(r.cache) && good(r.quality) &&
         one_of(r.pass, {"forward", "backward", "forward_backward"}) &&
         one_of(r.mask, {"causal", "full", "not_stated"});
}
bool good(const ElementwiseRow& r) {
  return r.duration > Duration(0) && r.bytes.value > 0 && r.tokens >= 0 && r.width >= 0 &&
         one_of(r.pass, {"", "forward", "backward"}) && good_cache(r.cache) && good(r.quality);
}
bool good(const CollectiveRow& r) {
  return r.duration >= Duration(0) && r.bytes.value >= 0 && r.ranks >= 0 && r.nodes >= 0 &&
         not_negative(r.busbw.value) && not_negative(r.node_bandwidth.value) && good(r.quality);
}
bool good(const CopyRow& r) {
  return positive(r.rate.value) && r.bytes.value >= 0 && good_cache(r.cache) && good(r.quality);
}
bool good(const NcclTuningRow& r) {
  return positive(r.bandwidth.value) && r.latency >= Duration(0) && r.ranks > 0 && r.nodes > 0;
}
bool good(const NcclChoiceRow& r) {
  return r.bytes.value > 0 && r.channels >= 0 && r.estimate >= Duration(0) && r.ranks > 0 &&
         r.nodes > 0;
}
bool good(const LaunchRow& r) { return r.duration > Duration(0) && good(r.quality); }
bool good(const OverlapRow& r) {
  const Duration shortest =
      std::min({r.kernel_alone, r.kernel_beside, r.collective_alone, r.collective_beside});
  return shortest > Duration(0) && r.bytes.value >= 0 && r.ranks > 0 && r.nodes > 0 &&
         good(r.quality);
}
bool good(const PowerRow& r) { return positive(r.power.value); }

}  // namespace

void check_rows(const CalibrationTable& table, const std::string& where) {
  detail::list_families(table, [&](const char* group, const auto& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!good(rows[i])) refuse_row(where, group, i);
  });
}

std::size_t num_rows(const CalibrationTable& table) {
  std::size_t rows = 0;
  detail::list_families(table, [&](const char*, const auto& family) { rows += family.size(); });
  return rows;
}

void write_calibration(const std::string& path, const CalibrationTable& table) {
  Hdf5Writer file(path);
  file.attribute("/", "format", std::string(detail::format_name));
  file.attribute("/", "version", detail::schema_version);
  file.attribute("/", "title", table.title);
  file.attribute("/", "created", table.created);
  SourceList sources;
  detail::list_families(table, [&](const char* group, const auto& rows) {
    write_family(file, group, rows, sources);
  });
  ColumnWriter<RowSource> writer(file, "/sources", sources.list());
  detail::list_columns(writer, static_cast<const RowSource*>(nullptr));
  file.finish();
}

CalibrationTable read_calibration(const std::string& path) {
  const Hdf5Reader file(path);
  const std::int64_t version = version_of(file);
  CalibrationTable table;
  table.title = file.text_attribute("/", "title");
  table.created = file.text_attribute("/", "created");
  std::vector<RowSource> sources;
  if (version > 1) {
    ColumnReader<RowSource> reader(file, "/sources", sources, version);
    detail::list_columns(reader, static_cast<const RowSource*>(nullptr));
  }
  detail::list_families(table, [&](const char* group, auto& rows) {
    if (detail::may_lack(group, version) && !file.has(group)) return;
    read_family(file, group, rows, sources, version);
  });
  check_rows(table, path);
  return table;
}

}  // namespace stepcast::sim
