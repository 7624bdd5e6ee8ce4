// A key of a scenario as its user knows it.
#pragma once

namespace stepcast::sim {

/// A key as a user writes it, and the option of the command line that sets it, if one does.
struct Key {
  // NOLINTNEXTLINE(google-explicit-constructor): visit.may("biases", ...) reads well
  constexpr Key(const char* key_name, const char* key_help = "", const char* key_option = "",
                const char* option_argument = "")
      : name(key_name), help(key_help), option(key_option), argument(option_argument) {}

  /// What a size or rate may be, zero apart, in its own unit (B/s, s, W): else as all of that unit.
  constexpr Key within(double at_least, double at_most) const {
    Key out = *this;
    out.least = at_least;
    out.most = at_most;
    return out;
  }

  const char* name;                // "global", in [batch]
  const char* help;                // one line; empty: the name and its words say it
  const char* option;              // "global-batch"; empty: --set alone
  const char* argument;            // "N"; empty: a switch
  double least = 0.0, most = 0.0;  // of within(); 0: not stated
  bool may_be_best = false;        // by searched()
};

/// A scenario may say "best" instead of a value: a search chooses it (sim/search/knobs.hpp).
constexpr Key searched(Key key) {
  key.may_be_best = true;
  return key;
}

}  // namespace stepcast::sim
