// What the study says (arXiv 2411.13055), each statement as a number of our forecasts and the
// bounds within which it holds.
#pragma once

#include <span>
#include <string>

#include "validate/study/runs.hpp"

namespace stepcast::validate {

struct Trend {
  int number;                   // of the study's statements, as docs/study.md counts them
  const char* statement;        // what the number is, with its unit
  const char* expected;         // the study's figure or sign, in words
  double least, most;           // holds within
  double (*value)(StudyRuns&);  // in percent, unless the statement names another unit

  bool holds(double v) const { return v >= least && v <= most; }
};

/// All of them, by number. Throws NoFeasiblePlan, InputError as a run does.
std::span<const Trend> trends();

/// Runs every trend under every set: a table with the band over the sets, in which of them it
/// holds, and how many hold in each. Unless `quiet`, progress meanwhile.
std::string trends_text(sim::Session& session, const std::vector<StudySet>& sets, unsigned threads,
                        bool quiet);

}  // namespace stepcast::validate
