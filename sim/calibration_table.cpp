#include "sim/calibration_table.hpp"

#include <cmath>
#include <functional>
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

template <class Row>
class ColumnWriter {
 public:
  ColumnWriter(Hdf5Writer& file, std::string group, const std::vector<Row>& rows)
      : file_(file), group_(std::move(group)), rows_(rows) {
    file_.group(group_);
  }
  template <class Member>
  void operator()(const char* name, Member member) {
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
  ColumnReader(const Hdf5Reader& file, std::string group, std::vector<Row>& rows)
      : file_(file), group_(std::move(group)), rows_(rows) {
    if (!file_.has(group_)) throw InputError(file_.path(), "lacks the group " + group_, hint);
  }
  template <class Member>
  void operator()(const char* name, Member member) {
    using Value = std::decay_t<std::invoke_result_t<Member, Row&>>;
    using Stored = std::decay_t<decltype(stored(std::declval<Value>()))>;
    const std::string column = group_ + "/" + name;
    check_unit(column, detail::unit_of(Value{}));
    if constexpr (std::is_same_v<Stored, std::string>)
      scatter(column, file_.texts(column), member);
    else if constexpr (std::is_same_v<Stored, std::int64_t>)
      scatter(column, file_.integers(column), member);
    else
      scatter(column, file_.doubles(column), member);
  }

 private:
  void check_unit(const std::string& column, const std::string& unit) const {
    if (!file_.has(column)) throw InputError(file_.path(), "lacks the column " + column, hint);
    if (!file_.has_attribute(column, "unit") || file_.text_attribute(column, "unit") != unit)
      throw InputError(file_.path(), "column " + column + " must have the unit " + unit, hint);
  }

  template <class Stored, class Member>
  void scatter(const std::string& column, std::vector<Stored> values, Member member) {
    if (std::exchange(first_, false)) rows_.resize(values.size());
    if (values.size() != rows_.size())
      throw InputError(file_.path(),
                       "column " + column + " has " + std::to_string(values.size()) +
                           " rows, the others of its group " + std::to_string(rows_.size()),
                       hint);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto& cell = std::invoke(member, rows_[i]);
      cell = std::decay_t<decltype(cell)>(std::move(values[i]));
    }
  }

  const Hdf5Reader& file_;
  std::string group_;
  std::vector<Row>& rows_;
  bool first_ = true;
};

void check_header(const Hdf5Reader& file) {
  if (!file.has_attribute("/", "format") ||
      file.text_attribute("/", "format") != detail::format_name)
    throw InputError(file.path(), "is HDF5 but no calibration table",
                     "make one with stepcast-calibrate import");
  const std::int64_t version = file.integer_attribute("/", "version");
  if (version != detail::schema_version)
    throw InputError(file.path(),
                     "is a calibration table of version " + std::to_string(version) +
                         ", this program reads version " + std::to_string(detail::schema_version),
                     "write it again with the stepcast-calibrate of this program");
}

[[noreturn]] void refuse_row(const std::string& path, const char* family, std::size_t row) {
  throw InputError(path,
                   "row " + std::to_string(row) + " of " + family +
                       " holds a number that is not positive or not finite",
                   hint);
}

bool positive(double value) { return std::isfinite(value) && value > 0; }
bool good(const GemmRow& r) { return positive(r.rate.value) && r.m > 0 && r.n > 0 && r.k > 0; }
bool good(const AttentionRow& r) {
  return positive(r.rate.value) && r.sequence > 0 && r.head_dim > 0 && r.batch >= 0 && r.heads >= 0;
}
bool good(const ElementwiseRow& r) { return r.duration > Duration(0) && r.bytes.value > 0; }
bool good(const CollectiveRow& r) {
  return r.duration >= Duration(0) && r.bytes.value >= 0 && r.ranks >= 0 &&
         std::isfinite(r.busbw.value) && r.busbw.value >= 0 &&
         std::isfinite(r.node_bandwidth.value) && r.node_bandwidth.value >= 0;
}
bool good(const CopyRow& r) { return positive(r.rate.value); }
bool good(const NcclTuningRow& r) {
  return positive(r.bandwidth.value) && r.latency >= Duration(0) && r.ranks > 0 && r.nodes > 0;
}
bool good(const NcclChoiceRow& r) {
  return r.bytes.value > 0 && r.channels >= 0 && r.estimate >= Duration(0) && r.ranks > 0 &&
         r.nodes > 0;
}

}  // namespace

void write_calibration(const std::string& path, const CalibrationTable& table) {
  Hdf5Writer file(path);
  file.attribute("/", "format", std::string(detail::format_name));
  file.attribute("/", "version", detail::schema_version);
  file.attribute("/", "title", table.title);
  file.attribute("/", "created", table.created);
  detail::list_families(table, [&]<class Row>(const char* group, const std::vector<Row>& rows) {
    ColumnWriter<Row> writer(file, group, rows);
    detail::list_columns(writer, static_cast<const Row*>(nullptr));
  });
  file.finish();
}

CalibrationTable read_calibration(const std::string& path) {
  const Hdf5Reader file(path);
  check_header(file);
  CalibrationTable table;
  table.title = file.text_attribute("/", "title");
  table.created = file.text_attribute("/", "created");
  detail::list_families(table, [&]<class Row>(const char* group, std::vector<Row>& rows) {
    if (detail::may_lack(group) && !file.has(group)) return;
    ColumnReader<Row> reader(file, group, rows);
    detail::list_columns(reader, static_cast<const Row*>(nullptr));
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!good(rows[i])) refuse_row(path, group, i);
  });
  return table;
}

}  // namespace stepcast::sim
