// stepcast page: the program as a page that needs no network.
#pragma once

#include "sim/command/program.hpp"

namespace stepcast::sim {

Command page_command();

}  // namespace stepcast::sim
