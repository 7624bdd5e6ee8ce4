// How much one question may ask for before it is refused: memory and time end otherwise. One
// sentence says so for all of it, and --no-limit (run.no_limit) goes on. Knows no question.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast::sim {

struct Budget {
  std::int64_t micro_batches = 100'000;        // of a replica in a step: some 4 kB of memory each
  std::int64_t calls = 2'000'000'000;          // of host threads, ranks and steps together: minutes
  std::int64_t settings = 10'000;              // of a command line
  std::int64_t points = 1'000'000;             // of a sweep
  std::int64_t failures = 100'000'000;         // of all runs of a goodput: some ten seconds
  std::int64_t bytes = std::int64_t{1} << 30;  // of a packed file, unpacked
  std::int64_t inflation = 100;                // bytes of a packed trace, for each of its file
  std::int64_t event = std::int64_t{64} << 20;  // of a trace: one event, or all around the events
};
inline constexpr Budget budget;

/// Throws InputError at `where`: "1,600,000 micro-batches are more than the 100,000 ...".
void stay_within(std::int64_t allowed, double asked, const std::string& what,
                 const std::string& where);

}  // namespace stepcast::sim
