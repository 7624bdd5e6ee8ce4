// The one form of an answer: sections of sentences, figures, tables and charts. Each is written as
// text, as JSON and as a page. Knows no simulation: who has numbers fills in a Told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/files/text_table.hpp"
#include "sim/form/form.hpp"
#include "sim/program/answer_forms.hpp"

namespace stepcast::sim {

/// All texts are plain: what has a meaning in HTML is escaped where the page is written.
struct Paragraph {
  std::string text;
};

/// A value for programs alone. Its key is its path in the JSON: "wall/down" is a member of "wall".
struct Kept {
  std::string key;
  Exact exact;
};
/// JSON without a table's form, made when it is written: a whole report, or, without a key, members
/// beside the others.
struct KeptJson {
  std::string key;
  std::function<nlohmann::ordered_json()> json;
};

/// "4.2 days" under "whole run", with "3.9 to 4.6, 80 %" below it.
struct KeyFigure {
  std::string label, value, note{};
};
using KeyFigures = std::vector<KeyFigure>;

struct ToldTable {
  std::string title;  // on the page
  TextTable table;
  bool folded = false;  // behind its title until it is opened
  std::string key{};    // of its rows in the JSON
  bool apart = true;    // by an empty line in text; a table without a row there is left out
};

/// A picture and the same numbers as a table.
struct Chart {
  std::string name;   // of its file, and unique in a page: "step_parts"
  std::string title;  // what a screen reader says of it
  std::string svg;    // begins with svg_head() and ends with </svg>
  TextTable numbers;
  std::string note{};  // how to read it
};

/// Text as it is, in columns of letters: a scenario, a command line.
struct Listing {
  std::string title, text;
  bool folded = true;
};

struct ToldSection;
/// Objects of a list in the JSON; in text one behind the other.
struct ToldEach {
  std::string key;
  std::vector<ToldSection> each;
};

using ToldBlock =
    std::variant<Paragraph, Kept, KeptJson, KeyFigures, ToldTable, Chart, Listing, ToldEach>;

struct ToldSection {
  std::string title{};  // on the page
  std::vector<ToldBlock> blocks{};

  /// A line of text, or an empty one.
  void say(std::string sentence = {}) { blocks.emplace_back(Paragraph{std::move(sentence)}); }
  /// A count of any width, a number that may not be there (null), or what else Exact has.
  template <class T>
  void keep(std::string key, const T& value) {
    if constexpr (std::is_same_v<T, std::optional<double>>)
      blocks.emplace_back(Kept{std::move(key), value ? Exact(*value) : Exact(nullptr)});
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      blocks.emplace_back(Kept{std::move(key), static_cast<std::int64_t>(value)});
    else
      blocks.emplace_back(Kept{std::move(key), value});
  }
  void keep_json(std::string key, std::function<nlohmann::ordered_json()> json) {
    blocks.emplace_back(KeptJson{std::move(key), std::move(json)});
  }
  /// All members of a form. Borrows `of` until it is written.
  template <class T>
  void keep(const Form<T>& form, const T& of) {
    keep_json("", [&form, &of] { return form.json(of); });
  }
  void table(std::string key, TextTable table, bool apart = true) {
    blocks.emplace_back(ToldTable{"", std::move(table), false, std::move(key), apart});
  }
};

struct Told {
  std::string title, summary;
  std::vector<ToldSection> sections;
};

/// What people read on a terminal.
std::string as_text(const ToldSection& section);
/// What has a key, in its order; a key that is told twice has the later value.
nlohmann::ordered_json as_json(const ToldSection& section);
/// Both, and CSV of these lists of the JSON, which is stamped as a document of that name. Borrows
/// `section`.
AnswerForms forms_of(const ToldSection& section, std::string_view document,
                     std::vector<std::string_view> lists);
/// One HTML file: style and script inside, nothing fetched.
std::string as_page(const Told& page);

/// Every chart of the page in its order: "step_parts.svg" and its content.
std::vector<std::pair<std::string, std::string>> chart_files(const Told& page);

/// Over no file that is there, but an earlier page of ours: one that names stepcast as its
/// generator among its first lines. Throws InputError where there is another, OutputError.
void write_page(const std::string& path, const Told& page);
/// The same of a page that is HTML already.
void write_html(const std::string& path, std::string_view html);

/// The charts as files of a folder, over no file but SVG of ours. Throws as write_page().
void write_charts(const std::string& folder, const Told& page);

}  // namespace stepcast::sim
