// A report to hand on: sections of sentences, figures, tables and charts, and the one HTML file
// that shows them. Knows no simulation: who has numbers fills in a Told.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/files/text_table.hpp"

namespace stepcast::sim {

/// All texts are plain: what has a meaning in HTML is escaped where the page is written.
struct Paragraph {
  std::string text;
};

/// "4.2 days" under "whole run", with "3.9 to 4.6, 80 %" below it.
struct KeyFigure {
  std::string label, value, note{};
};
using KeyFigures = std::vector<KeyFigure>;

struct ToldTable {
  std::string title;
  TextTable table;
  bool folded = false;  // behind its title until it is opened
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

using ToldBlock = std::variant<Paragraph, KeyFigures, ToldTable, Chart, Listing>;

struct ToldSection {
  std::string title;
  std::vector<ToldBlock> blocks;
};

struct Told {
  std::string title, summary;
  std::vector<ToldSection> sections;
};

/// One file: style and script inside, nothing fetched.
std::string html_of(const Told& page);

/// Every chart of the page in its order: "step_parts.svg" and its content.
std::vector<std::pair<std::string, std::string>> chart_files(const Told& page);

/// Over no file that is there, but an earlier page of ours. Throws InputError where there is
/// another, OutputError.
void write_page(const std::string& path, const Told& page);

/// The charts as files of a folder, over no file but SVG of ours. Throws as write_page().
void write_charts(const std::string& folder, const Told& page);

}  // namespace stepcast::sim
