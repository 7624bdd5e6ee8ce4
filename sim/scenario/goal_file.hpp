// [run_goal], [cost], [site] and [power]: TOML to values, with what the catalogue's lists of prices
// and grids say where the scenario does not, and back. Every price has a source and a date.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/files/toml_table.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// A figure of a list, with its range.
struct Listed {
  double low = 0, value = 0, high = 0;
  std::string source, date;
};

/// A price of a table: one value, or [low, usual, high]; Usd or UsdPerHour. Throws InputError.
template <class Q>
Listed price_range(TableReader& table, const std::string& key);

/// What renting a GPU costs by a list of prices/ ("nebius", "my/prices.toml"), USD an hour; "lists"
/// is the median of all lists of kind "on demand", between the cheapest and the dearest. None where
/// no list has that GPU.
std::optional<Listed> listed_rent(const Catalogue&, const std::string& list, const std::string& gpu,
                                  const std::string& where);
/// What buying one costs, USD: of the lists of kind "bought".
std::optional<Listed> listed_capex(const Catalogue&, const std::string& list,
                                   const std::string& gpu, const std::string& where);

/// A commitment of some years: USD of a GPU and hour of all of them, used or not.
struct ListedContract {
  double years = 0;
  double upfront = 0;  // the share of the term paid at signing; of several lists the median
  Listed price;        // of several lists as listed_rent() says
};
/// Of the lists of kind "contract" that have the GPU, by years.
std::vector<ListedContract> listed_contracts(const Catalogue&, const std::string& gpu,
                                             const std::string& where);

// The tables of a document; each finishes its table. read_cost() asks for the GPU of `scenario`,
// read_power() changes it.
void read_run_goal(TableReader& table, Scenario& scenario);
void read_cost(TableReader& table, const Catalogue& catalogue, Scenario& scenario);
void read_site(TableReader& table, const Catalogue& catalogue, Scenario& scenario);
void read_power(TableReader& table, Scenario& scenario);

/// Whether dollars, energy and CO2 are asked for: of a whole run, or of tokens by a price.
bool asks_for_costs(const Scenario& scenario);
/// Adds those of the four tables that say something.
void add_goal_tables(TomlValue& document, const Scenario& scenario);

}  // namespace stepcast::sim
