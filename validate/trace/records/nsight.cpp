#include "validate/trace/records/nsight.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>

#include "engine/check.hpp"
#include "validate/trace/records/collector.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

constexpr const char* nsight_hint =
    "record with nsys profile --trace=cuda,nvtx, then nsys export --type sqlite";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

/// One open export.
class Export {
 public:
  explicit Export(const std::string& path) : path_(path) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) fail();
  }

  const std::string& path() const { return path_; }
  [[noreturn]] void fail() const {
    throw InputError(path_, fmt::format("SQLite: {}", sqlite3_errmsg(database_.get())),
                     "export it again: nsys export --type sqlite");
  }

  /// Calls `take` with the statement at each row.
  template <typename Take>
  void each_row(const std::string& sql, const Take& take) const {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) take(raw);
    if (code != SQLITE_DONE) fail();
  }

  /// Names of a table's columns; none: nsys creates tables when the first row comes.
  std::set<std::string> columns(const std::string& table) const;

 private:
  std::string path_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

std::string text_at(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? "" : text;
}

std::int64_t integer_at(sqlite3_stmt* row, int column) { return sqlite3_column_int64(row, column); }

std::set<std::string> Export::columns(const std::string& table) const {
  std::set<std::string> out;
  each_row(fmt::format("PRAGMA table_info({})", table),
           [&](sqlite3_stmt* row) { out.insert(text_at(row, 1)); });
  return out;
}

/// Of a column, or what stands for it in a table without.
std::string column_or(const std::set<std::string>& columns, const char* name, const char* other) {
  return columns.contains(name) ? name : other;
}

/// "Serialized process and thread identifiers" of the reference: eight bits of host, eight of
/// virtual machine, 24 of process, 24 of thread.
constexpr std::int64_t thread_bits = 24;
constexpr std::int64_t process_of_thread(std::int64_t thread) {
  return thread >> thread_bits << thread_bits;
}
constexpr std::int64_t system_process(std::int64_t process) {
  return (process >> thread_bits) & ((1 << 24) - 1);
}

/// A table of what ran on a GPU: the category under which Kineto has it, and the name in SQL.
struct GpuTable {
  const char *table, *category, *name;
};
// Copies by CUpti_ActivityMemcpyKind of cupti_activity.h, in Kineto's words.
constexpr GpuTable gpu_tables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "kernel", "(SELECT value FROM StringIds WHERE id = {})"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy",
     "CASE copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' "
     "WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", "'Memset (Device)'"},
};

/// The number of a step by the name of its range: "ProfilerStep#3" of the PyTorch profiler (under
/// emit_nvtx more follows a comma), or "step 3", "iteration_3", "Train step: 3" of one's own.
std::optional<std::int64_t> step_of_range(std::string_view text) {
  text = text.substr(0, text.find(','));
  const std::size_t digits = text.find_last_not_of("0123456789") + 1;
  if (digits == text.size() || digits == 0) return std::nullopt;
  std::string word;
  for (const char c : text.substr(0, digits)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (std::string_view(" _#:=-").find(c) == std::string_view::npos)
      return std::nullopt;
  }
  constexpr std::string_view words[] = {"profilerstep", "step",         "iteration", "iter",
                                        "trainstep",    "trainingstep", "batch"};
  if (std::ranges::find(words, word) == std::end(words)) return std::nullopt;
  return integer_of(text.substr(digits));
}

/// Reads the tables of an export into one collector per process.
class NsightReader {
 public:
  explicit NsightReader(const std::string& path) : file_(path) {}

  std::vector<RankTrace> read();

 private:
  void check_tables() const;
  void read_gpu_table(const GpuTable& table);
  void read_launches();
  void read_marks();
  void name_gpus();
  std::string place_of(std::int64_t process) const;

  Export file_;
  std::map<std::int64_t, TraceCollector> ranks_;  // by process; those with kernels alone
};

void NsightReader::check_tables() const {
  if (file_.columns("StringIds").empty())
    throw InputError(file_.path(), "is a SQLite file, but no export of Nsight Systems",
                     nsight_hint);
  if (!file_.columns("CUPTI_ACTIVITY_KIND_GRAPH_TRACE").empty())
    file_.each_row("SELECT 1 FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE LIMIT 1", [&](sqlite3_stmt*) {
      throw InputError(file_.path(), "holds CUDA graphs as a whole, not their kernels",
                       "record with nsys profile --cuda-graph-trace=node");
    });
}

void NsightReader::read_gpu_table(const GpuTable& table) {
  const std::set<std::string> columns = file_.columns(table.table);
  if (columns.empty()) return;
  const bool kernels = std::string_view(table.category) == "kernel";
  const std::string named =
      fmt::format(fmt::runtime(table.name), column_or(columns, "demangledName", "shortName"));
  const std::string process = column_or(columns, "globalPid", "0");
  TraceEvent event;
  event.phase = "X";
  event.list = table.table;
  event.category = table.category;
  std::size_t index = 0;
  file_.each_row(fmt::format("SELECT start, end, deviceId, streamId, correlationId, {}, {} FROM {}",
                             process, named, table.table),
                 [&](sqlite3_stmt* row) {
                   const std::int64_t pid = integer_at(row, 5);
                   if (kernels) ranks_.try_emplace(pid, file_.path());
                   const auto rank = ranks_.find(pid);
                   if (rank == ranks_.end()) return;
                   event.begin = integer_at(row, 0);
                   event.duration = integer_at(row, 1) - *event.begin;
                   event.device = integer_at(row, 2);
                   event.stream = integer_at(row, 3);
                   event.correlation = integer_at(row, 4);
                   const std::string name = text_at(row, 6);
                   event.name = name;
                   event.index = index++;
                   rank->second.add(event);
                 });
}

void NsightReader::read_launches() {
  const char* table = "CUPTI_ACTIVITY_KIND_RUNTIME";
  const std::set<std::string> columns = file_.columns(table);
  if (columns.empty()) return;
  TraceEvent event;
  event.phase = "X";
  event.category = "cuda_runtime";
  const std::string thread = column_or(columns, "globalTid", "0");
  file_.each_row(fmt::format("SELECT start, correlationId, {} FROM {}", thread, table),
                 [&](sqlite3_stmt* row) {
                   const auto rank = ranks_.find(process_of_thread(integer_at(row, 2)));
                   if (rank == ranks_.end()) return;
                   event.begin = integer_at(row, 0);
                   event.correlation = integer_at(row, 1);
                   rank->second.add(event);
                 });
}

/// Ranges of a thread (59) and those between two (60), by eventType of the reference.
void NsightReader::read_marks() {
  const std::set<std::string> columns = file_.columns("NVTX_EVENTS");
  if (columns.empty()) return;
  const std::string text = columns.contains("textId")
                               ? "COALESCE(text, (SELECT value FROM StringIds WHERE id = textId))"
                               : "text";
  const std::string thread = column_or(columns, "globalTid", "0");
  file_.each_row(fmt::format("SELECT start, end, {}, {} FROM NVTX_EVENTS WHERE end IS NOT NULL "
                             "AND eventType IN (59, 60)",
                             thread, text),
                 [&](sqlite3_stmt* row) {
                   const auto rank = ranks_.find(process_of_thread(integer_at(row, 2)));
                   const auto number = step_of_range(text_at(row, 3));
                   if (rank == ranks_.end() || !number) return;
                   const std::int64_t begin = integer_at(row, 0);
                   rank->second.add_host_mark(*number, begin, integer_at(row, 1) - begin);
                 });
}

/// A process numbers the devices that it sees; TARGET_INFO_CUDA_DEVICE says which GPUs they are.
void NsightReader::name_gpus() {
  const std::set<std::string> gpus = file_.columns("TARGET_INFO_GPU");
  const std::set<std::string> devices = file_.columns("TARGET_INFO_CUDA_DEVICE");
  if (!gpus.contains("name")) return;
  for (auto& [process, rank] : ranks_) {
    std::string from = "TARGET_INFO_GPU ORDER BY id";
    if (devices.contains("gpuId") && devices.contains("pid"))
      from = fmt::format(
          "TARGET_INFO_GPU WHERE id IN (SELECT gpuId FROM TARGET_INFO_CUDA_DEVICE WHERE pid = {} "
          "OR {} = 0) ORDER BY id",
          system_process(process), process);
    file_.each_row("SELECT name FROM " + from, [&](sqlite3_stmt* row) {
      RankTrace& trace = rank.trace();
      if (trace.gpu.empty()) trace.gpu = text_at(row, 0);
      ++trace.devices;
    });
  }
}

std::string NsightReader::place_of(std::int64_t process) const {
  return ranks_.size() == 1 ? file_.path()
                            : fmt::format("{} (process {})", file_.path(), system_process(process));
}

std::vector<RankTrace> NsightReader::read() {
  check_tables();
  for (const GpuTable& table : gpu_tables) read_gpu_table(table);
  if (ranks_.empty()) throw InputError(file_.path(), "holds no GPU kernel", nsight_hint);
  read_launches();
  read_marks();
  name_gpus();
  std::vector<RankTrace> out;
  for (auto& [process, rank] : ranks_) {
    rank.trace().file = place_of(process);
    out.push_back(rank.finish());
  }
  return out;
}

}  // namespace

bool is_sqlite(TraceFile& file) {
  // The header string, with its zero: "Database File Format" of sqlite.org, 1.3.1.
  return file.ahead().starts_with(std::string_view("SQLite format 3\0", 16));
}

std::vector<RankTrace> read_nsight(const std::string& path) { return NsightReader(path).read(); }

}  // namespace stepcast::validate
