#include "sim/files/markdown.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::sim;

TEST_CASE("a name in Markdown is itself, whatever it holds") {
  CHECK(markdown_text("experts_in_a_box.toml") == "experts_in_a_box.toml");
  CHECK(markdown_text("a|b\n# c") == "a\\|b \\# c");
  CHECK(markdown_text("<img src=x> [y](z) `w` &amp;") ==
        "\\<img src=x\\> \\[y\\](z) \\`w\\` \\&amp;");
  CHECK(markdown_text("\x1b[2J") == "\\\\u001b\\[2J");
}

TEST_CASE("no text gets out of its block") {
  CHECK(markdown_block("a\nb\n") == "```\na\nb\n```\n");
  CHECK(markdown_block("a") == "```\na\n```\n");
  CHECK(markdown_block("") == "```\n```\n");
  CHECK(markdown_block("x\n````\n# y\n") == "`````\nx\n````\n# y\n`````\n");
}
