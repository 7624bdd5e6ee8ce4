// What a user wants to see of a table: which columns and rows, in which order, and as a file.
//   the verb's options   const std::vector<Option> options = with_table_options(own_options);
//   printing the table   const TextTable asked = view.arranged(std::move(table));
//                        tell(stdout, view.text(asked));
//                        view.write(asked);
// Knows no table.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/files/text_table.hpp"
#include "sim/program/command_line.hpp"

namespace stepcast::sim {

inline constexpr std::array table_options{
    Option{"sort", "[-]COLUMN", "",
           "order the table by a column's name or key; -COLUMN: downwards"},
    Option{"top", "N", "", "of the table the first N rows"},
    Option{"columns", "A,B", "", "of the table these columns, also those of --csv alone"},
    Option{"csv", "FILE", "", "also write the table with all columns in full; -: print only that"},
};

/// A verb's own options, then these.
std::vector<Option> with_table_options(std::span<const Option> own);

/// For tables in which rows may be refused: otherwise these are one line that counts them.
inline constexpr Option refused_option{"refused", "", "", "in the table also what was refused"};

class TableView {
 public:
  TableView() = default;
  /// Throws UsageError where options contradict each other, or have no effect. `own_top`: --top is
  /// the verb's own, and says more than how many rows are shown.
  explicit TableView(const Arguments& arguments, bool own_top = false);

  /// Throws UsageError for a column that the table does not have, before long work begins.
  void check(const TextTable& table) const;

  /// The rows and columns that were asked for. Throws as check() does.
  TextTable arranged(TextTable table) const;
  /// What is printed of it: text, with --csv - CSV.
  std::string text(const TextTable& arranged) const;
  /// Writes --csv FILE; after the answer was printed, which no full disk may cost. Throws
  /// OutputError.
  void write(const TextTable& arranged) const;
  /// The same of text that comes piece by piece.
  using WriteText = std::function<void(std::string_view)>;
  void write(const std::function<void(const WriteText&)>& csv) const;

  /// --csv -: nothing but the CSV is to be printed.
  bool prints_csv() const { return csv_ == "-"; }
  /// Does anything but the columns that are always shown matter?
  bool wants_details() const { return !csv_.empty() || !sort_.empty() || !columns_.empty(); }
  /// What became of refused rows: --refused.
  TextTable::Folded folded() const {
    return refused_ ? TextTable::Folded::shown : TextTable::Folded::left_out;
  }
  /// An option that says how the table stands, "--sort"; none was given: "".
  std::string arrangement() const;
  bool writes_csv() const { return !csv_.empty(); }
  /// Throws UsageError when any option was given: `what` has no table, or several.
  void refuse_for(const std::string& what, const std::string& hint = {}) const;

 private:
  std::size_t column(const TextTable& table, const std::string& option,
                     const std::string& name) const;

  std::string sort_, csv_;
  bool descending_ = false, refused_ = false;
  std::optional<std::size_t> top_;
  std::vector<std::string> columns_;
};

}  // namespace stepcast::sim
