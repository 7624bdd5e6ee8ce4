#include "sim/calibration_table.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "engine/check.hpp"
#include "sim/hdf5_file.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* format_name = "stepcast calibration";
constexpr std::int64_t schema_version = 1;

// The schema: each family lists its columns once; writing and reading walk the same list.

template <class Columns>
void source_columns(Columns& columns) {
  columns.text(
      "source", [](auto& row) -> auto& { return row.source.source; });
  columns.text(
      "reference", [](auto& row) -> auto& { return row.source.reference; });
  columns.text(
      "confidence", [](auto& row) -> auto& { return row.source.confidence; });
}

template <class Columns>
void gemm_columns(Columns& columns) {
  columns.text(
      "gpu", [](auto& row) -> auto& { return row.gpu; });
  columns.text(
      "dtype", [](auto& row) -> auto& { return row.dtype; });
  columns.count(
      "m", "1", [](auto& row) -> auto& { return row.m; });
  columns.count(
      "n", "1", [](auto& row) -> auto& { return row.n; });
  columns.count(
      "k", "1", [](auto& row) -> auto& { return row.k; });
  columns.text(
      "data", [](auto& row) -> auto& { return row.data; });
  columns.real(
      "rate", "FLOP/s", [](auto& row) -> auto& { return row.rate.value; });
  source_columns(columns);
}

template <class Columns>
void attention_columns(Columns& columns) {
  columns.text(
      "gpu", [](auto& row) -> auto& { return row.gpu; });
  columns.text(
      "dtype", [](auto& row) -> auto& { return row.dtype; });
  columns.text(
      "pass", [](auto& row) -> auto& { return row.pass; });
  columns.text(
      "implementation", [](auto& row) -> auto& { return row.implementation; });
  columns.count(
      "batch", "1", [](auto& row) -> auto& { return row.batch; });
  columns.count(
      "heads", "1", [](auto& row) -> auto& { return row.heads; });
  columns.count(
      "kv_heads", "1", [](auto& row) -> auto& { return row.kv_heads; });
  columns.count(
      "sequence", "1", [](auto& row) -> auto& { return row.sequence; });
  columns.count(
      "head_dim", "1", [](auto& row) -> auto& { return row.head_dim; });
  columns.text(
      "mask", [](auto& row) -> auto& { return row.mask; });
  columns.real(
      "rate", "FLOP/s", [](auto& row) -> auto& { return row.rate.value; });
  source_columns(columns);
}

template <class Columns>
void elementwise_columns(Columns& columns) {
  columns.text(
      "gpu", [](auto& row) -> auto& { return row.gpu; });
  columns.text(
      "dtype", [](auto& row) -> auto& { return row.dtype; });
  columns.text(
      "kind", [](auto& row) -> auto& { return row.kind; });
  columns.text(
      "implementation", [](auto& row) -> auto& { return row.implementation; });
  columns.count(
      "tokens", "1", [](auto& row) -> auto& { return row.tokens; });
  columns.text(
      "shape", [](auto& row) -> auto& { return row.shape; });
  columns.count(
      "bytes", "B", [](auto& row) -> auto& { return row.bytes.value; });
  columns.time(
      "duration", [](auto& row) -> auto& { return row.duration; });
  source_columns(columns);
}

template <class Columns>
void collective_columns(Columns& columns) {
  columns.text(
      "gpu", [](auto& row) -> auto& { return row.gpu; });
  columns.text(
      "dtype", [](auto& row) -> auto& { return row.dtype; });
  columns.text(
      "collective", [](auto& row) -> auto& { return row.collective; });
  columns.count(
      "ranks", "1", [](auto& row) -> auto& { return row.ranks; });
  columns.count(
      "nodes", "1", [](auto& row) -> auto& { return row.nodes; });
  columns.count(
      "gpus_per_node", "1", [](auto& row) -> auto& { return row.gpus_per_node; });
  columns.count(
      "bytes", "B", [](auto& row) -> auto& { return row.bytes.value; });
  columns.time(
      "duration", [](auto& row) -> auto& { return row.duration; });
  columns.text(
      "fabric", [](auto& row) -> auto& { return row.fabric; });
  columns.text(
      "nccl", [](auto& row) -> auto& { return row.nccl; });
  columns.text(
      "timing", [](auto& row) -> auto& { return row.timing; });
  columns.text(
      "processes", [](auto& row) -> auto& { return row.processes; });
  columns.real(
      "node_bandwidth", "B/s", [](auto& row) -> auto& { return row.node_bandwidth.value; });
  columns.real(
      "busbw", "B/s", [](auto& row) -> auto& { return row.busbw.value; });
  source_columns(columns);
}

template <class Columns>
void copy_columns(Columns& columns) {
  columns.text(
      "gpu", [](auto& row) -> auto& { return row.gpu; });
  columns.text(
      "kind", [](auto& row) -> auto& { return row.kind; });
  columns.text(
      "what", [](auto& row) -> auto& { return row.what; });
  columns.count(
      "gpus", "1", [](auto& row) -> auto& { return row.gpus; });
  columns.real(
      "rate", "B/s", [](auto& row) -> auto& { return row.rate.value; });
  source_columns(columns);
}

template <class Row>
class ColumnWriter {
 public:
  ColumnWriter(Hdf5Writer& file, std::string group, const std::vector<Row>& rows)
      : file_(file), group_(std::move(group)), rows_(rows) {
    file_.group(group_);
  }
  template <class Member>
  void text(const char* name, Member member) {
    file_.column(group_ + "/" + name, gather<std::string>(member));
  }
  template <class Member>
  void count(const char* name, const char* unit, Member member) {
    file_.column(group_ + "/" + name, gather<std::int64_t>(member), unit);
  }
  template <class Member>
  void real(const char* name, const char* unit, Member member) {
    file_.column(group_ + "/" + name, gather<double>(member), unit);
  }
  template <class Member>
  void time(const char* name, Member member) {
    count(name, "ps", [member](auto& row) { return member(row).count(); });
  }

 private:
  template <class Value, class Member>
  std::vector<Value> gather(Member member) const {
    std::vector<Value> values;
    values.reserve(rows_.size());
    for (const Row& row : rows_) values.push_back(member(row));
    return values;
  }

  Hdf5Writer& file_;
  std::string group_;
  const std::vector<Row>& rows_;
};

template <class Row>
class ColumnReader {
 public:
  ColumnReader(const Hdf5Reader& file, std::string group) : file_(file), group_(std::move(group)) {
    if (!file_.has(group_)) throw InputError(file_.path(), "lacks the group " + group_, hint);
  }
  template <class Member>
  void text(const char* name, Member member) {
    check_unit(name, "text");
    scatter(name, file_.texts(group_ + "/" + name), member);
  }
  template <class Member>
  void count(const char* name, const char* unit, Member member) {
    check_unit(name, unit);
    scatter(name, file_.integers(group_ + "/" + name), member);
  }
  template <class Member>
  void real(const char* name, const char* unit, Member member) {
    check_unit(name, unit);
    scatter(name, file_.doubles(group_ + "/" + name), member);
  }
  template <class Member>
  void time(const char* name, Member member) {
    check_unit(name, "ps");
    std::vector<Duration> values;
    for (const std::int64_t ps : file_.integers(group_ + "/" + name)) values.emplace_back(ps);
    scatter(name, std::move(values), member);
  }
  std::vector<Row> take() { return std::move(rows_); }

 private:
  static constexpr const char* hint = "was the file written by stepcast-calibrate?";

  void check_unit(const char* name, const std::string& unit) const {
    const std::string column = group_ + "/" + name;
    if (!file_.has(column)) throw InputError(file_.path(), "lacks the column " + column, hint);
    if (!file_.has_attribute(column, "unit") || file_.text_attribute(column, "unit") != unit)
      throw InputError(file_.path(), "column " + column + " must have the unit " + unit, hint);
  }
  template <class Value, class Member>
  void scatter(const char* name, std::vector<Value> values, Member member) {
    if (first_) rows_.resize(values.size());
    first_ = false;
    if (values.size() != rows_.size())
      throw InputError(file_.path(),
                       "column " + group_ + "/" + name + " has " + std::to_string(values.size()) +
                           " rows, the others " + std::to_string(rows_.size()),
                       hint);
    for (std::size_t i = 0; i < values.size(); ++i) member(rows_[i]) = std::move(values[i]);
  }

  const Hdf5Reader& file_;
  std::string group_;
  std::vector<Row> rows_;
  bool first_ = true;
};

template <class Row>
void refuse_rates_that_are_none(const std::string& path, const char* family,
                                const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!(rows[i].rate.value > 0) || !std::isfinite(rows[i].rate.value))
      throw InputError(path, std::string(family) + "/rate: row " + std::to_string(i) +
                                 " is not a positive number");
}

void check_header(const Hdf5Reader& file) {
  if (!file.has_attribute("/", "format") || file.text_attribute("/", "format") != format_name)
    throw InputError(file.path(), "is HDF5 but no calibration table",
                     "make one with stepcast-calibrate import");
  const std::int64_t version = file.integer_attribute("/", "version");
  if (version != schema_version)
    throw InputError(file.path(),
                     "is a calibration table of version " + std::to_string(version) +
                         ", this program reads version " + std::to_string(schema_version),
                     "write it again with the stepcast-calibrate of this program");
}

// What makes two rows the same measurement: what was measured, on what.
auto key(const GemmRow& r) { return std::tie(r.gpu, r.dtype, r.m, r.n, r.k, r.data); }
auto key(const AttentionRow& r) {
  return std::tie(r.gpu, r.dtype, r.pass, r.implementation, r.batch, r.heads, r.kv_heads,
                  r.sequence, r.head_dim, r.mask);
}
auto key(const ElementwiseRow& r) {
  return std::tie(r.gpu, r.dtype, r.kind, r.implementation, r.tokens, r.shape);
}
auto key(const CollectiveRow& r) {
  return std::tie(r.gpu, r.dtype, r.collective, r.ranks, r.nodes, r.gpus_per_node, r.bytes.value,
                  r.fabric, r.nccl, r.timing, r.processes, r.node_bandwidth.value);
}
auto key(const CopyRow& r) { return std::tie(r.gpu, r.kind, r.what, r.gpus); }

/// Drops the earlier rows that `later` measures again, then appends `later`. Equal keys within one
/// table stay: they are repeated measurements.
template <class Row>
void merge_rows(std::vector<Row>& earlier, const std::vector<Row>& later) {
  std::set<decltype(key(std::declval<const Row&>()))> known;
  for (const Row& row : later) known.insert(key(row));
  std::erase_if(earlier, [&](const Row& row) { return known.contains(key(row)); });
  earlier.insert(earlier.end(), later.begin(), later.end());
}

}  // namespace

void write_calibration(const std::string& path, const CalibrationTable& table) {
  Hdf5Writer file(path);
  file.attribute("/", "format", std::string(format_name));
  file.attribute("/", "version", schema_version);
  file.attribute("/", "title", table.title);
  file.attribute("/", "created", table.created);
  ColumnWriter gemm(file, "/gemm", table.gemm);
  gemm_columns(gemm);
  ColumnWriter attention(file, "/attention", table.attention);
  attention_columns(attention);
  ColumnWriter elementwise(file, "/elementwise", table.elementwise);
  elementwise_columns(elementwise);
  ColumnWriter collectives(file, "/collectives", table.collectives);
  collective_columns(collectives);
  ColumnWriter copies(file, "/copies", table.copies);
  copy_columns(copies);
  file.finish();
}

CalibrationTable read_calibration(const std::string& path) {
  const Hdf5Reader file(path);
  check_header(file);
  CalibrationTable table;
  table.title = file.text_attribute("/", "title");
  table.created = file.text_attribute("/", "created");
  ColumnReader<GemmRow> gemm(file, "/gemm");
  gemm_columns(gemm);
  table.gemm = gemm.take();
  ColumnReader<AttentionRow> attention(file, "/attention");
  attention_columns(attention);
  table.attention = attention.take();
  ColumnReader<ElementwiseRow> elementwise(file, "/elementwise");
  elementwise_columns(elementwise);
  table.elementwise = elementwise.take();
  ColumnReader<CollectiveRow> collectives(file, "/collectives");
  collective_columns(collectives);
  table.collectives = collectives.take();
  ColumnReader<CopyRow> copies(file, "/copies");
  copy_columns(copies);
  table.copies = copies.take();
  refuse_rates_that_are_none(path, "/gemm", table.gemm);
  refuse_rates_that_are_none(path, "/attention", table.attention);
  refuse_rates_that_are_none(path, "/copies", table.copies);
  return table;
}

CalibrationTable merge(CalibrationTable earlier, const CalibrationTable& later) {
  merge_rows(earlier.gemm, later.gemm);
  merge_rows(earlier.attention, later.attention);
  merge_rows(earlier.elementwise, later.elementwise);
  merge_rows(earlier.collectives, later.collectives);
  merge_rows(earlier.copies, later.copies);
  if (earlier.title.empty())
    earlier.title = later.title;
  else if (!later.title.empty())
    earlier.title += " + " + later.title;
  earlier.created = std::max(earlier.created, later.created);
  return earlier;
}

CalibrationTable read_calibrations(std::span<const std::string> tables) {
  CalibrationTable all;
  for (const std::string& table : tables)
    all = merge(std::move(all),
                read_calibration(table == "published" ? published_calibration() : table));
  return all;
}

std::string published_calibration() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto file =
      failed ? std::filesystem::path("published.h5") : program.parent_path() / "published.h5";
  return file.string();
}

}  // namespace stepcast::sim
