// What a search has found, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "sim/confidence/order.hpp"
#include "sim/files/text_table.hpp"
#include "sim/form/form.hpp"
#include "sim/search/own_plan.hpp"

namespace stepcast::sim {

struct SearchAnswer {
  SearchSpace space;
  SearchOptions options;
  SearchResult result;
  std::optional<OwnPlan> own;  // where the user has one
  std::optional<Order> order;
};

/// "optimal among 1,248 legal plans of this space: 698 do not fit (nearest: 1.2 GiB over), 520
/// cannot come within 5 % of 2.450 s, 30 simulated; 6 plans lie within 5 %"
std::string proof_text(const SearchAnswer&);
/// The plans that are shown, whose chances of being the best are told.
std::vector<Order::Contender> contenders_of(const SearchAnswer&);
/// The plans in their order; what they share stands above the table, not in it.
TextTable plans_table(const SearchAnswer&);
/// `table` is that, as it is to be shown.
std::string search_text(const SearchAnswer&, const std::string& table);
std::string search_json(const SearchAnswer&);
nlohmann::ordered_json search_schema();
/// Every plan that was simulated, step against memory, with the front of those that no other beats
/// in both.
std::string search_picture(const SearchAnswer&);

}  // namespace stepcast::sim
