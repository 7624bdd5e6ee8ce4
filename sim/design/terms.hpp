// How a machine is come by, and what leaves the account for it when: on demand, by a contract of
// years, or bought. The run's own share of what is paid (its pay-back) is told apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/goal/whole_run.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

enum class Tenure : std::uint8_t { rent, contract, own };
std::string word_of(Tenure);

/// A way to come by a machine; a quote is an offer that the user has been made.
struct Acquisition {
  Tenure tenure = Tenure::rent;
  double years = 0;     // of a contract
  std::string quote{};  // its name; empty: as the lists say
  friend bool operator==(const Acquisition&, const Acquisition&) = default;
};
/// "rent", "contract of 2 years", "own (quote spring)"
std::string words_of(const Acquisition&);

struct Terms {
  Acquisition way;
  double upfront = 0;  // of a contract: the share paid at signing, the rest month by month
  Band price{};        // rent, contract: USD of a GPU and hour; own: of a node, 0: the bill's
  std::string source, date{};
};

/// What is paid beside machines, and which money a budget counts.
struct Accounting {
  bool payback = false;           // the run's share of what is paid, else all that is paid
  double storage = 0, staff = 0;  // USD a month
  double spares = 0;              // nodes beside those that train, as a share of them
};

/// Offers that the user has been made, for nodes or GPUs by their names in the catalogue.
struct Quote {
  std::string node, gpu;  // one of the two
  Terms terms;
};
/// [[quote]] of a file: name, node or gpu, way, price; years and upfront of a contract; source and
/// date. Throws InputError.
std::vector<Quote> read_quotes(const Catalogue&, const std::string& file, const std::string& where);

/// USD that have been paid after some days, with a factor on the prices of machines:
///   factor (once + a_day days + a_term ceil(days / term_days)) + other_a_day days
struct CashLaw {
  double once = 0;   // capital
  double a_day = 0;  // of machines
  double a_term = 0, term_days = 0;
  double other_a_day = 0;  // electricity and running of what is owned, storage, staff
  Band factor{1, 1, 1};    // the range of the price, over it
  double at(double days, double price_factor = 1) const;
};

/// What leaves the account. Bands: of the run's days and of the price, as independent factors.
struct Cash {
  Band signing;       // before the first hour
  Band a_month;       // as long as it trains, or as the contract lasts
  double months = 0;  // of such payments
  Band by_finish;     // when the last token is trained
  Band total;         // in all: a contract goes on when the run is done
  Band payback;       // the run's share: hours that were used, years of an owned machine
  CashLaw law;        // of what the budget counts
};

/// `run`: of `s`, which has the price of these terms; `capital` of all nodes, where it is bought.
/// Pay-back of an owned machine: dollars_per_gpu_hour(). None without a price.
std::optional<Cash> cash_of(const Scenario& s, const Terms&, const Accounting&, const WholeRun& run,
                            const Band& capital);

/// Of total and pay-back the one that a budget counts.
const Band& budget_money(const Cash&, const Accounting&);

}  // namespace stepcast::sim
