#include "sim/program/exit_codes.hpp"

#include <fmt/format.h>

namespace stepcast::sim {
namespace {

// Signals: 128 + their number, as shells count them.
constexpr ExitMeaning meanings[] = {
    {exit_ok, "ok"},
    {exit_internal, "internal error; in a sweep: of at least one point, the others are kept"},
    {exit_usage, "usage: the command line means nothing"},
    {exit_bad_input, "bad input: a file or a value, with its place"},
    {exit_no_feasible_plan, "no plan fits"},
    {exit_too_inaccurate, "less accurate than asked for, or a kernel computed something wrong"},
    {exit_rank_lost, "a rank was lost"},
    {exit_unwritten, "output could not be written"},
    {exit_slower, "slower than expected: a run (stepcast diagnose), a node (calibrate card)"},
    {exit_skipped, "skipped: this machine lacks something"},
    {exit_hung_up, "ended by SIGHUP, what was finished is kept"},
    {exit_interrupted, "interrupted (Ctrl-C), what was finished is kept"},
    {exit_terminated, "ended by SIGTERM, what was finished is kept"},
};

}  // namespace

std::span<const ExitMeaning> exit_meanings() { return meanings; }

std::string exit_codes_text() {
  std::string out = "exit codes\n";
  for (const ExitMeaning& meaning : meanings)
    out += fmt::format("  {:>3}  {}\n", static_cast<int>(meaning.code), meaning.text);
  return out;
}

}  // namespace stepcast::sim
