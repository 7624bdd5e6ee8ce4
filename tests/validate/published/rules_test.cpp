#include "validate/published/rules.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <regex>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

/// The first date whose year and month are the expression's groups.
std::optional<YearMonth> date_by_regex(const std::string& text, const std::regex& regex) {
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    const std::int64_t year = std::stoll((*it)[1]);
    const YearMonth date{year < 100 ? year + 2000 : year,
                         it->size() > 2 ? std::stoll((*it)[2]) : 7};
    if (date.year >= 2016) return date;
  }
  return std::nullopt;
}

std::optional<YearMonth> stated_by_regex(const std::string& framework) {
  static const std::regex forms[] = {
      std::regex(R"((?:^|[^0-9])(20[12]\d)-(0[1-9]|1[0-2])(?![0-9]))"),
      std::regex(R"((?:^|[^0-9.v])([12]\d)\.(0[1-9]|1[0-2])(?![0-9]))"),
      std::regex(R"((?:^|[^0-9.])([12]\d)(0[1-9]|1[0-2])\.\d{4,5}(?![0-9]))"),
      std::regex(R"((?:^|[^0-9.,])(20[12]\d)(?![0-9.,]*[0-9]))")};
  for (const std::regex& form : forms)
    if (const auto found = date_by_regex(framework, form)) return found;
  return std::nullopt;
}

std::optional<YearMonth> stated_in(const std::string& framework) {
  PublishedRow row;
  row.framework = framework;
  return stated_date(row, {});
}

TEST_CASE("dates are found as regular expressions find them") {
  std::mt19937 random(20261127);
  const std::string parts[] = {"2", "0", "1",  "9",  ".",    "-", ",",
                               " ", "v", "20", "23", "2019", "12"};
  std::size_t hits = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto left = random() % 10; left > 0; --left) text += parts[random() % std::size(parts)];
    INFO(text);
    const auto expected = stated_by_regex(text);
    CHECK(stated_in(text) == expected);
    hits += expected.has_value();
  }
  CHECK(hits > 1000);
}

TEST_CASE("a date of a row is a month, a tag, a number of arXiv or a year") {
  CHECK(stated_in("MLPerf of 2023-09") == YearMonth{2023, 9});
  CHECK(stated_in("NGC 20.12") == YearMonth{2020, 12});
  CHECK(stated_in("arXiv 2401.12345") == YearMonth{2024, 1});
  CHECK(stated_in("its code of 2021") == YearMonth{2021, 7});
  CHECK_FALSE(stated_in("2048 GPUs, v20.12").has_value());
}

TEST_CASE("a date of a rule is a year or a month of one") {
  CHECK(date_of("2023", "here") == YearMonth{2023, 1});
  CHECK(date_of("2023-09", "here") == YearMonth{2023, 9});
  for (const char* text :
       {"", "soon", "2023-9", "2023-13", "2023-00", "20230", "2015", "2036", "2023/09"})
    CHECK_THROWS_AS(date_of(text, "here"), InputError);
}

}  // namespace
}  // namespace stepcast::validate
