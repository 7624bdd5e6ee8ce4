// A share of work that several programs do: every N-th of what is counted. Knows no work.
#pragma once

#include <cstddef>
#include <string>

namespace stepcast::sim {

/// Of what is counted from 0 that at `index - 1`, `index - 1 + of`, ...
struct Shard {
  std::size_t index = 1, of = 1;

  bool has(std::size_t place) const { return place % of + 1 == index; }
  bool is_part() const { return of > 1; }
  /// "2-of-8", as files are named; of the whole "".
  std::string name() const;

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Has nothing.
inline constexpr Shard no_share{0, 1};

/// "2/8"; throws UsageError.
Shard read_shard(const std::string& text);
/// "2-of-8" in turn; of any other name the whole.
Shard shard_of_name(const std::string& name);

}  // namespace stepcast::sim
