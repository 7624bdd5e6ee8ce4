// How many different places the copies of a token go to, when its experts are drawn at random.
#pragma once

#include <cstdint>

namespace stepcast::sim {

/// Who may be asked for a token: `per_token` of `experts`, all different. With more than one group
/// they come from the `group_limit` groups whose two best scores add up to most (DeepSeek-V3).
struct TokenChoice {
  std::int64_t experts = 1, per_token = 1;
  std::int64_t groups = 1, group_limit = 1;

  bool limited() const { return groups > 1 && group_limit < groups; }
  friend bool operator==(const TokenChoice&, const TokenChoice&) = default;
};

/// Expected number of `parts`, each with an equal share of consecutive experts, that a token goes
/// to. Exact for experts drawn without groups: parts x (1 - C(E - E/parts, k) / C(E, k)). With a
/// limit of groups the mean over 2,048 tokens of independent uniform scores, always the same ones.
double distinct_destinations(const TokenChoice&, std::int64_t parts);

/// What DeepEP's own benchmark takes instead: groups drawn at random, not by their best scores.
double distinct_in_random_groups(const TokenChoice&, std::int64_t parts);

}  // namespace stepcast::sim
