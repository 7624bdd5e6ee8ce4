// How many plans each rule has refused, and what it said of the first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workloads/plan/rules.hpp"

namespace stepcast::sim {

struct RefusedByRule {
  std::string key;    // to change: "expert"
  std::string first;  // what the rule says of the first plan that breaks it
  std::size_t plans = 0;
};

class RuleTally {
 public:
  template <class Case>
  void add(const workloads::Rule<Case>& rule, const Case& of, std::size_t plans = 1) {
    const auto [at, is_new] = refused_.try_emplace(&rule);
    if (is_new) at->second = {std::string(rule.knob), rule.what(of), 0};
    at->second.plans += plans;
  }
  /// Plans that were not even written down, for a reason that is no rule's row.
  void add(const char* key, const std::string& why, std::size_t plans) {
    RefusedByRule& cut = refused_.try_emplace(key, RefusedByRule{key, why, 0}).first->second;
    cut.plans += plans;
  }
  /// The most first.
  std::vector<RefusedByRule> by_rule() const {
    std::vector<RefusedByRule> out;
    for (const auto& [rule, refused] : refused_) out.push_back(refused);
    std::ranges::sort(out, [](const RefusedByRule& a, const RefusedByRule& b) {
      return std::tie(b.plans, a.key, a.first) < std::tie(a.plans, b.key, b.first);
    });
    return out;
  }

 private:
  std::map<const void*, RefusedByRule> refused_;
};

}  // namespace stepcast::sim
