// --report FILE.html and --svg DIR, which every verb with an answer has, and what they are told.
#pragma once

#include <functional>

#include "sim/handout/handout.hpp"
#include "sim/handout/step_handout.hpp"
#include "sim/program/command_line.hpp"
#include "sim/study/answer.hpp"

namespace stepcast::sim {

inline constexpr Option report_option{"report", "FILE.html", "",
                                      "also write a page to hand on, one file that needs no net"};
inline constexpr Option svg_option{"svg", "DIR", "", "also write every chart of it into DIR"};
inline constexpr Option no_alternatives_option{"no-alternatives", "", "",
                                               "of --report: no search for other plans"};

HandoutFiles handout_files(const Arguments& arguments);
Origin origin_of(const Verb& verb, const Arguments& arguments);

/// Writes what `page` makes. The answer is printed whatever becomes of it: false after a message.
bool handed_out(const HandoutFiles& files, const std::function<Told()>& page);

/// Throws UsageError for --no-alternatives without a page that would have them.
void check_handout(const Arguments& arguments, bool one_step);

/// The page of one step or of a plan that has no answer. Throws UsageError for a collective.
Told answer_page(const Answer& answer, const Verb& verb, const Arguments& arguments,
                 Session& session);

}  // namespace stepcast::sim
