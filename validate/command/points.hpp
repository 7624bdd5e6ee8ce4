// The points of a scenario file that are trained and simulated, their files, and the calibration
// that both rest on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/handout/handout.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::validate {

struct Point {
  std::string label;
  sim::Scenario scenario;
  std::filesystem::path base;  // its files: base + ".toml", ...
  std::string file(const char* ending) const { return base.string() + ending; }
  std::filesystem::path folder() const { return base.parent_path().parent_path(); }  // of all
};

/// Of the file that `arguments` name, under the options --set and --table of `verb`; every point's
/// tables are the one that measurements go to. Their files are to lie in `folder`/points.
std::vector<Point> points_of(const sim::Verb& verb, const sim::Arguments& arguments,
                             const std::filesystem::path& folder, const sim::Catalogue& catalogue);

/// Each point as a scenario file of its own.
void write_points(const std::vector<Point>& points);

/// Runs a program of ours beside this one; its exit code.
int run_sister(const std::string& name, std::vector<std::string> words);

/// Measures what the points' files need and their table lacks, unless --as-calibrated, with few
/// samples by --quick; the exit code.
int calibrate_points(const sim::Arguments& arguments, const std::vector<Point>& points);

/// --report names a page where it ends in .html, else a folder for a dated report.
sim::HandoutFiles page_files(const sim::Arguments& arguments);

}  // namespace stepcast::validate
