#include "sim/scenario/order_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/split.hpp"
#include "sim/files/toml_value.hpp"
#include "workloads/plan/order_check.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {
namespace {

using workloads::ListedOrders;
using workloads::Pass;
using workloads::Placement;
using workloads::Turn;

/// Part and micro-batch numbers beyond it are slips.
constexpr std::int64_t most_of_a_number = 999'999;

std::string_view bare_cell(std::string_view text) {
  constexpr std::string_view around = " \t\r\"";
  const std::size_t first = text.find_first_not_of(around);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(around) - first + 1);
}

/// A turn of a part; its chunk follows when all parts are known.
struct PartTurn {
  std::int64_t part = 0;
  Turn turn;
  std::size_t column = 0;
};
struct OrderRow {
  std::size_t line = 0;
  std::vector<PartTurn> turns;
};

class OrderFileParser {
 public:
  explicit OrderFileParser(std::string path) : path_(std::move(path)) {}

  ListedOrders parse(std::string_view text) {
    std::size_t line = 0;
    for (const std::string_view row : split(text, '\n')) {
      ++line;
      if (!bare_cell(row).empty()) rows_.push_back(row_of(line, row));
    }
    if (rows_.empty()) throw InputError(path_, "has no turns", "a row per rank: 0F0,0F1,,0B0");
    ListedOrders out;
    out.file = path_;
    place(out);
    if (const auto fault = workloads::fault_of(out)) fail(*fault);
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what, const std::string& hint) const {
    throw InputError(path_ + ":" + std::to_string(line), what, hint);
  }
  [[noreturn]] void fail(const workloads::OrderFault& fault) const {
    const OrderRow& row = rows_[static_cast<std::size_t>(fault.stage)];
    const std::string cell = fault.turn < row.turns.size()
                                 ? ", cell " + std::to_string(row.turns[fault.turn].column)
                                 : "";
    fail(row.line, "rank " + std::to_string(fault.stage) + cell + ": " + fault.what, fault.hint);
  }

  OrderRow row_of(std::size_t line, std::string_view text) {
    OrderRow out{line, {}};
    std::size_t column = 0;
    for (const std::string_view cell : split(text, ',')) {
      ++column;
      const std::string_view word = bare_cell(cell);
      if (word.empty()) continue;
      constexpr std::string_view overlap = ")OVERLAP_F_B";
      if (!word.starts_with('(') || !word.ends_with(overlap)) {
        out.turns.push_back(turn_of(line, column, word));
        continue;
      }
      const auto both = split(word.substr(1, word.size() - 1 - overlap.size()), ';');
      if (both.size() != 2) fail(line, cell_text(column, word) + " is no pair", pair_hint);
      for (const std::string_view half : both)
        out.turns.push_back(turn_of(line, column, bare_cell(half)));
      PartTurn& first = out.turns[out.turns.size() - 2];
      if (first.turn.pass != Pass::forward || out.turns.back().turn.pass != Pass::backward)
        fail(line, cell_text(column, word) + " is no pair", pair_hint);
      first.turn.paired = true;
    }
    return out;
  }

  static std::string cell_text(std::size_t column, std::string_view word) {
    return "cell " + std::to_string(column) + " '" + std::string(word) + "'";
  }

  PartTurn turn_of(std::size_t line, std::size_t column, std::string_view word) const {
    PartTurn out;
    out.column = column;
    const char* const end = word.data() + word.size();
    const auto [after_part, error] = std::from_chars(word.data(), end, out.part);
    const std::string_view letters = "FBIW";
    const std::size_t pass = after_part == end ? std::string_view::npos : letters.find(*after_part);
    if (error != std::errc{} || pass == std::string_view::npos) {
      const bool communicates = word.find("SEND") != word.npos || word.find("RECV") != word.npos ||
                                word.find("SHARD") != word.npos || word.find("REDUCE") != word.npos;
      fail(line, cell_text(column, word) + " is no turn",
           communicates ? "give the turns alone (compute_only): messages follow from them"
                        : "part, F, B, I or W, micro-batch: 0F3");
    }
    const auto [after, wrong] = std::from_chars(after_part + 1, end, out.turn.micro_batch);
    if (wrong != std::errc{} || after != end || out.turn.micro_batch < 0 || out.part < 0 ||
        out.turn.micro_batch > most_of_a_number || out.part > most_of_a_number)
      fail(line, cell_text(column, word) + " is no turn", "part, F, B, I or W, micro-batch: 0F3");
    out.turn.pass = static_cast<Pass>(pass);
    return out;
  }

  std::optional<std::int64_t> chunk_of(const ListedOrders& out, std::size_t rank,
                                       std::int64_t part) const {
    const auto stages = static_cast<std::int64_t>(rows_.size());
    for (std::int64_t chunk = 0; chunk < out.chunks; ++chunk)
      if (workloads::part_at(out.placement, stages, static_cast<std::int64_t>(rank), chunk) == part)
        return chunk;
    return std::nullopt;
  }

  bool all_lie(const ListedOrders& out) const {
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const PartTurn& t : rows_[rank].turns)
        if (!chunk_of(out, rank, t.part)) return false;
    return true;
  }

  /// Where the parts lie, and so the chunk of each turn.
  void place(ListedOrders& out) const {
    std::int64_t parts = 0;
    for (const OrderRow& row : rows_)
      for (const PartTurn& t : row.turns) {
        parts = std::max(parts, t.part + 1);
        out.micro_batches = std::max(out.micro_batches, t.turn.micro_batch + 1);
      }
    const auto ranks = static_cast<std::int64_t>(rows_.size());
    if (parts == 0 || parts % ranks != 0)
      fail(rows_.front().line,
           std::to_string(parts) + " parts of the model on " + std::to_string(ranks) + " ranks",
           "every rank has a row, and the same number of parts");
    out.chunks = parts / ranks;
    if (!all_lie(out) && out.chunks == 2) out.placement = Placement::folded;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      auto& turns = out.stages.emplace_back();
      for (const PartTurn& t : rows_[rank].turns) {
        const auto chunk = chunk_of(out, rank, t.part);
        if (!chunk)
          fail(rows_[rank].line,
               "part " + std::to_string(t.part) + " of the model on rank " + std::to_string(rank),
               "part k lies on rank k % " + std::to_string(ranks) +
                   ", or two on each rank, r and 2 x ranks - 1 - r");
        turns.push_back(t.turn);
        turns.back().chunk = *chunk;
      }
    }
  }

  static constexpr const char* pair_hint = "a forward and a backward: (0F1;1B0)OVERLAP_F_B";

  std::string path_;
  std::vector<OrderRow> rows_;
};

}  // namespace

bool is_order_file(std::string_view schedule) { return schedule.ends_with(".csv"); }

ListedOrders parse_orders(const std::string& path, std::string_view text) {
  return OrderFileParser(path).parse(text);
}

ListedOrders read_orders(const std::string& path) {
  return parse_orders(path, read_toml_text(path));
}

std::string write_orders(const ListedOrders& orders) {
  std::string out;
  const auto stages = static_cast<std::int64_t>(orders.stages.size());
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::vector<Turn>& turns = orders.stages[static_cast<std::size_t>(stage)];
    const auto text = [&](const Turn& t) {
      return workloads::text_of(t, part_at(orders.placement, stages, stage, t.chunk));
    };
    for (std::size_t i = 0; i < turns.size(); ++i) {
      if (i > 0) out += ",";
      if (!turns[i].paired || i + 1 == turns.size()) {
        out += text(turns[i]);
        continue;
      }
      out += "(" + text(turns[i]) + ";" + text(turns[i + 1]) + ")OVERLAP_F_B";
      ++i;
    }
    out += "\n";
  }
  return out;
}

std::string schedule_word(const workloads::ParallelPlan& plan) {
  if (plan.schedule == workloads::Schedule::listed) return plan.orders.list->file;
  return word_for(schedule_names, plan.schedule);
}

}  // namespace stepcast::sim
