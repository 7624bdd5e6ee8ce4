#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "engine/check.hpp"
#include "sim/files/svg.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/told/page_style.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {
namespace {

/// By which an earlier page of ours is known.
constexpr std::string_view generator = "<meta name=\"generator\" content=\"stepcast\">";

/// Text of an element or an attribute: XML's rules are HTML's here. Line breaks stay.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += (at > 0 ? "\n" : "") + svg_escaped(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Writes blocks one after the other; numbers what is referred to.
class Writer {
 public:
  std::string section(const ToldSection& section, std::size_t index) {
    std::string out = fmt::format("<section aria-labelledby=\"s{0}\">\n<h2 id=\"s{0}\">{1}</h2>\n",
                                  index, escaped(section.title));
    return out + blocks_of(section) + "</section>\n";
  }

 private:
  std::string blocks_of(const ToldSection& section) {
    std::string out;
    for (const ToldBlock& block : section.blocks)
      out += std::visit([&](const auto& one) { return text_of(one); }, block);
    return out;
  }

  std::string text_of(const Paragraph& paragraph) {
    if (paragraph.text.empty()) return {};
    return "<p>" + escaped(paragraph.text) + "</p>\n";
  }

  std::string text_of(const Kept&) { return {}; }
  std::string text_of(const KeptJson&) { return {}; }

  std::string text_of(const ToldEach& list) {
    std::string out;
    for (const ToldSection& section : list.each) out += blocks_of(section);
    return out;
  }

  std::string text_of(const KeyFigures& figures) {
    std::string out = "<dl class=\"figures\">\n";
    for (const KeyFigure& figure : figures) {
      out += fmt::format("<div><dt>{}</dt><dd class=\"value\">{}</dd>", escaped(figure.label),
                         escaped(figure.value));
      if (!figure.note.empty())
        out += fmt::format("<dd class=\"note\">{}</dd>", escaped(figure.note));
      out += "</div>\n";
    }
    return out + "</dl>\n";
  }

  std::string text_of(const ToldTable& table) {
    if (table.folded) return folded(table.title, copied(table.table, table.title));
    return fmt::format("<h3>{}</h3>\n", escaped(table.title)) + copied(table.table, table.title);
  }

  std::string text_of(const Chart& chart) {
    std::string out = fmt::format("<figure id=\"{}\">\n<figcaption>{}", escaped(chart.name),
                                  escaped(chart.title));
    if (!chart.note.empty())
      out += fmt::format("<br/><span class=\"note\">{}</span>", escaped(chart.note));
    out += "</figcaption>\n" + scrolled(chart.svg, chart.title);
    return out + folded("Numbers: " + chart.title, copied(chart.numbers, chart.title)) +
           "</figure>\n";
  }

  std::string text_of(const Listing& listing) {
    const std::string id = next_id();
    const std::string body =
        button(id, listing.title) + fmt::format(
                                        "<pre id=\"{}\" tabindex=\"0\" role=\"region\" "
                                        "aria-label=\"{}\">{}</pre>\n",
                                        id, escaped(listing.title), escaped(listing.text));
    if (listing.folded) return folded(listing.title, body);
    return fmt::format("<h3>{}</h3>\n", escaped(listing.title)) + body;
  }

  static std::string folded(const std::string& title, const std::string& body) {
    return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escaped(title), body);
  }

  /// What may be wider than the page scrolls by itself, with the keys as well.
  static std::string scrolled(const std::string& body, const std::string& title,
                              const char* look = "scroll") {
    return fmt::format(
        "<div class=\"{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{}</div>\n", look,
        escaped(title), body);
  }

  static std::string button(const std::string& id, const std::string& title) {
    return fmt::format(
        "<button type=\"button\" data-copy=\"{}\" aria-label=\"copy: {}\">copy</button>\n", id,
        escaped(title));
  }

  std::string copied(const TextTable& table, const std::string& title) {
    const std::string id = next_id();
    const TextTable::Shown shown = table.shown();
    const bool cards = shown.columns.size() > 4 && shown.rows.size() <= 12;
    return scrolled(rows(shown, id, cards), "table: " + title, cards ? "scroll cards" : "scroll") +
           button(id, title);
  }

  /// As cards each cell carries its column's name: a phone shows a row as a list of them.
  static std::string rows(const TextTable::Shown& table, const std::string& id, bool cards) {
    const auto side = [&](std::size_t i) {
      return table.columns[i].align == TextTable::Align::left ? " class=\"left\"" : "";
    };
    const auto name = [&](std::size_t i) {
      const auto& [heading, unit, align] = table.columns[i];
      return escaped(heading + (heading.empty() || unit.empty() ? "" : " ") + unit);
    };
    const auto is = [&](std::size_t i) {
      return name(i).empty() ? "" : fmt::format(" data-is=\"{}\"", name(i));
    };
    std::string out = fmt::format("<table id=\"{}\">\n<thead><tr>", id);
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      out += name(i).empty() ? "<td></td>"
                             : fmt::format("<th scope=\"col\"{}>{}</th>", side(i), name(i));
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& [cells, sentence] : table.rows) {
      out += "<tr>";
      for (std::size_t i = 0; i < cells.size(); ++i)
        out += fmt::format("<td{}{}>{}</td>", side(i), cards ? is(i) : "", escaped(cells[i]));
      if (sentence)
        out += fmt::format("<td colspan=\"{}\">{}</td>", table.columns.size() - cells.size(),
                           escaped(*sentence));
      out += "</tr>\n";
    }
    return out + "</tbody>\n</table>\n";
  }

  std::string next_id() { return fmt::format("t{}", ++num_ids_); }

  int num_ids_ = 0;
};

/// Whether a file may be written over: it is not there, or begins as ours do.
bool ours_or_nothing(const std::string& path, std::string_view sign) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return true;  // a pipe is written as it is
  std::ifstream file(path, std::ios::binary);
  std::string head(1024, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find(sign) != std::string::npos;
}

void check_free(const std::string& path, std::string_view sign, const char* what) {
  if (!ours_or_nothing(path, sign))
    throw InputError(path, "is there already and is no " + std::string(what) + " of stepcast",
                     "name another file");
}

}  // namespace

std::string as_page(const Told& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n<nav aria-label=\"sections\"><ul>\n",
      generator, escaped(page.title), page_style, escaped(page.title), escaped(page.summary));
  for (std::size_t i = 0; i < page.sections.size(); ++i)
    out += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i, escaped(page.sections[i].title));
  out += "</ul></nav>\n<main>\n";
  Writer writer;
  for (std::size_t i = 0; i < page.sections.size(); ++i) out += writer.section(page.sections[i], i);
  return out + fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", page_script);
}

std::vector<std::pair<std::string, std::string>> chart_files(const Told& page) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ToldSection& section : page.sections)
    for (const ToldBlock& block : section.blocks)
      if (const auto* chart = std::get_if<Chart>(&block))
        out.emplace_back(chart->name + ".svg", chart->svg);
  return out;
}

void write_html(const std::string& path, std::string_view html) {
  check_free(path, generator, "report");
  write_whole(path, html);
}

void write_page(const std::string& path, const Told& page) { write_html(path, as_page(page)); }

void write_charts(const std::string& folder, const Told& page) {
  namespace fs = std::filesystem;
  const auto files = chart_files(page);
  const std::string sign = svg_head(0, 0, "").substr(0, 45);
  for (const auto& [name, svg] : files)
    check_free((fs::path(folder) / name).string(), sign, "picture");
  write_together(folder, files);
}

}  // namespace stepcast::sim
