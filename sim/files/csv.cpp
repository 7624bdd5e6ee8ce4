#include "sim/files/csv.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/suggest.hpp"

namespace stepcast::sim {
namespace {

/// What a spreadsheet would compute (OWASP, CSV injection). "'=1" is one as well, so that what
/// was written with an apostrophe of its own is read back with it.
bool is_formula(std::string_view text) {
  while (text.starts_with('\'')) text.remove_prefix(1);
  if (text.size() < 2) return false;
  if (text[0] == '=' || text[0] == '@' || text[0] == '\t') return true;
  return (text[0] == '+' || text[0] == '-') && !number_in<double>(text.substr(1));
}

/// Bytes that a cell without quotes may hold.
constexpr std::array<bool, 256> in_cells = [] {
  std::array<bool, 256> out{};
  for (std::size_t byte = 0; byte < out.size(); ++byte)
    out[byte] = (byte >= 0x20 || byte == '\t') && byte != '"' && byte != ',';
  return out;
}();

/// Reads one row after the other and counts lines.
class Scanner {
 public:
  Scanner(const std::string& path, std::string_view text) : path_(path), text_(text) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.substr(0, 3) == byte_order_mark) text_.remove_prefix(3);
  }

  /// The next row that is not empty; false at the end.
  bool next(CsvRow& row) {
    while (at_ < text_.size() && end_of_line()) skip_line_end();
    if (at_ >= text_.size()) return false;
    row.line = line_;
    row.cells.resize(width_);  // those of a row before are written over
    std::size_t last = 0;
    while (true) {
      std::string& cell = row.cells[last];
      cell.clear();
      if (at_ < text_.size() && text_[at_] == '"')
        quoted(cell);
      else
        plain(cell);
      if (at_ >= text_.size() || text_[at_] != ',') break;
      ++at_;
      if (++last == row.cells.size()) row.cells.emplace_back();
    }
    row.cells.resize(last + 1);
    if (at_ < text_.size()) skip_line_end();
    for (std::string& cell : row.cells)
      if (cell.starts_with('\'') && is_formula(cell)) cell.erase(0, 1);
    width_ = row.cells.size();
    return true;
  }

 private:
  bool end_of_line() const { return text_[at_] == '\n' || text_[at_] == '\r'; }

  void skip_line_end() {
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  void plain(std::string& cell) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_cells[static_cast<unsigned char>(text_[at_])]) ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && !end_of_line()) {
      if (text_[at_] == '"') fail("a quote inside a cell", "put the whole cell into quotes");
      fail("a byte that is no text", "is this a CSV file?");
    }
    cell.assign(text_.data() + begin, at_ - begin);
  }

  void quoted(std::string& cell) {
    const std::int64_t opened = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      } else if (text_[at_] == '\n') {
        ++line_;
      }
      cell += text_[at_];
    }
    if (at_ >= text_.size())
      throw InputError(path_ + ":" + std::to_string(opened), "a quote is never closed");
    ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && !end_of_line())
      fail("text after a closing quote", "write a quote inside a cell twice");
  }

  [[noreturn]] void fail(const char* what, const char* hint) const {
    throw InputError(path_ + ":" + std::to_string(line_), what, hint);
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0, width_ = 1;  // cells of the row before
  std::int64_t line_ = 1;
};

/// The first row of a file.
std::vector<std::string> header_of(const std::string& path, Scanner& scanner) {
  CsvRow row;
  if (!scanner.next(row))
    throw InputError(path + ":1", "is empty", "the first line names the columns");
  return std::move(row.cells);
}

/// The next row under a header of so many cells; false at the end.
bool next_row(const std::string& path, Scanner& scanner, std::size_t width, CsvRow& row) {
  if (!scanner.next(row)) return false;
  if (row.cells.size() != width)
    throw InputError(
        path + ":" + std::to_string(row.line),
        std::to_string(row.cells.size()) + " cells under a header of " + std::to_string(width));
  return true;
}

}  // namespace

CsvFile parse_csv(std::string path, std::string_view text) {
  CsvFile file;
  file.path = std::move(path);
  Scanner scanner(file.path, text);
  file.header = header_of(file.path, scanner);
  for (CsvRow row; next_row(file.path, scanner, file.header.size(), row);)
    file.rows.push_back(std::move(row));
  return file;
}

struct CsvLines::State {
  State(const std::string& path, std::span<const std::string> known)
      : text(read_input(path)), scanner(file.path, text) {
    file.path = path;
    file.header = header_of(path, scanner);
    columns = columns_of(file, known);
  }

  CsvFile file;  // of no rows
  std::string text;
  Scanner scanner;
  CsvColumns columns;
  CsvRow row;
};

CsvLines::CsvLines(const std::string& path, std::span<const std::string> known)
    : state_(std::make_unique<State>(path, known)) {}
CsvLines::~CsvLines() = default;

const CsvColumns& CsvLines::columns() const { return state_->columns; }

std::optional<CsvLine> CsvLines::next() {
  State& s = *state_;
  if (!next_row(s.file.path, s.scanner, s.file.header.size(), s.row)) return std::nullopt;
  return CsvLine(s.file, s.columns, s.row);
}

CsvFile read_csv(const std::string& path) { return parse_csv(path, read_input(path)); }

std::string named_columns(std::span<const std::string> names) {
  std::string out = names.size() == 1 ? "column" : "columns";
  for (const std::string& name : names)
    out += (&name == names.data() ? " \"" : ", \"") + name + '"';
  return out;
}

CsvColumns columns_of(const CsvFile& file, std::span<const std::string> known) {
  const std::string where = file.path + ":1";
  CsvColumns columns;
  std::vector<std::string> unknown;
  for (const std::string& name : file.header)
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.push_back(name);
  if (!unknown.empty())
    throw InputError(where, "unknown " + named_columns(unknown),
                     suggestion(unknown.front(), known));
  for (const std::string& name : file.header) {
    if (!columns.emplace(name, columns.size()).second)
      throw InputError(where, "column \"" + name + "\" twice");
  }
  return columns;
}

CsvColumn::CsvColumn(const CsvColumns& columns, std::string_view called) : name(called) {
  if (const auto found = columns.find(name); found != columns.end()) place = found->second;
}

const std::string& CsvLine::text(const CsvColumn& column) const {
  static const std::string nothing;
  return column.place ? row_.cells[*column.place] : nothing;
}

const std::string& CsvLine::text(std::string_view column) const {
  return text(CsvColumn(columns_, column));
}

const std::string& CsvLine::stated(const CsvColumn& column) const {
  const std::string& cell = text(column);
  if (cell.empty()) fail("the column \"" + std::string(column.name) + "\" is empty");
  return cell;
}

const std::string& CsvLine::stated(std::string_view column) const {
  return stated(CsvColumn(columns_, column));
}

void CsvLine::fail(const std::string& what, const std::string& hint) const {
  throw InputError(file_.path + ":" + std::to_string(row_.line), what, hint);
}

std::string csv_cell(std::string_view text) {
  const std::string safe = (is_formula(text) ? "'" : "") + printable(text);
  if (safe.find_first_of(",\"\n\t") == std::string::npos) return safe;
  std::string cell = "\"";
  for (const char c : safe) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

}  // namespace stepcast::sim
