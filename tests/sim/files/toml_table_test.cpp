#include "sim/files/toml_table.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/check.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

/// The message of the InputError that `action` ends with.
template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_message(const std::string& text) {
  return message_of([&] { read_toml(text, "a.toml"); });
}

}  // namespace

TEST_CASE("keys keep the order of the file") {
  const TomlValue document = read_toml("zebra = 1\napple = 2\n[middle]\nb = 1\na = 2\n", "a.toml");
  REQUIRE(document.table()->size() == 3);
  CHECK((*document.table())[0].key == "zebra");
  CHECK((*document.table())[1].key == "apple");
  CHECK((*document.find("middle")->table())[0].key == "b");
  CHECK((*document.table())[1].where == "a.toml:2");
}

TEST_CASE("what is not TOML is refused with file and line") {
  CHECK_THAT(parse_message("a = 1\nb = = 2\n"), Contains("a.toml:2: not TOML"));
  CHECK_THAT(parse_message("a = 1\n\na = 2\n"), Equals("a.toml:3: duplicate key 'a'"));
  CHECK_THAT(parse_message("[t]\na = 1\n[t]\nb = 2\n"), Contains("a.toml:3: duplicate key 't'"));
  CHECK_THAT(parse_message("a = 2026-11-21\n"), Contains("a.toml:1: dates"));
  CHECK_THAT(parse_message("a = 99999999999999999999\n"), Contains("a.toml:1"));
  CHECK_THAT(parse_message("a = \"open"), Contains("a.toml:1"));
}

TEST_CASE("deep nesting is refused before the parser recurses into it") {
  const std::string arrays = "a = " + std::string(200, '[') + std::string(200, ']');
  CHECK_THAT(parse_message(arrays), Equals("a.toml:1: nested deeper than 32 levels"));
  std::string tables = "\na = ";
  for (int i = 0; i < 200; ++i) tables += "{b = ";
  CHECK_THAT(parse_message(tables), Equals("a.toml:2: nested deeper than 32 levels"));
  std::string dotted = "a";
  for (int i = 0; i < 100'000; ++i) dotted += ".a";
  CHECK_THAT(parse_message(dotted + " = 1"), Equals("a.toml:1: nested deeper than 32 levels"));
  CHECK_THAT(parse_message("[" + dotted + "]"), Contains("nested deeper"));
}

TEST_CASE("brackets in strings and comments do not nest") {
  const std::string open(200, '[');
  CHECK_NOTHROW(read_toml("a = \"" + open + "\" # " + open + "\nb = '" + open + "'\n", "a.toml"));
  CHECK_NOTHROW(read_toml("a = \"\"\"\n" + open + "\n\"\"\"\n", "a.toml"));
  CHECK_NOTHROW(read_toml("a = \"\\\"" + open + "\"\n", "a.toml"));
  // Many short arrays and numbers with points are no nesting either.
  std::string many = "a = [";
  for (int i = 0; i < 1000; ++i) many += "[1.5, 2.5], ";
  CHECK_NOTHROW(read_toml(many + "]\n", "a.toml"));
}

TEST_CASE("a file beyond 4 MiB is refused unread") {
  CHECK_THAT(parse_message(std::string(5 << 20, '#')), Contains("a.toml: larger than 4 MiB"));
  CHECK_THAT(message_of([] { read_toml_file("/nonexistent.toml"); }), Contains("cannot be opened"));
  CHECK_THAT(message_of([] { read_toml_file("/"); }), Contains("is a folder"));
}

TEST_CASE("a document written is the document read") {
  const std::string text =
      "title = \"a \\\"b\\\" \\\\ \\u0001 ä\"\nx = 0.1\nn = -3\non = true\nlist = [1, \"a\", "
      "[2.0]]\n"
      "[t]\n\"a.b\" = 1\n[t.u]\nv = 2\n[[p]]\nk = 1\n[[p]]\nk = 2\n";
  const TomlValue document = read_toml(text, "a.toml");
  const std::string once = write_toml(document);
  CHECK(write_toml(read_toml(once, "b.toml")) == once);
  CHECK(std::get<double>(read_toml(once, "b").find("x")->data) == 0.1);
  CHECK(*read_toml(once, "b").find("title")->text() == *document.find("title")->text());
  CHECK(read_toml(once, "b").find("t")->find("a.b") != nullptr);
}

TEST_CASE("a path through a name makes it a table with that name") {
  TomlValue document = read_toml("[cluster]\nnode = \"dgx-h100\"\nnodes = 2\n", "a.toml");
  set_path(document, "cluster.node.nic", toml_text("800 Gbit/s", "--set"));
  const TomlValue* node = document.find("cluster")->find("node");
  CHECK(*node->find("name")->text() == "dgx-h100");
  CHECK(*node->find("nic")->text() == "800 Gbit/s");
  CHECK_THAT(message_of([&] { set_path(document, "cluster.nodes.x", toml_text("1", "--set")); }),
             Contains("--set: 'nodes' is an integer"));
  CHECK_THAT(message_of([&] { set_path(document, "cluster.", toml_text("1", "--set")); }),
             Contains("is no key"));
}

TEST_CASE("a setting is TOML where it is TOML, else a word") {
  CHECK(std::get<std::int64_t>(read_setting("16", "--set").data) == 16);
  CHECK(std::get<bool>(read_setting("true", "--set").data));
  CHECK(*read_setting("zero2", "--set").text() == "zero2");
  CHECK(*read_setting("64MiB", "--set").text() == "64MiB");
  CHECK(read_setting("[1, 2]", "--set").array()->size() == 2);
  CHECK(*read_setting("1\nx = 2", "--set").text() == "1\nx = 2");
}

TEST_CASE("every key must be asked for, and every value have its type and range") {
  const auto with = [](const std::string& text, auto use) {
    const TomlValue document = read_toml(text, "a.toml");
    return message_of([&] {
      TableReader table(document, "model");
      use(table);
      table.finish();
    });
  };
  const auto integer = [](TableReader& t) { t.required("layers", t.integer("layers")); };
  CHECK(with("layers = 3", integer) == "no error");
  CHECK(with("\nlayer = 3", integer) ==
        "a.toml:2: unknown key 'layer' in [model], did you mean 'layers'?");
  CHECK(with("layers = 3\nx = 1", integer) ==
        "a.toml:2: unknown key 'x' in [model], known: layers");
  CHECK(with("", integer) == "a.toml:1: missing key 'layers' in [model]");
  CHECK(with("layers = 0", integer) == "a.toml:1: 'layers' in [model] must be at least 1, not 0");
  CHECK(with("layers = -2", integer) == "a.toml:1: 'layers' in [model] must be at least 1, not -2");
  CHECK(with("layers = 3.5", integer) ==
        "a.toml:1: 'layers' in [model] must be an integer, not a number");
  CHECK_THAT(with("layers = 9000000000000000000", integer), Contains("too large"));

  const auto bytes = [](TableReader& t) { t.required("bytes", t.quantity<Bytes>("bytes")); };
  CHECK(with("bytes = \"64 MiB\"", bytes) == "no error");
  CHECK(with("bytes = 64", bytes) == "a.toml:1: 'bytes' in [model] needs a unit, e.g. \"64 MiB\"");
  CHECK_THAT(with("bytes = \"64\"", bytes), Contains("a.toml:1"));
  CHECK_THAT(with("bytes = \"64 ms\"", bytes), Contains("a.toml:1"));
  CHECK_THAT(with("bytes = \"0 B\"", bytes), Contains("is zero"));
  CHECK_THAT(with("bytes = \"-4 MiB\"", bytes), Contains("a.toml:1"));
  CHECK_THAT(with("bytes = \"1e40 GiB\"", bytes), Contains("a.toml:1"));

  const auto number = [](TableReader& t) { t.required("x", t.number("x")); };
  CHECK_THAT(with("x = nan", number), Contains("not a usable number"));
  CHECK_THAT(with("x = inf", number), Contains("not a usable number"));
  CHECK_THAT(with("x = 1e300", number), Contains("not a usable number"));
  CHECK_THAT(with("x = -1", number), Contains("negative"));
  CHECK_THAT(with("x = \"1\"", number), Contains("must be a number"));
  CHECK_THAT(with("x = \"9 percent\"", number), Contains("must be a number"));
  for (const char* share : {"\"90 %\"", "\"90%\"", "0.9"}) {
    CAPTURE(share);
    double read = 0;
    CHECK(with(std::string("x = ") + share, [&](TableReader& t) { read = *t.number("x"); }) ==
          "no error");
    CHECK(read == 0.9);
  }
  CHECK_THAT(with("x = \"-9 %\"", number), Contains("negative"));
}

TEST_CASE("a plain key above the first table can be read without the rest") {
  const std::string text =
      "# version = \"no\"\nname = \"a\" # of the file\nname2 = \"b\"\n[t]\nin = \"c\"\n";
  CHECK(peek_text(text, "name") == "a");
  CHECK(peek_text(text, "name2") == "b");
  for (const char* key : {"version", "in", "nam", "none"}) CHECK_FALSE(peek_text(text, key));
  CHECK_FALSE(peek_text("name = \"a\\u0041\"\n", "name"));
  CHECK_FALSE(peek_text("name = 3\n", "name"));
  CHECK(peek_text("name=\"a\"\n", "name") == "a");
  CHECK_FALSE(peek_text("note = \"\"\"\nname = \"in a text\"\n\"\"\"\nname = \"a\"\n", "name"));
}

TEST_CASE("a plain list above the first table can be read without the rest") {
  using Texts = std::vector<std::string>;
  const std::string text = "names = [\"a\", \"b\"]\nnone = []\n[t]\nin = [\"c\"]\n";
  CHECK(peek_texts(text, "names") == Texts{"a", "b"});
  CHECK(peek_texts(text, "none") == Texts{});
  for (const char* key : {"in", "other"}) CHECK(peek_texts(text, key) == Texts{});
  for (const char* other :
       {"names = [\"a\",\n  \"b\"]", "names = [3]", "names = [\"a\\n\"]", "names = \"a\"",
        "names = [\"a\" \"b\"]", "note = \"\"\"\n\"\"\"\nnames = [\"a\"]"}) {
    CAPTURE(other);
    CHECK_FALSE(peek_texts(other, "names"));
  }
}

TEST_CASE("a file of any size up to the limit is read whole, a pipe too") {
  const std::string path = (tests::own_folder() / "stepcast_sizes.toml").string();
  for (const std::size_t size :
       {1UL, 16'383UL, 16'384UL, 16'385UL, 1'000'000UL, (4UL << 20) - 20}) {
    std::ofstream(path) << "a = \"" << std::string(size, 'x') << "\"\n";
    CHECK(read_toml_file(path).find("a")->text()->size() == size);
  }
  std::ofstream(path) << "a = \"" << std::string(4 << 20, 'x') << "\"\n";
  CHECK_THROWS_WITH(read_toml_file(path), Catch::Contains("larger than 4 MiB"));
  std::filesystem::remove(path);
}
