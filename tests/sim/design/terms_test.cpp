// What leaves the account when, beside closed forms.
#include "sim/design/terms.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/design/odds.hpp"
#include "tests/sim/design/goals.hpp"

namespace stepcast::sim {
namespace {

constexpr double hours = 24, month_days = 365.25 / 12, year_hours = 8766;

/// 64 GPUs at 2 (1.5 to 3) USD an hour, and a run of `days`.
struct Paid {
  explicit Paid(double days, Terms of = {.price = {1.5, 2, 3}}, Accounting accounting = {})
      : terms(std::move(of)) {
    s.gpus = 64;
    s.cost.own = terms.way.tenure == Tenure::own;
    s.cost.price = UsdPerHour(terms.price.value);
    s.cost.price_low = UsdPerHour(terms.price.low);
    s.cost.price_high = UsdPerHour(terms.price.high);
    s.cost.capex = s.cost.capex_low = s.cost.capex_high = Usd(30000);
    s.cost.years = 4;
    s.cost.utilisation = 0.5;
    s.cost.opex = UsdPerHour(0.1);
    s.cost.electricity = UsdPerKwh(0.08);
    WholeRun run;
    run.days = {days * 0.9, days, days * 1.2};
    run.gpu_hours = {};
    run.dollars_per_gpu_hour = dollars_per_gpu_hour(s, Watts(1000));
    run.dollars = Band{};
    const Band capital{30000 * 64, 30000 * 64, 30000 * 64};
    cash = *cash_of(s, terms, accounting, run, capital);
  }
  Scenario s;
  Terms terms;
  Cash cash;
};

std::string refusal_of(const std::string& text) {
  try {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("stepcast-quotes-" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder);
    const std::string file = (folder / "quotes.toml").string();
    std::ofstream(file) << text;
    read_quotes(catalogue(), file, "test");
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("on demand: as many hours as the run has, its band those of days and price") {
  const Cash cash = Paid(10).cash;
  const double hour = 64 * 2;
  CHECK(cash.signing.value == 0);
  CHECK(cash.a_month.value == Approx(hour * hours * month_days));
  CHECK(cash.months == 1);
  CHECK(cash.total.value == Approx(hour * hours * 10));
  CHECK(cash.by_finish.value == cash.total.value);
  CHECK(cash.payback.value == cash.total.value);
  const Band both = product({0.9, 1, 1.2}, {0.75, 1, 1.5});
  CHECK(cash.total.low == Approx(both.low * cash.total.value));
  CHECK(cash.total.high == Approx(both.high * cash.total.value));
  CHECK(cash.law.at(20) == Approx(2 * cash.total.value));
}

TEST_CASE("a contract is paid to its end, the run's share is that of its hours") {
  const Terms terms{.way = {Tenure::contract, 1}, .upfront = 0.25, .price = {1.5, 2, 3}};
  const Cash cash = Paid(100, terms).cash;
  const double year = 64 * 2 * year_hours;
  CHECK(cash.total.value == Approx(year));
  CHECK(cash.signing.value == Approx(year / 4));
  CHECK(cash.months == 12);
  CHECK(cash.signing.value + cash.months * cash.a_month.value == Approx(year));
  CHECK(cash.by_finish.value == Approx(year / 4 + 4 * cash.a_month.value));  // of 3.3 months four
  CHECK(cash.payback.value == Approx(64 * 2 * hours * 100));
  // A day more than a year takes another one.
  CHECK(Paid(365, terms).cash.total.value == Approx(year));
  CHECK(Paid(366, terms).cash.total.value == Approx(2 * year));
  CHECK(cash.law.at(366) == Approx(2 * year));
}

TEST_CASE("what is owned is paid at signing, its running as it runs") {
  const Cash cash = Paid(100, {.way = {Tenure::own}}).cash;
  const double capital = 64 * 30000.0;
  const double running = 0.1 + 0.08;  // and 1 kW at 0.08 USD/kWh
  CHECK(cash.signing.value == capital);
  CHECK(cash.total.value == Approx(capital + 64 * running * hours * 100));
  const double share = 30000 * capital_recovery(Scenario{}.cost.interest, 4) / (year_hours * 0.5);
  CHECK(cash.payback.value == Approx(64 * (share + running) * hours * 100));
  CHECK(cash.law.at(0) == capital);
}

TEST_CASE("storage and staff are paid by the month, spare nodes as the others") {
  const Cash plain = Paid(month_days).cash;
  const Cash with =
      Paid(month_days, {.price = {1.5, 2, 3}}, {.storage = 1000, .staff = 500, .spares = 0.25})
          .cash;
  CHECK(with.total.value == Approx(plain.total.value * 1.25 + 1500));
  CHECK(with.payback.value == with.total.value);
}

TEST_CASE("a budget counts all that is paid, or the run's share") {
  const Terms terms{.way = {Tenure::contract, 2}, .price = {2, 2, 2}};
  const Accounting cash, payback{.payback = true};
  const Paid by_cash(50, terms, cash), by_payback(50, terms, payback);
  CHECK(budget_money(by_cash.cash, cash).value == Approx(64 * 2 * 2 * year_hours));
  CHECK(budget_money(by_payback.cash, payback).value == Approx(64 * 2 * hours * 50));
  CHECK(by_payback.cash.law.at(50) == Approx(by_payback.cash.payback.value));
  CHECK(by_cash.cash.law.at(50) == Approx(by_cash.cash.total.value));
}

TEST_CASE("oracle: the odds of a budget hold prices, as a draw of both errors says") {
  for (const Tenure way : {Tenure::rent, Tenure::contract}) {
    DesignChoice choice;
    choice.report.step_bar = ErrorBar{.low = 0.8, .high = 1.3, .level = 0.8};
    choice.outcome.days = 300;
    choice.outcome.cash = Paid(300, {.way = {way, 1}, .price = {1.5, 2, 3}}).cash;
    const DesignLimits limits{.days = 350, .usd = 64 * 2 * hours * 400};
    std::mt19937_64 random(7);
    const double z = normal_value(0.9);
    std::normal_distribution<double> days(std::log(0.8 * 1.3) / 2, std::log(1.3 / 0.8) / 2 / z);
    std::normal_distribution<double> price(std::log(0.75 * 1.5) / 2, std::log(1.5 / 0.75) / 2 / z);
    int good = 0;
    constexpr int draws = 40000;
    for (int i = 0; i < draws; ++i) {
      const double took = 300 * std::exp(days(random)), factor = std::exp(price(random));
      if (took <= limits.days && choice.outcome.cash.law.at(took, factor) <= limits.usd) ++good;
    }
    const double drawn = static_cast<double>(good) / draws;
    CHECK(*odds_of(choice, limits) == Approx(drawn).margin(0.01));
    CHECK(*odds_of(choice, limits) < *odds_of(choice, {.days = 350}));
  }
}

TEST_CASE("quotes are offers beside those of the lists; a mistake is told by its line") {
  const SmallDesign design(
      small_goal("nodes = [\"dgx-h100\"]\nsizes = [8]\nquotes = \"example\"\n"
                 "fabrics = [\"rail-optimized\"]\noversubscription = [1]"));
  std::vector<std::string> words;
  for (const Acquisition& way : design.machines.ways()) words.push_back(words_of(way));
  for (const char* wanted :
       {"rent", "contract of 1 year (quote spring)", "own", "own (quote warehouse)"})
    CHECK(std::ranges::find(words, wanted) != words.end());
  for (const Offer& offer : design.machines.offers) {
    const Scenario& s = design.machines.all[offer.machine].scenario;
    const Scenario paid = priced(s, offer.terms, design.parts, {});
    if (offer.terms.way.quote == "spring") CHECK(paid.cost.price.value == 2.1);
    if (offer.terms.way.quote != "warehouse") continue;
    const Bill bill = bill_of(s, parts_for(s, offer.terms, design.parts), {}, Watts(0));
    CHECK(bill.lines.front().usd->value == 270000);
    CHECK(paid.cost.capex.value == Approx(bill.capital().value / 64));
  }
  const std::string quote = "[[quote]]\nname = \"a\"\n";
  CHECK_THAT(refusal_of(quote + "way = \"rent\"\nprice = \"2 USD/h\"\n"),
             Catch::Contains("for a node or for a GPU"));
  CHECK_THAT(refusal_of(quote + "gpu = \"g\"\nway = \"own\"\nprice = \"2 USD\"\n"),
             Catch::Contains("for a node"));
  CHECK_THAT(refusal_of(quote + "gpu = \"g\"\nway = \"contract\"\nprice = \"2 USD/h\"\n"),
             Catch::Contains("years"));
  CHECK_THAT(refusal_of(quote + "gpu = \"g\"\nway = \"rent\"\nprice = [\"3 USD/h\", \"2 USD/h\", "
                                "\"4 USD/h\"]\n"),
             Catch::Contains("not in order"));
  CHECK_THAT(refusal_of(quote + "gpu = \"g\"\nway = \"lease\"\nprice = \"2 USD/h\"\n"),
             Catch::Contains("lease"));
  CHECK_THAT(refusal_of("quotes = 3\n"), Catch::Contains("quote"));
}

}  // namespace stepcast::sim
