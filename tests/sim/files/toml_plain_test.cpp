#include "sim/files/toml_plain.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/check.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

/// Kinds, values, keys and places, one line each.
std::string told(const TomlValue& value) {
  std::string out = value.where + " " + std::string(kind_of(value)) + " ";
  if (const auto* table = value.table()) {
    for (const TomlEntry& entry : *table)
      out += "\n" + entry.key + " @" + entry.where + " = " + told(entry.value);
    return out + "\nend";
  }
  if (const auto* items = value.array()) {
    for (const TomlValue& item : *items) out += "\n- " + told(item);
    return out + "\nend";
  }
  return out + write_toml_value(value);
}

/// Of toml++ alone; "refused" for what is not TOML.
std::string told_by_tomlplusplus(const std::string& text) {
  try {
    return told(read_any_toml(text, "a.toml"));
  } catch (const InputError&) {
    return "refused";
  }
}

bool is_plain(const std::string& text) { return read_plain_toml(text, "a.toml").has_value(); }

}  // namespace

TEST_CASE("every file of the catalogue is plain, and read as toml++ reads it") {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR "/scenarios";
  constexpr std::array<const char*, 9> folders{"gpus",    "nodes", "fabrics", "models", "exchange",
                                               "network", "nccl",  "sites",   "prices"};
  std::size_t plain = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    if (file.path().extension() != ".toml") continue;
    const std::string text = read_toml_text(file.path().string());
    const auto found = read_plain_toml(text, "a.toml");
    INFO(file.path().string());
    const std::string folder = file.path().parent_path().filename().string();
    if (std::ranges::count(folders, folder) > 0) CHECK(found.has_value());
    if (!found) continue;
    ++plain;
    CHECK(told(*found) == told_by_tomlplusplus(text));
  }
  CHECK(plain > 100);
}

TEST_CASE("what is less plain is left to toml++") {
  CHECK(is_plain("a = 1\n[b]\nc = [\"x\", 2.5, true,\n  [-1]]  # and so on\n"));
  CHECK(is_plain("\"a.b c\" = {d = 1, \"e\" = [\n2], f = {}}\n[g.h]\n[g.i]\n[g.h.j]\n"));
  for (const char* text : {"a = 1e3",
                           "a = 1_000",
                           "a = 0x10",
                           "a = +1",
                           "a = 01",
                           "a = .5",
                           "a = 5.",
                           "a = nan",
                           "a = 2026-11-21",
                           "a = 'x'",
                           "a = \"\"\"x\"\"\"",
                           "a = \"\\n\"",
                           "a = \"\xC3\xA9\"",
                           "# \xC3\xA9",
                           "a.b = 1",
                           "\"a\".b = 1",
                           "\"\" = 1",
                           "[\"a\"]",
                           "a = {b = 1}\n[a.c]",
                           "a = {b = 1,}",
                           "a = {b = 1\n}",
                           "a = {b = 1 c = 2}",
                           "a = {,}",
                           "a = {b = 1, b = 2}",
                           "a = {b.c = 1}",
                           "[[a]]",
                           "[ a ]",
                           "a = 1\na = 2",
                           "[a]\n[a]",
                           "[a.b]\n[a]",
                           "a = 1\n[a]",
                           "a = 1\r\n",
                           "a = \"open",
                           "a = [1",
                           "a = [1 2]",
                           "a = [,]",
                           "a =",
                           "a",
                           "= 1",
                           "[a",
                           "[]",
                           "[a] b = 1",
                           "a = 1 b = 2",
                           "a = 9999999999999999999",
                           "a = \"\x01\"",
                           "a = \"\"x",
                           "[a.b.c.d.e.f.g.h]",
                           "a = [[[[[[[[[1]]]]]]]]]"}) {
    INFO(text);
    CHECK_FALSE(is_plain(text));
  }
}

TEST_CASE("what is taken for plain is what toml++ reads") {
  CHECK(rc::check([] {
    const std::vector<std::string> pieces{"a",
                                          "b-c",
                                          "_d9",
                                          "[",
                                          "]",
                                          "[a]\n",
                                          "[a.b]\n",
                                          "[b-c]\n",
                                          "=",
                                          " = ",
                                          ",",
                                          ".",
                                          "\n",
                                          " ",
                                          "\t",
                                          "#",
                                          "# c\n",
                                          "\"",
                                          "\"t\"",
                                          "\"\"",
                                          "1",
                                          "-",
                                          "0",
                                          "2.50",
                                          "true",
                                          "false",
                                          "[1, \"x\"]",
                                          "a = 1\n",
                                          "b = [\n1,\n]\n",
                                          "\\",
                                          "'",
                                          "1e5",
                                          "{",
                                          "}",
                                          "\r",
                                          "\xC3\xA9",
                                          "00",
                                          "1.5",
                                          "c = \"u v\"\n",
                                          "a = true\n"};
    const auto chosen = *rc::gen::container<std::vector<std::size_t>>(
        rc::gen::inRange<std::size_t>(0, pieces.size()));
    std::string text;
    for (const std::size_t piece : chosen) text += pieces[piece];
    const auto plain = read_plain_toml(text, "a.toml");
    RC_CLASSIFY(plain.has_value());
    if (plain) RC_ASSERT(told(*plain) == told_by_tomlplusplus(text));
  }));
}
