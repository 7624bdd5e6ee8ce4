// Whether orders of turns run a step: every micro-batch passes every part once each way, and no
// stage waits for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "workloads/plan/turn.hpp"

namespace stepcast::workloads {

/// What is wrong with a turn of a stage.
struct OrderFault {
  std::int64_t stage = 0;
  std::size_t turn = 0;  // that of the stage where it is noticed; its number of turns: at the end
  std::string what, hint;
};

/// "0F3": the part of the model, the pass, the micro-batch, as torch's pipelining writes it.
std::string text_of(const Turn&, std::int64_t part);

/// The first fault; none: the orders run.
std::optional<OrderFault> fault_of(const ListedOrders&);

}  // namespace stepcast::workloads
