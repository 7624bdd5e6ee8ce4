// stepcast page: writes the page that answers in a browser; and stepcast report --live, which opens
// it with a report that is written anew at every change.
#pragma once

#include "sim/command/program.hpp"

namespace stepcast::sim {

Command page_command();
/// stepcast report, which --live makes such a page of.
Command live_report_command();

}  // namespace stepcast::sim
