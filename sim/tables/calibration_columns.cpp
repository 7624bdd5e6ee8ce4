#include "sim/tables/calibration_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/tables/text_faults.hpp"

namespace stepcast::sim {
namespace {

// How a member lies in a file.
struct Format {
  Stored stored;
  const char* unit;
};
constexpr Format format_of(const std::string*) { return {Stored::text, "text"}; }
constexpr Format format_of(const bool*) { return {Stored::flag, "1"}; }
constexpr Format format_of(const std::int64_t*) { return {Stored::whole, "1"}; }
constexpr Format format_of(const Bytes*) { return {Stored::whole, "B"}; }
constexpr Format format_of(const Duration*) { return {Stored::whole, "ps"}; }
constexpr Format format_of(const double*) { return {Stored::real, "1"}; }
constexpr Format format_of(const FlopsPerSecond*) { return {Stored::real, "FLOP/s"}; }
constexpr Format format_of(const BytesPerSecond*) { return {Stored::real, "B/s"}; }
constexpr Format format_of(const Watts*) { return {Stored::real, "W"}; }

Cell cell_of(const std::string& text) { return std::string_view(text); }
Cell cell_of(bool flag) { return std::int64_t{flag}; }
Cell cell_of(std::int64_t count) { return count; }
Cell cell_of(double number) { return number; }
Cell cell_of(Duration duration) { return std::int64_t{duration.count()}; }
template <class Tag, class Rep>
Cell cell_of(Quantity<Tag, Rep> quantity) {
  return quantity.value;
}

void assign(std::string& text, const Cell& cell) { text = std::get<std::string_view>(cell); }
void assign(bool& flag, const Cell& cell) { flag = std::get<std::int64_t>(cell) != 0; }
void assign(std::int64_t& count, const Cell& cell) { count = std::get<std::int64_t>(cell); }
void assign(double& number, const Cell& cell) { number = std::get<double>(cell); }
void assign(Duration& duration, const Cell& cell) {
  duration = Duration(std::get<std::int64_t>(cell));
}
template <class Tag, class Rep>
void assign(Quantity<Tag, Rep>& quantity, const Cell& cell) {
  quantity.value = std::get<Rep>(cell);
}

/// The member that a path of members leads to.
template <class T, class Member>
auto& at(T& row, Member member) {
  return row.*member;
}
template <class T, class Member, class... Rest>
auto& at(T& row, Member member, Rest... rest) {
  return at(row.*member, rest...);
}

/// Makes the columns of one family, whose rows are the vector `rows` of the table.
template <auto rows>
struct Of {
  using Row = typename std::decay_t<decltype(std::declval<CalibrationTable>().*rows)>::value_type;

  template <auto... path>
  static Column column(const char* name, Role role) {
    using Member = std::decay_t<decltype(at(std::declval<Row&>(), path...))>;
    constexpr Format format = format_of(static_cast<const Member*>(nullptr));
    const auto get = [](const CalibrationTable& table, std::size_t row) {
      return cell_of(at((table.*rows)[row], path...));
    };
    const auto set = [](CalibrationTable& table, std::size_t row, const Cell& cell) {
      assign(at((table.*rows)[row], path...), cell);
    };
    return {name, format.unit, format.stored, role, get, set};
  }
  template <auto member>
  static Column key(const char* name) {
    return column<member>(name, Role::key);
  }
  template <auto member>
  static Column figure(const char* name) {
    return column<member>(name, Role::figure);
  }
  template <auto member>
  static Column note(const char* name) {
    return column<member>(name, Role::note);
  }

  static Family family(const char* name, std::vector<Column> columns);
};

Column positive(Column column) {
  column.positive = true;
  return column;
}
Column words(std::span<const std::string_view> words, Column column) {
  column.words = words;
  return column;
}
template <class Listed>  // a column or a family
Listed since(std::int64_t version, Listed listed) {
  listed.since = version;
  return listed;
}

Family of_all(Family family) {
  family.of_all = true;
  return family;
}

Family few(Family family) {
  family.few = true;
  return family;
}

template <auto rows>
Family Of<rows>::family(const char* name, std::vector<Column> columns) {
  constexpr bool timed = requires(Row row) { row.quality; };
  if constexpr (timed) {
    const Role note = Role::note;
    columns.push_back(since(2, column<&Row::quality, &Quality::spread>("spread", note)));
    columns.push_back(since(2, column<&Row::quality, &Quality::samples>("samples", note)));
    columns.push_back(since(2, column<&Row::quality, &Quality::throttled>("throttled", note)));
    columns.push_back(since(2, column<&Row::quality, &Quality::error>("error", note)));
  }
  using Table = CalibrationTable;
  return {
      .name = name,
      .columns = std::move(columns),
      .size = [](const Table& table) { return (table.*rows).size(); },
      .resize = [](Table& table, std::size_t size) { (table.*rows).resize(size); },
      .append =
          [](Table& to, const Table& from) {
            (to.*rows).insert((to.*rows).end(), (from.*rows).begin(), (from.*rows).end());
          },
      .erase =
          [](Table& table, const std::vector<bool>& gone) {
            std::size_t row = 0;
            std::erase_if(table.*rows, [&](const Row&) { return gone[row++]; });
          },
      .source = [](const Table& table, std::size_t row) -> const SharedSource& {
        return (table.*rows)[row].source;
      },
      .set_source = [](Table& table, std::size_t row,
                       const SharedSource& source) { (table.*rows)[row].source = source; },
      .quality = [](const Table& table, std::size_t row) -> Quality {
        if constexpr (timed)
          return (table.*rows)[row].quality;
        else
          return {};
      },
  };
}

constexpr std::string_view layouts[] = {"", "NN", "NT", "TN", "TT"};
constexpr std::string_view contents[] = {"", "random", "small", "zeros"};
constexpr std::string_view passes[] = {"", "forward", "backward"};
constexpr std::string_view attention_passes[] = {"forward", "backward", "forward_backward"};
constexpr std::string_view masks[] = {"causal", "full", "not_stated"};
constexpr std::string_view calls[] = {"", "loop", "one_launch"};
constexpr std::string_view limits[] = {"", "power", "sustained"};
constexpr std::string_view caches[] = {"", "cold", "hot"};
Column cache(Column column) { return since(2, words(caches, column)); }

Family gemm() {
  using Row = GemmRow;
  using Of = Of<&CalibrationTable::gemm>;
  return Of::family(
      "gemm",
      {Of::key<&Row::gpu>("gpu"), Of::key<&Row::dtype>("dtype"), positive(Of::key<&Row::m>("m")),
       positive(Of::key<&Row::n>("n")), positive(Of::key<&Row::k>("k")),
       words(layouts, Of::key<&Row::layout>("layout")),
       words(contents, Of::key<&Row::data>("data")), positive(Of::figure<&Row::rate>("rate")),
       since(2, Of::key<&Row::accumulate>("accumulate")), since(2, Of::key<&Row::choice>("choice")),
       cache(Of::key<&Row::cache>("cache")), since(3, Of::key<&Row::groups>("groups")),
       since(3, words(calls, Of::key<&Row::call>("call"))),
       since(3, words(limits, Of::key<&Row::limit>("limit")))});
}

Family attention() {
  using Row = AttentionRow;
  using Of = Of<&CalibrationTable::attention>;
  return Of::family(
      "attention",
      {Of::key<&Row::gpu>("gpu"), Of::key<&Row::dtype>("dtype"),
       words(attention_passes, Of::key<&Row::pass>("pass")),
       Of::key<&Row::implementation>("implementation"), Of::key<&Row::batch>("batch"),
       Of::key<&Row::heads>("heads"), Of::key<&Row::kv_heads>("kv_heads"),
       positive(Of::key<&Row::sequence>("sequence")), positive(Of::key<&Row::head_dim>("head_dim")),
       words(masks, Of::key<&Row::mask>("mask")), positive(Of::figure<&Row::rate>("rate")),
       cache(Of::key<&Row::cache>("cache")), since(3, Of::key<&Row::value_dim>("value_dim")),
       since(3, Of::key<&Row::window>("window"))});
}

Family elementwise() {
  using Row = ElementwiseRow;
  using Of = Of<&CalibrationTable::elementwise>;
  return Of::family(
      "elementwise",
      {Of::key<&Row::gpu>("gpu"), Of::key<&Row::dtype>("dtype"), Of::key<&Row::kind>("kind"),
       Of::key<&Row::implementation>("implementation"), Of::key<&Row::tokens>("tokens"),
       Of::key<&Row::shape>("shape"), positive(Of::note<&Row::bytes>("bytes")),
       positive(Of::figure<&Row::duration>("duration")), since(2, Of::key<&Row::width>("width")),
       since(2, words(passes, Of::key<&Row::pass>("pass"))), cache(Of::key<&Row::cache>("cache"))});
}

Column checked(const char* (*fault)(std::string_view), Column column) {
  column.text_fault = fault;
  return column;
}

Column version(Column column) { return checked(version_fault, column); }

Family collectives() {
  using Row = CollectiveRow;
  using Of = Of<&CalibrationTable::collectives>;
  return Of::family(
      "collectives",
      {Of::key<&Row::gpu>("gpu"), Of::key<&Row::dtype>("dtype"),
       Of::key<&Row::collective>("collective"), Of::key<&Row::ranks>("ranks"),
       Of::key<&Row::nodes>("nodes"), Of::key<&Row::gpus_per_node>("gpus_per_node"),
       Of::key<&Row::bytes>("bytes"), Of::figure<&Row::duration>("duration"),
       words(fabric_words, Of::key<&Row::fabric>("fabric")), version(Of::key<&Row::nccl>("nccl")),
       words(timing_words, Of::key<&Row::timing>("timing")),
       checked(processes_fault, Of::key<&Row::processes>("processes")),
       Of::key<&Row::node_bandwidth>("node_bandwidth"), Of::figure<&Row::busbw>("busbw"),
       since(2, Of::key<&Row::algorithm>("algorithm")),
       since(2, Of::key<&Row::protocol>("protocol"))});
}

Family copies() {
  using Row = CopyRow;
  using Of = Of<&CalibrationTable::copies>;
  return Of::family(
      "copies",
      {Of::key<&Row::gpu>("gpu"), Of::key<&Row::kind>("kind"), Of::key<&Row::what>("what"),
       Of::key<&Row::gpus>("gpus"), positive(Of::figure<&Row::rate>("rate")),
       since(2, Of::key<&Row::bytes>("bytes")), cache(Of::key<&Row::cache>("cache"))});
}

Family nccl_tuning() {
  using Row = NcclTuningRow;
  using Of = Of<&CalibrationTable::nccl_tuning>;
  return Of::family("nccl_tuning",
                    {Of::key<&Row::gpu>("gpu"), version(Of::key<&Row::nccl>("nccl")),
                     Of::key<&Row::collective>("collective"), Of::key<&Row::algorithm>("algorithm"),
                     Of::key<&Row::protocol>("protocol"), positive(Of::key<&Row::ranks>("ranks")),
                     positive(Of::key<&Row::nodes>("nodes")), Of::figure<&Row::latency>("latency"),
                     positive(Of::note<&Row::bandwidth>("bandwidth"))});
}

Family nccl_choices() {
  using Row = NcclChoiceRow;
  using Of = Of<&CalibrationTable::nccl_choices>;
  return Of::family(
      "nccl_choices",
      {Of::key<&Row::gpu>("gpu"), version(Of::key<&Row::nccl>("nccl")),
       Of::key<&Row::collective>("collective"), positive(Of::key<&Row::ranks>("ranks")),
       positive(Of::key<&Row::nodes>("nodes")), positive(Of::key<&Row::bytes>("bytes")),
       Of::note<&Row::algorithm>("algorithm"), Of::note<&Row::protocol>("protocol"),
       Of::note<&Row::channels>("channels"), Of::note<&Row::estimate>("estimate")});
}

Family launches() {
  using Row = LaunchRow;
  using Of = Of<&CalibrationTable::launches>;
  return Of::family("launches", {Of::key<&Row::gpu>("gpu"), Of::key<&Row::what>("what"),
                                 positive(Of::figure<&Row::duration>("duration"))});
}

Family overlaps() {
  using Row = OverlapRow;
  using Of = Of<&CalibrationTable::overlaps>;
  return Of::family(
      "overlaps", {Of::key<&Row::gpu>("gpu"), Of::key<&Row::kernel>("kernel"),
                   Of::key<&Row::collective>("collective"), positive(Of::key<&Row::ranks>("ranks")),
                   positive(Of::key<&Row::nodes>("nodes")), Of::key<&Row::bytes>("bytes"),
                   positive(Of::note<&Row::kernel_alone>("kernel_alone")),
                   positive(Of::figure<&Row::kernel_beside>("kernel_beside")),
                   positive(Of::note<&Row::collective_alone>("collective_alone")),
                   positive(Of::note<&Row::collective_beside>("collective_beside"))});
}

Family powers() {
  using Row = PowerRow;
  using Of = Of<&CalibrationTable::powers>;
  return Of::family("powers", {Of::key<&Row::gpu>("gpu"), Of::key<&Row::load>("load"),
                               positive(Of::figure<&Row::power>("power"))});
}

/// What no machine does, in the column's unit; a host's slowest and a rack's fastest are within:
/// four bytes reduced by ranks that the system let wait for 12 ms are 333 B/s (two busy cores,
/// 2026-11-26).
struct UnitRange {
  std::string_view unit;
  double least, most;
};
constexpr UnitRange unit_ranges[] = {
    {"B/s", 10, 1e18}, {"FLOP/s", 1e3, 1e21}, {"W", 1e-3, 1e6}, {"ps", 1, 1e18}};

const UnitRange* range_of(const Column& column) {
  const auto found =
      std::ranges::find(unit_ranges, std::string_view(column.unit), &UnitRange::unit);
  return found == std::end(unit_ranges) ? nullptr : found;
}

/// "" for a number that the column, whose unit has this range, may hold.
const char* number_fault(const Column& column, const UnitRange* range, double value) {
  if (!std::isfinite(value)) return "is not a finite number";
  if (column.positive && !(value > 0.0)) return "is not a positive number";
  if (value < 0.0) return "is less than zero";
  if (range != nullptr && value != 0.0 && (value < range->least || value > range->most))
    return "is beyond any machine: is its unit right?";
  return "";
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all{gemm(),
                                       of_all(attention()),
                                       elementwise(),
                                       collectives(),
                                       copies(),
                                       few(since(2, nccl_tuning())),
                                       few(since(2, nccl_choices())),
                                       few(since(2, launches())),
                                       few(since(2, overlaps())),
                                       few(since(2, powers()))};
  return all;
}

const std::array<SourceColumn, 11> source_columns{{
    {"source", [](RowSource& row) -> std::string& { return row.source; }},
    {"reference", [](RowSource& row) -> std::string& { return row.reference; }},
    {"confidence", [](RowSource& row) -> std::string& { return row.confidence; }},
    {"device", [](RowSource& row) -> std::string& { return row.on.device; }},
    {"driver", [](RowSource& row) -> std::string& { return row.on.driver; }},
    {"runtime", [](RowSource& row) -> std::string& { return row.on.runtime; }},
    {"gemm_library", [](RowSource& row) -> std::string& { return row.on.gemm_library; }},
    {"collective_library",
     [](RowSource& row) -> std::string& { return row.on.collective_library; }},
    {"clocks", [](RowSource& row) -> std::string& { return row.on.clocks; }},
    {"date", [](RowSource& row) -> std::string& { return row.on.date; }},
    {"command", [](RowSource& row) -> std::string& { return row.on.command; }},
}};

std::vector<Cell> key_of(const Family& family, const CalibrationTable& table, std::size_t row) {
  std::vector<Cell> key;
  for (const Column& column : family.columns)
    if (column.role == Role::key) key.push_back(column.get(table, row));
  return key;
}

namespace {

bool is_type(const Column& column) { return std::string_view(column.name) == "dtype"; }

/// "" for a cell that the column may hold.
std::string cell_fault(const Column& column, const UnitRange* range, const Cell& cell) {
  if (const auto* count = std::get_if<std::int64_t>(&cell))
    return number_fault(column, range, static_cast<double>(*count));
  if (const auto* number = std::get_if<double>(&cell)) return number_fault(column, range, *number);
  const std::string_view text = std::get<std::string_view>(cell);
  const auto& words = column.words;
  if (!words.empty() && std::ranges::find(words, text) == words.end())
    return fmt::format("is none of {}",
                       fmt::join(words.begin() + words.front().empty(), words.end(), ", "));
  if (is_type(column) && !is_element_type(text))
    return "is no type of elements: bf16, fp16, fp32, fp8 ...";
  return column.text_fault != nullptr ? column.text_fault(text) : "";
}

/// Of texts, most of which repeat that of the row before.
bool has_sound_texts(const Column& column, const Family& family, const CalibrationTable& table) {
  if (column.words.empty() && !is_type(column) && column.text_fault == nullptr) return true;
  std::optional<std::string_view> before;
  for (std::size_t row = 0; row < family.size(table); ++row) {
    const Cell cell = column.get(table, row);
    const auto text = std::get<std::string_view>(cell);
    if (before == text) continue;
    if (!cell_fault(column, nullptr, cell).empty()) return false;
    before = text;
  }
  return true;
}

/// Whether a column may hold all that it does.
bool is_sound(const Column& column, const Family& family, const CalibrationTable& table) {
  if (column.stored == Stored::text) return has_sound_texts(column, family, table);
  const UnitRange* range = range_of(column);
  for (std::size_t row = 0; row < family.size(table); ++row) {
    const Cell cell = column.get(table, row);
    const auto* real = std::get_if<double>(&cell);
    const double value =
        real != nullptr ? *real : static_cast<double>(std::get<std::int64_t>(cell));
    if (*number_fault(column, range, value) != '\0') return false;
  }
  return true;
}

}  // namespace

bool is_sound(const Family& family, const CalibrationTable& table) {
  return std::ranges::all_of(family.columns,
                             [&](const Column& column) { return is_sound(column, family, table); });
}

std::string fault_of(const Family& family, const CalibrationTable& table, std::size_t row) {
  for (const Column& column : family.columns) {
    const Cell cell = column.get(table, row);
    const std::string fault = cell_fault(column, range_of(column), cell);
    if (!fault.empty()) return fmt::format("{} \"{}\" {}", column.name, exact_text(cell), fault);
  }
  return "";
}

std::string exact_text(const Cell& cell) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, cell);
}

bool says_something(const Cell& cell) {
  if (const auto* text = std::get_if<std::string_view>(&cell)) return !text->empty();
  return cell != Cell(std::int64_t{0}) && cell != Cell(0.0);
}

std::string readable_text(const Column& column, const Cell& cell) {
  const std::string_view unit = column.unit;
  if (const auto* count = std::get_if<std::int64_t>(&cell)) {
    if (unit == "B") return to_text(Bytes(*count));
    if (unit == "ps") return to_text(Duration(*count));
  } else if (const auto* number = std::get_if<double>(&cell)) {
    if (unit == "B/s") return to_text(BytesPerSecond(*number));
    if (unit == "FLOP/s") return to_text(FlopsPerSecond(*number));
    return unit == "W" ? to_text(Watts(*number)) : three_digits(*number);
  }
  return exact_text(cell);
}

}  // namespace stepcast::sim
