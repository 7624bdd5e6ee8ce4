#include "sim/files/printable.hpp"

#include <catch2/catch.hpp>

using stepcast::sim::folded;
using stepcast::sim::printable;

TEST_CASE("text for people stays: line breaks, tabs, other alphabets") {
  for (const char* text : {"", "step 4.21 s\n\tof it", "\u00b5s \u4e2d\u6587 \U0001f600 \u00a0"})
    CHECK(printable(text) == text);
}

TEST_CASE("what would command a terminal is spelled as JSON and TOML spell it") {
  CHECK(printable("a\033[31mb\a\r\177") == "a\\u001b[31mb\\u0007\\u000d\\u007f");
  CHECK(printable("\302\233x") == "\\u009bx");            // CSI in one character
  CHECK(printable("\u202egnp.exe") == "\\u202egnp.exe");  // right to left
  CHECK(printable("line\u2028paragraph") == "line\\u2028paragraph");
}

TEST_CASE("bytes that are no UTF-8 are spelled one by one") {
  CHECK(printable("\233[2J") == "\\u009b[2J");
  CHECK(printable("\377\303") == "\\u00ff\\u00c3");  // cut off
  CHECK(printable("\300\233") == "\\u00c0\\u009b");  // a longer spelling of U+001B
  CHECK(printable("\340\200\233") == "\\u00e0\\u0080\\u009b");
}

TEST_CASE("a long line is broken at blanks, no word and no blank is lost") {
  const std::string text = "one 2,048 " + std::string(80, 'x') + " three, four  five";
  const std::string out = folded(text, 8, 4);
  CHECK(out == "one 2,048 " + std::string(80, 'x') + "\n    three, four  five");  // 98 columns
  CHECK(folded("short  text", 90, 2) == "short\n  text");
  CHECK(folded("short  text") == "short  text");
  CHECK(folded(std::string(300, 'y') + " z") == std::string(300, 'y') + "\nz");
  std::string accents;  // 99 columns, not 198 bytes
  for (int i = 0; i < 99; ++i) accents += "\u00b5";
  CHECK(folded(accents) == accents);
  CHECK(folded("") == "");
}
