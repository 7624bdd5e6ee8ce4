// Orders of pipeline stages from a CSV file as torchtitan and torch.distributed.pipelining read it
// (_load_csv, format "compute_only", and _Action.from_str of schedules.py; recalled, 2026): a row
// per rank, a cell per turn, "0F3" the forward of micro-batch 3 through part 0 of the model, B its
// backward, I and W that in two; "(0F1;1B0)OVERLAP_F_B" a pair; empty cells wait.
#pragma once

#include <string>
#include <string_view>

#include "workloads/plan/turn.hpp"

namespace stepcast::sim {

/// Whether `schedule` in [plan] names a file.
bool is_order_file(std::string_view schedule);

/// Throws InputError with file:line on cells that are no turns, parts that lie neither in loops nor
/// folded, and orders that do not run a step.
workloads::ListedOrders parse_orders(const std::string& path, std::string_view text);
workloads::ListedOrders read_orders(const std::string& path);

/// The same of orders, as a file.
std::string write_orders(const workloads::ListedOrders&);

}  // namespace stepcast::sim
