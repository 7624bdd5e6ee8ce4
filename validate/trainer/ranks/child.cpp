#include "validate/trainer/ranks/child.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "sim/files/printable.hpp"

namespace stepcast::validate {
namespace {

sim::ChildPlan whole(ChildPlan plan) {
  plan.environment[launched_variable] = "1";
  return {.words = std::move(plan.words),
          .environment = std::move(plan.environment),
          .in = sim::Stream::nowhere,
          .errors = sim::Stream::channel,
          .apart = true,
          .ends_with_parent = true,
          .socket = plan.socket};
}

}  // namespace

Child::Child(ChildPlan plan) : process(whole(std::move(plan))) {}

bool Child::listen(bool quiet) {
  bool any = false;
  while (const auto line = process.channel().line()) {
    take(*line, quiet);
    any = true;
  }
  return any;
}

void Child::take(const std::string& line, bool quiet) {
  if (line.starts_with(progress_mark)) {
    if (!quiet) sim::tell(stderr, line.substr(std::strlen(progress_mark)) + "\n");
  } else if (line.starts_with(warning_mark)) {
    sim::tell(stderr, line + "\n");
  } else if (line.starts_with(own_mark)) {
    if (std::ranges::find(explained, line) == explained.end())  // said by many ranks alike
      explained.push_back(line);
  } else {
    said.push_back(line);
    if (said.size() > 40) said.pop_front();
  }
}

}  // namespace stepcast::validate
