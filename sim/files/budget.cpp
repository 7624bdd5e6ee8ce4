#include "sim/files/budget.hpp"

#include <fmt/format.h>

#include "engine/check.hpp"

namespace stepcast::sim {

void stay_within(std::int64_t allowed, double asked, const std::string& what,
                 const std::string& where) {
  if (asked <= static_cast<double>(allowed)) return;
  throw InputError(where,
                   fmt::format("{:.4g} {} are more than the budget of {}", asked, what, allowed),
                   "--no-limit (run.no_limit) goes on all the same");
}

}  // namespace stepcast::sim
