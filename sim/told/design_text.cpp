#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/told/design.hpp"

namespace stepcast::sim {
namespace {

using Rows = std::vector<std::string>;

std::string section(const std::string& title, const Rows& rows) {
  if (rows.empty()) return {};
  std::string out = "\n" + title + "\n";
  for (const std::string& row : rows) out += "  " + row + "\n";
  return out;
}

Rows plan_rows(const DesignTold& told) {
  Rows out;
  for (const auto& [name, one] : named_answers(told.answer)) {
    const StepReport& r = one->choice->report;
    out.push_back(fmt::format("{:<10}{}", word_of(one->aim), one->choice->plan));
    out.push_back(fmt::format("{:<10}{}, step {}, {} per GPU", "", r.scenario.software.framework,
                              to_text(r.step_time), to_text(r.power_per_gpu)));
    if (const double share = datasheet_share(r); share > 0.01)
      out.push_back(fmt::format("{:<10}DATASHEET: {} of its kernel time rests on peaks alone", "",
                                percent(share)));
  }
  return out;
}

Rows source_rows(const DesignTold& told) {
  Rows out;
  for (const auto& [item, source] : price_sources(told))
    out.push_back(folded(item + ": " + source, 2, 4));
  return out;
}

Rows limit_rows(const DesignTold& told) {
  Rows out;
  for (const MovedLimit& one : moved_limits(told))
    out.push_back(fmt::format("{:<9}{:<22}cheapest: {}; fastest: {}", one.limit, one.to,
                              one.cheapest, one.fastest));
  return out;
}

Rows price_rows(const DesignTold& told) {
  Rows out;
  for (const MovedPrice& one : moved_prices(told)) {
    std::string row = fmt::format("{:<12}{:+.0f} %   {}", one.price, 100 * one.by, one.usd);
    if (one.change) row += fmt::format(" ({:+.2f} %)", 100 * *one.change);
    if (!one.machine.empty()) row += ", another machine: " + one.machine;
    out.push_back(std::move(row));
  }
  if (const std::string words = rent_or_own_words(told); !words.empty())
    out.push_back("rent or own  " + words);
  return out;
}

Rows fate_rows(const DesignTold& told) {
  Rows out;
  for (const auto& [count, words] : what_became(told))
    out.push_back(fmt::format("{:>7} {}", grouped(static_cast<std::int64_t>(count)), words));
  return out;
}

std::string proof_text(const DesignTold& told) {
  std::string out;
  for (const std::string& sentence : proof_words(told))
    out += (out.empty() ? "\n" : "  ") + sentence + "\n";
  return out;
}

std::string odds_text(const DesignTold& told) {
  const std::string words = odds_words(told);
  return words.empty() ? words : words + "\n";
}

std::string nothing_meets_text(const DesignTold& told) {
  const bool proven = std::ranges::all_of(told.answer.answers, &AimAnswer::proven);
  std::string out =
      proven ? "nothing meets this goal\n" : "nothing was found so far that meets this goal\n";
  if (const auto& nearest = told.answer.nearest)
    out += fmt::format("the cheapest without its {}\n{}", told.answer.without,
                       choices_table(told, {*nearest}).text());
  return out;
}

}  // namespace

std::string design_text(const DesignTold& told, const std::string& bills) {
  std::string out = goal_words(told.goal, told.machines) + "\n";
  if (told.answer.met()) {
    out += "\n" + answers_table(told).text() + odds_text(told);
    if (!told.answer.by_way.empty())
      out += "\nthe cheapest of each way, USD\n" + ways_table(told).text();
    out += section("fastest plans", plan_rows(told));
    out += "\n" + bills;
    out += section("prices of", source_rows(told));
    out += section("a little less or more", limit_rows(told));
    out += section("other prices, the cheapest", price_rows(told));
    out += "\nsimulated, beaten by none of them in days, USD and MWh\n" +
           choices_table(told, told.answer.front).text();
  } else {
    out += nothing_meets_text(told);
  }
  out += proof_text(told);
  out += section("of the offers", fate_rows(told));
  return out + section("assumed", design_assumptions(told));
}

}  // namespace stepcast::sim
