#include "sim/design/terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/files/toml_table.hpp"
#include "sim/goal/band.hpp"
#include "sim/scenario/goal_file.hpp"

namespace stepcast::sim {
namespace {

constexpr double hours_a_day = 24, days_a_year = 365.25, months_a_year = 12;
constexpr double days_a_month = days_a_year / months_a_year;

constexpr std::array<std::pair<const char*, Tenure>, 3> tenure_names{
    {{"rent", Tenure::rent}, {"contract", Tenure::contract}, {"own", Tenure::own}}};

/// A figure of each of three counts of days.
template <class Of>
Band of_days(const Band& days, Of of) {
  return {of(days.low), of(days.value), of(days.high)};
}

Quote read_quote(const TomlValue& value) {
  TableReader table(value, "quote");
  Quote out;
  Terms& terms = out.terms;
  terms.way.quote = table.required("name", table.text("name"));
  out.node = table.text("node").value_or("");
  out.gpu = table.text("gpu").value_or("");
  terms.way.tenure = table.required("way", table.choice("way", tenure_names));
  const bool own = terms.way.tenure == Tenure::own;
  if (out.node.empty() == out.gpu.empty() || (own && out.node.empty()))
    table.fail("node", "a quote is for a node or for a GPU", "of what is owned: for a node");
  const Listed price =
      own ? price_range<Usd>(table, "price") : price_range<UsdPerHour>(table, "price");
  terms.price = {price.low, price.value, price.high};
  if (terms.way.tenure == Tenure::contract) {
    terms.way.years = table.required("years", table.number("years"));
    terms.upfront = table.number("upfront").value_or(0);
    if (terms.way.years <= 0) table.fail("years", table.label("years") + " is not above 0", "");
    if (terms.upfront < 0 || terms.upfront > 1)
      table.fail("upfront", table.label("upfront") + " is no share", "0 to 1 of the whole term");
  }
  terms.source = table.text("source").value_or("quote " + terms.way.quote);
  terms.date = table.text("date").value_or("");
  table.finish();
  return out;
}

}  // namespace

std::string word_of(Tenure tenure) { return tenure_names[static_cast<std::size_t>(tenure)].first; }

std::string words_of(const Acquisition& way) {
  std::string out = word_of(way.tenure);
  if (way.tenure == Tenure::contract)
    out += fmt::format(" of {:g} year{}", way.years, way.years == 1 ? "" : "s");
  return way.quote.empty() ? out : out + " (quote " + way.quote + ")";
}

std::vector<Quote> read_quotes(const Catalogue& catalogue, const std::string& file,
                               const std::string& where) {
  TableReader table(catalogue.entry("quotes", file, where), "");
  const TomlValue* quotes = table.required("quote", table.value("quote"));
  if (quotes->array() == nullptr) table.fail("quote", "quotes are a list of tables", "[[quote]]");
  std::vector<Quote> out;
  for (const TomlValue& one : *quotes->array()) out.push_back(read_quote(one));
  table.finish();
  return out;
}

double CashLaw::at(double days, double price_factor) const {
  const double terms = a_term > 0 ? std::ceil(days / term_days) : 0;
  return price_factor * (once + a_day * days + a_term * terms) + other_a_day * days;
}

std::optional<Cash> cash_of(const Scenario& s, const Terms& terms, const Accounting& accounting,
                            const WholeRun& run, const Band& capital) {
  if (!run.dollars) return std::nullopt;
  const auto gpus = static_cast<double>(s.gpus);
  const double paid = 1 + accounting.spares, gpu_hours_a_day = gpus * hours_a_day;
  const bool own = terms.way.tenure == Tenure::own;
  const Band each = *run.dollars_per_gpu_hour;  // of an owned one with its share of the capital
  double share = each.value, running = 0;
  if (own) {
    Scenario idle = s;
    idle.cost.opex = {};
    share = dollars_per_gpu_hour(idle, {})->value;
    running = each.value - share;
  }
  const double other =
      running * gpu_hours_a_day + (accounting.storage + accounting.staff) / days_a_month;
  const Band price = own ? capital : terms.price;
  const Band factor = price.value > 0 ? scaled(price, 1 / price.value) : Band{1, 1, 1};
  const CashLaw payback{.a_day = share * paid * gpu_hours_a_day, .other_a_day = other};
  const Band days = run.days;
  const double months = std::ceil(days.value / days_a_month);
  // Machines by the price's range, what else is paid as it is.
  const auto spent = [&](const CashLaw& law) {
    const Band machines = of_days(days, [&](double d) { return law.at(d) - law.other_a_day * d; });
    return sum_of(product(machines, factor), scaled(days, law.other_a_day));
  };

  Cash out;
  CashLaw law = payback;
  if (own) {
    law = {.once = capital.value * paid, .other_a_day = other};
    out.signing = scaled(capital, paid);
    out.months = months;
    const double a_month = other * days_a_month;
    out.a_month = {a_month, a_month, a_month};
  } else if (terms.way.tenure == Tenure::rent) {
    out.months = months;
    const double a_month = other * days_a_month;
    out.a_month = sum_of(scaled(factor, law.a_day * days_a_month), {a_month, a_month, a_month});
  } else {
    const double term = terms.way.years * days_a_year;
    law = {.a_term = payback.a_day * term, .term_days = term, .other_a_day = other};
    const double num_terms = std::ceil(days.value / term);
    out.signing = scaled(factor, law.a_term * num_terms * terms.upfront);
    out.months = num_terms * terms.way.years * months_a_year;
    const double rest = law.a_term * num_terms * (1 - terms.upfront) / out.months;
    const double a_month = other * days_a_month;
    out.a_month = sum_of(scaled(factor, rest), {a_month, a_month, a_month});
  }
  out.total = spent(law);
  out.payback = spent(payback);
  out.by_finish = out.total;
  if (law.a_term > 0) {  // month by month, the one that has begun included
    const double of_term = std::ceil(days.value / law.term_days) * law.a_term;
    const double by_then = of_term * (terms.upfront + (1 - terms.upfront) * months / out.months);
    out.by_finish = sum_of(scaled(factor, by_then), scaled(days, law.other_a_day));
  }
  out.law = accounting.payback ? payback : law;
  out.law.factor = factor;
  return out;
}

const Band& budget_money(const Cash& cash, const Accounting& accounting) {
  return accounting.payback ? cash.payback : cash.total;
}

}  // namespace stepcast::sim
