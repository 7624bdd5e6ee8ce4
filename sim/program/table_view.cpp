#include "sim/program/table_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/files/split.hpp"
#include "sim/files/suggest.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

/// "-step" and "step:desc" as "step" downwards.
std::pair<std::string, bool> order_of(std::string text) {
  for (const auto& [ending, down] : {std::pair{":desc", true}, {":asc", false}})
    if (text.ends_with(ending))
      return {text.substr(0, text.size() - std::string_view(ending).size()), down};
  if (text.starts_with('-')) return {text.substr(1), true};
  return {std::move(text), false};
}

/// At blanks, into lines of so many letters.
std::string broken_text(const std::string& text, std::size_t width) {
  std::string out, line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width)
      out += std::exchange(line, "") + "\n";
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return out + line + "\n";
}

/// Of the terminal that standard output is; none: it is none, or says nothing.
std::optional<std::size_t> terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

}  // namespace

std::vector<Option> with_table_options(std::span<const Option> own) {
  std::vector<Option> out(own.begin(), own.end());
  out.insert(out.end(), table_options.begin(), table_options.end());
  return out;
}

TableView::TableView(const Arguments& arguments, bool own_top)
    : csv_(arguments.get("csv")), refused_(arguments.has("refused")) {
  std::tie(sort_, descending_) = order_of(arguments.get("sort"));
  if (arguments.has("top") && !own_top) top_ = static_cast<std::size_t>(arguments.count("top", 1));
  if (arguments.has("columns"))
    for (const std::string written = arguments.get("columns");
         const std::string_view column : split(written, ','))
      columns_.emplace_back(column);
  if (!arguments.has("json")) return;
  if (prints_csv()) throw UsageError("both --json and --csv -", "--csv FILE writes beside it");
  const std::string option = arrangement();
  if (!option.empty() && csv_.empty())
    throw UsageError(option + " arranges a table, and --json prints none",
                     "leave one of them out, or add --csv FILE");
}

std::string TableView::arrangement() const {
  if (!sort_.empty()) return "--sort";
  if (top_) return "--top";
  if (!columns_.empty()) return "--columns";
  return refused_ ? "--refused" : "";
}

void TableView::refuse_for(const std::string& what, const std::string& hint) const {
  const std::string option = writes_csv() ? "--csv" : arrangement();
  if (!option.empty()) throw UsageError(option + " is for one table: " + what, hint);
}

std::size_t TableView::column(const TextTable& table, const std::string& option,
                              const std::string& name) const {
  if (const auto found = table.find(name)) return *found;
  std::vector<std::string> known = table.headings();
  if (!closest(name, known)) known = table.keys();
  throw UsageError("--" + option + ": no column '" + name + "'", suggestion(name, known));
}

void TableView::check(const TextTable& table) const {
  if (!sort_.empty()) column(table, "sort", sort_);
  for (const std::string& name : columns_) column(table, "columns", name);
}

TextTable TableView::arranged(TextTable table) const {
  check(table);
  if (!sort_.empty()) table.sort(column(table, "sort", sort_), descending_);
  if (top_) table.keep_first(*top_, folded());
  if (columns_.empty()) return table;
  std::vector<std::size_t> kept;
  for (const std::string& name : columns_) kept.push_back(column(table, "columns", name));
  table.select(kept);
  return table;
}

void TableView::write(const TextTable& arranged) const {
  write([&](const WriteText& write) { write(arranged.csv()); });
}

void TableView::write(const std::function<void(const WriteText&)>& csv) const {
  if (!writes_csv() || prints_csv()) return;
  WholeFile file(csv_);
  csv([&](std::string_view text) { file.write(text); });
  file.seal();
  file.keep();
}

std::string TableView::text(const TextTable& arranged) const {
  if (prints_csv()) return arranged.csv();
  const std::optional<std::size_t> width = columns_.empty() ? terminal_width() : std::nullopt;
  if (!width) return arranged.text(folded());
  TextTable fitted = arranged;
  const std::vector<std::string> left_out = fitted.fit(*width, folded());
  std::string out = fitted.text(folded());
  if (!left_out.empty())
    out += broken_text(
        fmt::format("not shown in {} columns: {}; --columns A,B shows them, --csv FILE has all",
                    *width, fmt::join(left_out, ", ")),
        *width);
  return out;
}

}  // namespace stepcast::sim
