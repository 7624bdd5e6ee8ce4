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

/// Made together.
NamedChange joined(const NamedChange& a, const NamedChange& b) {
  const auto both = [](const std::string& one, const std::string& other) {
    return one.empty() && other.empty() ? "" : one + " + " + other;
  };
  return {a.name + " + " + b.name, both(a.from, b.from), both(a.to, b.to),
          [first = a.make, second = b.make](TomlValue& document) {
            first(document);
            second(document);
          }};
}

/// The changes that are impossible alone.
std::vector<std::size_t> impossible_alone(const TomlValue& base,
                                          const std::vector<NamedChange>& changes,
                                          const Outcomes& outcomes) {
  std::vector<TomlValue> documents{base};  // the first says what the tokens of a step are
  for (const NamedChange& change : changes) {
    documents.push_back(base);
    change.make(documents.back());
  }
  const std::vector<Outcome> found = outcomes(documents);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (!found[i + 1].step_ps) out.push_back(i);
  return out;
}

/// The first two of these that are possible together.
std::optional<std::pair<std::size_t, std::size_t>> possible_pair(
    const std::vector<std::size_t>& alone, const TomlValue& base,
    const std::vector<NamedChange>& changes, const Outcomes& outcomes) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<TomlValue> documents{base};
  for (std::size_t a = 0; a < alone.size(); ++a)
    for (std::size_t b = a + 1; b < alone.size(); ++b) {
      pairs.emplace_back(alone[a], alone[b]);
      documents.push_back(base);
      joined(changes[alone[a]], changes[alone[b]]).make(documents.back());
    }
  if (pairs.empty()) return std::nullopt;
  const std::vector<Outcome> found = outcomes(documents);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (found[i + 1].step_ps) return pairs[i];
  return std::nullopt;
}

/// One change of those that need each other.
std::vector<NamedChange> bound_joined(std::vector<NamedChange> changes, const TomlValue& base,
                                      const Outcomes& outcomes) {
  while (changes.size() > 1) {
    const auto alone = impossible_alone(base, changes, outcomes);
    const auto pair = possible_pair(alone, base, changes, outcomes);
    if (!pair) break;
    changes[pair->first] = joined(changes[pair->first], changes[pair->second]);
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(pair->second));
  }
  return changes;
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

std::optional<Attribution> attribute(const TomlValue& base, const std::vector<NamedChange>& asked,
                                     const Outcomes& outcomes, const OrderDraw& draw) {
  const std::vector<NamedChange> changes = bound_joined(asked, base, outcomes);
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
  for (const Outcome& outcome : found)
    if (outcome.step_ps && !outcome.fits) ++out.unfit;
  const auto shares = shares_of(orders, values);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = std::ranges::find(sets, ChangeSet{1} << i) - sets.begin();
    const Outcome& alone = found[static_cast<std::size_t>(at)];
    ChangeEffect effect{.name = changes[i].name,
                        .from = changes[i].from,
                        .to = changes[i].to,
                        .alone_ps = {},
                        .fits_alone = alone.fits,
                        .impossible = alone.reason,
                        .share_ps = {}};
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
