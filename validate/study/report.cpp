// The trends as a table, under both choices of protocol.
#include <fmt/format.h>

#include "sim/files/text_table.hpp"
#include "sim/program/progress.hpp"
#include "validate/study/trends.hpp"

namespace stepcast::validate {
namespace {

using Align = sim::TextTable::Align;

std::string figure(double value) { return fmt::format("{:+.1f}", value); }

}  // namespace

std::string trends_text(sim::Session& session, unsigned threads, bool quiet) {
  StudyRuns own(session, {}, threads), simple(session, {{"NCCL_PROTO", "Simple"}}, threads);
  sim::TextTable table;
  table.column("");
  table.column("statement, in percent or as said", "", Align::left);
  table.column("the study", "", Align::left);
  table.column("NCCL's choice");
  table.column("", "", Align::left);
  table.column("Simple");
  table.column("", "", Align::left);
  std::size_t with_own = 0, with_simple = 0;
  sim::Progress progress(trends().size(), sim::Progress::style_for(quiet), "statements");
  std::size_t done = 0;
  for (const Trend& trend : trends()) {
    const double a = trend.value(own), b = trend.value(simple);
    with_own += trend.holds(a);
    with_simple += trend.holds(b);
    table.row({std::to_string(trend.number), trend.statement, trend.expected, figure(a),
               trend.holds(a) ? "holds" : "misses", figure(b),
               trend.holds(b) ? "holds" : "misses"});
    progress.show(++done);
  }
  return table.text() + fmt::format(
                            "\n{} statements: {} hold with NCCL's own choice of protocol, {} with "
                            "NCCL_PROTO=Simple\n",
                            trends().size(), with_own, with_simple);
}

}  // namespace stepcast::validate
