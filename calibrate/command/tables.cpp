// stepcast-calibrate show, report, diff, export, merge: what tables hold.
#include <cstdio>

#include "calibrate/command/commands.hpp"
#include "calibrate/report/diff.hpp"
#include "calibrate/report/gpu_report.hpp"
#include "sim/files/printable.hpp"
#include "sim/import/calibration_csv.hpp"
#include "sim/run/session.hpp"
#include "sim/tables/calibration_text.hpp"

namespace stepcast::calibrate {
namespace {

constexpr sim::Verb show_verb{
    "stepcast calibrate show",   "FILE.h5", 1,
    "Shows what a table holds.", {},        "stepcast calibrate show host.h5"};
constexpr sim::Verb report_verb{"stepcast calibrate report",
                                "FILE.h5",
                                1,
                                "Shows a measured GPU beside what is published of it.",
                                {},
                                "stepcast calibrate report h100.h5"};
constexpr sim::Verb diff_verb{"stepcast calibrate diff",
                              "A.h5 B.h5",
                              2,
                              "Shows the rows of one table alone, and times of B over A.",
                              {},
                              "stepcast calibrate diff before.h5 after.h5"};

constexpr sim::Option export_options[] = {{"csv", "FILE.h5", "", "the table to write as CSV"}};
constexpr sim::Verb export_verb{"stepcast calibrate export",
                                "",
                                0,
                                "Writes a table to standard output; import reads it again.",
                                export_options,
                                "stepcast calibrate export --csv host.h5 >host.csv"};

constexpr sim::Option merge_options[] = {
    {"out", "C.h5", "", "the table to write"},
    {"title", "TITLE", "", "its title (default: that of the first)"},
};
constexpr sim::Verb merge_verb{"stepcast calibrate merge",
                               "A.h5 B.h5 ...",
                               1 << 20,
                               "Makes one table of several; later files win over equal keys.",
                               merge_options,
                               "stepcast calibrate merge a.h5 b.h5 --out both.h5"};

int print(const std::string& text) {
  sim::tell(stdout, text);
  return sim::exit_ok;
}

int show(const sim::Arguments& arguments, const sim::Catalogue&) {
  return print(sim::describe(sim::read_calibration(arguments.first("show needs one FILE.h5"))));
}

int report(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto table = sim::read_calibration(arguments.first("report needs one FILE.h5"));
  sim::Session session(catalogue);
  return print(gpu_report(table, *session.tables({"published"}), session));
}

int diff_tables(const sim::Arguments& arguments, const sim::Catalogue&) {
  const auto& files = arguments.positional();
  if (files.size() != 2) throw sim::UsageError("diff needs A.h5 B.h5", diff_verb.example);
  return print(to_text(diff(sim::read_calibrations(std::vector{files[0]}),
                            sim::read_calibrations(std::vector{files[1]}))));
}

int export_table(const sim::Arguments& arguments, const sim::Catalogue&) {
  if (!arguments.has("csv"))
    throw sim::UsageError("export needs --csv FILE.h5", export_verb.example);
  return print(sim::export_csv(sim::read_calibration(arguments.get("csv"))));
}

int merge_tables(const sim::Arguments& arguments, const sim::Catalogue&) {
  if (arguments.positional().size() < 2 || !arguments.has("out"))
    throw sim::UsageError("merge needs A.h5 B.h5 ... --out C.h5", merge_verb.example);
  sim::CalibrationTable table = sim::read_calibrations(arguments.positional());
  if (arguments.has("title")) table.title = arguments.get("title");
  sim::write_calibration(arguments.get("out"), table);
  return sim::exit_ok;
}

}  // namespace

sim::Command show_command() { return {show_verb, show}; }
sim::Command report_command() { return {report_verb, report}; }
sim::Command diff_command() { return {diff_verb, diff_tables}; }
sim::Command export_command() { return {export_verb, export_table}; }
sim::Command merge_command() { return {merge_verb, merge_tables}; }

}  // namespace stepcast::calibrate
