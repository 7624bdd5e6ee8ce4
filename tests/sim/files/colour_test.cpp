#include "sim/files/colour.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "sim/files/printable.hpp"

using namespace stepcast::sim;

TEST_CASE("what warns, what is refused and what is best have hues, all else has none") {
  CHECK(with_hues("warning: a refused: b\nplain\n") ==
        "\033[33mwarning\033[0m: a refused: b\nplain\n");
  CHECK(with_hues("warning               x") == "\033[33mwarning\033[0m               x");
  CHECK(with_hues("warnings of a run\nwarning") == "warnings of a run\nwarning");
  CHECK(with_hues("4 of 12 points refused: 4 out of memory\n") ==
        "\033[31m4 of 12 points refused\033[0m: 4 out of memory\n");
  CHECK(with_hues("dgx  refused: out of memory") == "dgx  \033[31mrefused\033[0m: out of memory");
  CHECK(with_hues("refused   the plan needs") == "\033[31mrefused\033[0m   the plan needs");
  CHECK(with_hues("no plan fits; the nearest:") == "\033[31mno plan fits\033[0m; the nearest:");
  CHECK(with_hues(" 1  1.76 s\n=2  1.77 s\n", " 1 ") ==
        "\033[1;32m 1  1.76 s\033[0m\n=2  1.77 s\n");
  CHECK(with_hues(" 1  1.76 s\n\n") == " 1  1.76 s\n\n");
}

TEST_CASE("a file has no hues, and names of others bring none") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK_FALSE(may_colour(file));
  tell_best(file, "warning: \033[31mx\n 1 best\n", " 1 ");
  tell_refused(file, "no");
  std::rewind(file);
  std::string text(200, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  CHECK(text == "warning: \\u001b[31mx\n 1 best\nno");
}
