#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>

#include "engine/check.hpp"
#include "sim/files/svg.hpp"
#include "sim/told/told.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

const std::string hostile = "<script>hacked=1</script>\" onload=\"x\" & 'y'";

TextTable hostile_table() {
  TextTable table;
  table.column(hostile, hostile);
  table.column("b", "s", TextTable::Align::left);
  table.row({hostile, "2"});
  table.sentence({"x"}, hostile);
  return table;
}

Told hostile_page() {
  const std::string svg = svg_head(10, 10, hostile) + "</svg>\n";
  ToldSection section{hostile, {}};
  section.blocks.emplace_back(Paragraph{hostile});
  section.blocks.emplace_back(KeyFigures{{hostile, hostile, hostile}});
  section.blocks.emplace_back(ToldTable{hostile, hostile_table(), true});
  section.blocks.emplace_back(ToldTable{hostile, hostile_table(), false});
  section.blocks.emplace_back(Chart{"one", hostile, svg, hostile_table(), hostile});
  section.blocks.emplace_back(Listing{hostile, hostile + "\nsecond line", false});
  return {hostile, hostile, {section}};
}

/// What lies between the tags is XML as well: read by another's parser.
pugi::xml_document main_of(const std::string& html) {
  const std::size_t from = html.find("<main>"), to = html.find("</main>") + 7;
  pugi::xml_document out;
  REQUIRE(out.load_string(html.substr(from, to - from).c_str(),
                          pugi::parse_default | pugi::parse_ws_pcdata));
  return out;
}

struct Folder {
  std::filesystem::path path = tests::own_folder() / ("stepcast_page_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every text of a page is text, whatever it says") {
  const std::string html = as_page(hostile_page());
  CHECK(html.find("<script>hacked") == std::string::npos);
  CHECK(html.find("\" onload=") == std::string::npos);
  const pugi::xml_document page = main_of(html);
  CHECK(page.select_node("//h2").node().text().get() == hostile);
  CHECK(page.select_node("//p").node().text().get() == hostile);
  CHECK(page.select_node("//dd[@class='value']").node().text().get() == hostile);
  CHECK(page.select_node("//pre").node().text().get() == hostile + "\nsecond line");
  CHECK(page.select_node("//figure/div").node().attribute("aria-label").value() == hostile);
  CHECK(page.select_nodes("//script").empty());
}

TEST_CASE("a table of a page has the cells of the table, a sentence over those that are left") {
  const pugi::xml_document page = main_of(as_page(hostile_page()));
  CHECK(page.select_nodes("//table").size() == 3);
  const pugi::xml_node table = page.select_node("//figure//table").node();
  CHECK(table.select_node("thead//th[1]").node().text().get() == hostile + " " + hostile);
  CHECK(table.select_node("tbody/tr[1]/td[1]").node().text().get() == hostile);
  CHECK(table.select_node("tbody/tr[1]/td[2]").node().text().get() == std::string("2"));
  const pugi::xml_node sentence = table.select_node("tbody/tr[2]/td[2]").node();
  CHECK(sentence.attribute("colspan").as_int() == 1);
  CHECK(sentence.text().get() == hostile);
}

TEST_CASE("a page takes the place of a page of ours and of nothing else") {
  const Folder folder;
  const std::string file = (folder.path / "a.html").string();
  write_page(file, {"first", "", {}});
  write_page(file, {"second", "", {}});
  CHECK(content(file).find("<h1>second</h1>") != std::string::npos);
  std::ofstream(file) << "mine";
  CHECK_THROWS_AS(write_page(file, Told{"third", "", {}}), InputError);
  CHECK(content(file) == "mine");
}

TEST_CASE("charts are files, and take the place of no other's") {
  const Folder folder;
  const std::string pictures = (folder.path / "pictures").string();
  write_charts(pictures, hostile_page());
  CHECK(content(pictures + "/one.svg") == svg_head(10, 10, hostile) + "</svg>\n");
  write_charts(pictures, hostile_page());
  std::ofstream(pictures + "/one.svg") << "mine";
  CHECK_THROWS_AS(write_charts(pictures, hostile_page()), InputError);
  CHECK(content(pictures + "/one.svg") == "mine");
}
