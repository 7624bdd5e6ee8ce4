#include "sim/compare/attribution.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::sim {
namespace {

bool has(ChangeSet set, std::size_t change) { return (set >> change & 1) != 0; }

/// Those on the way of the orders, and each change alone.
std::vector<ChangeSet> sets_asked(const std::vector<ChangeOrder>& orders, std::size_t changes) {
  std::vector<ChangeSet> out = sets_on_the_way(orders);
  for (std::size_t i = 0; i < changes; ++i) out.push_back(ChangeSet{1} << i);
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

std::vector<TomlValue> documents_with(const std::vector<ChangeSet>& sets, const TomlValue& base,
                                      const std::vector<NamedChange>& changes) {
  std::vector<TomlValue> out;
  for (const ChangeSet set : sets) {
    out.push_back(base);
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (has(set, i)) changes[i].make(out.back());
  }
  return out;
}

}  // namespace

std::optional<std::int64_t> Attribution::interaction_ps() const {
  std::int64_t out = to_ps - from_ps;
  for (const ChangeEffect& change : changes) {
    if (!change.alone_ps) return std::nullopt;
    out -= *change.alone_ps;
  }
  return out;
}

std::optional<Attribution> attribute(const TomlValue& base, const std::vector<NamedChange>& changes,
                                     const Outcomes& outcomes, const OrderDraw& draw) {
  const std::size_t n = changes.size();
  const std::vector<ChangeOrder> orders = orders_of(n, draw.orders, draw.seed);
  const std::vector<ChangeSet> sets = sets_asked(orders, n);
  const std::vector<Outcome> found = outcomes(documents_with(sets, base, changes));
  SetValues values;
  for (std::size_t i = 0; i < sets.size(); ++i) values[sets[i]] = found[i].step_ps;
  if (!found.front().step_ps || !values.at((ChangeSet{1} << n) - 1)) return std::nullopt;
  Attribution out{.from_ps = *values.at(0),
                  .to_ps = *values.at((ChangeSet{1} << n) - 1),
                  .changes = {},
                  .runs = sets.size()};
  const auto shares = shares_of(orders, values);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = std::ranges::find(sets, ChangeSet{1} << i) - sets.begin();
    const Outcome& alone = found[static_cast<std::size_t>(at)];
    ChangeEffect effect{changes[i].name, changes[i].from, changes[i].to, {}, alone.reason, {}};
    if (alone.step_ps) effect.alone_ps = *alone.step_ps - out.from_ps;
    if (shares) effect.share_ps = shares->of[i], effect.error_ps = shares->error[i];
    out.changes.push_back(std::move(effect));
  }
  out.asked = orders.size();
  out.exact = n <= most_exact_changes;
  if (shares) out.orders = shares->orders;
  return out;
}

}  // namespace stepcast::sim
