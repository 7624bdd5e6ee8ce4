#include "validate/published/row.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <string_view>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using Text = std::string PublishedRow::*;
using Count = std::optional<std::int64_t> PublishedRow::*;
using Number = std::optional<double> PublishedRow::*;

constexpr std::pair<const char*, Text> texts[] = {
    {"id", &PublishedRow::id},
    {"source", &PublishedRow::source},
    {"url_or_repo_path", &PublishedRow::url},
    {"gpu", &PublishedRow::gpu},
    {"intra_node", &PublishedRow::intra_node},
    {"model", &PublishedRow::model},
    {"dp_mode", &PublishedRow::dp_mode},
    {"sp", &PublishedRow::sp},
    {"activation_checkpointing", &PublishedRow::activation_checkpointing},
    {"precision", &PublishedRow::precision},
    {"attention_kernel", &PublishedRow::attention_kernel},
    {"framework", &PublishedRow::framework},
    {"confidence", &PublishedRow::confidence},
    {"notes", &PublishedRow::notes},
};
constexpr std::pair<const char*, Count> counts[] = {
    {"gpus", &PublishedRow::gpus},
    {"gpus_per_node", &PublishedRow::gpus_per_node},
    {"layers", &PublishedRow::layers},
    {"hidden", &PublishedRow::hidden},
    {"heads", &PublishedRow::heads},
    {"kv_heads", &PublishedRow::kv_heads},
    {"ffn_hidden", &PublishedRow::ffn_hidden},
    {"vocab", &PublishedRow::vocab},
    {"seq_len", &PublishedRow::seq_len},
    {"global_batch_seqs", &PublishedRow::global_batch_seqs},
    {"micro_batch_seqs", &PublishedRow::micro_batch_seqs},
    {"grad_accum", &PublishedRow::grad_accum},
    {"tp", &PublishedRow::tp},
    {"pp", &PublishedRow::pp},
    {"virtual_pp", &PublishedRow::virtual_pp},
    {"cp", &PublishedRow::cp},
    {"ep", &PublishedRow::ep},
};
constexpr std::pair<const char*, Number> numbers[] = {
    {"inter_node_gbps_per_node", &PublishedRow::inter_node_gbps_per_node},
    {"params_b", &PublishedRow::params_b},
    {"step_time_s", &PublishedRow::step_time_s},
    {"tokens_per_s_per_gpu", &PublishedRow::tokens_per_s_per_gpu},
    {"tflops_per_gpu", &PublishedRow::tflops_per_gpu},
    {"mfu_pct", &PublishedRow::mfu_pct},
    {"hfu_pct", &PublishedRow::hfu_pct},
    {"mem_gib_per_gpu", &PublishedRow::mem_gib_per_gpu},
    {"power_w", &PublishedRow::power_w},
};

/// Of some tables alone.
constexpr std::pair<const char*, Count> further_counts[] = {
    {"shard_degree", &PublishedRow::shard_degree}, {"head_dim", &PublishedRow::head_dim},
    {"experts", &PublishedRow::experts},           {"topk", &PublishedRow::topk},
    {"moe_ffn", &PublishedRow::moe_ffn},           {"dense_layers", &PublishedRow::dense_layers},
    {"mtp_layers", &PublishedRow::mtp_layers},     {"etp", &PublishedRow::etp},
};

constexpr std::pair<const char*, Text> further_texts[] = {
    {"fp8_recipe", &PublishedRow::fp8_recipe},
    {"mla", &PublishedRow::mla},
    {"dispatcher", &PublishedRow::dispatcher},
    {"routing", &PublishedRow::routing},
    {"recompute_modules", &PublishedRow::recompute_modules},
    {"cuda_graph", &PublishedRow::cuda_graph},
    {"ep_overlap", &PublishedRow::ep_overlap},
};

/// Everything a count can be in this table; larger ones are mistakes and would overflow products.
constexpr double largest_count = 1e9;

[[noreturn]] void fail(const std::string& where, const std::string& column, std::string_view cell,
                       const char* hint) {
  throw InputError(where, "'" + std::string(cell) + "' in column " + column + " is unreadable",
                   hint);
}

std::int64_t read_count(const std::string& where, const std::string& column,
                        std::string_view cell) {
  double value = 0;  // some tables write 8.0
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !(value >= 0) ||
      value > largest_count || value != std::floor(value))
    fail(where, column, cell, "a whole number, or blank where the source does not say");
  return static_cast<std::int64_t>(value);
}

double read_number(const std::string& where, const std::string& column, std::string_view cell) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value) ||
      value < 0.0)
    fail(where, column, cell, "a positive number, or blank where the source does not say");
  return value;
}

using Setter = std::function<void(PublishedRow&, const std::string& where, std::string_view cell)>;

/// How a cell under this heading goes into a row; empty for an unknown heading.
Setter setter_of(const std::string& column) {
  for (const auto list : {std::span<const std::pair<const char*, Text>>(texts),
                          std::span<const std::pair<const char*, Text>>(further_texts)})
    for (const auto& [name, member] : list)
      if (column == name)
        return [member = member](auto& row, const auto&, auto cell) { row.*member = cell; };
  for (const auto list : {std::span<const std::pair<const char*, Count>>(counts),
                          std::span<const std::pair<const char*, Count>>(further_counts)})
    for (const auto& [name, member] : list)
      if (column == name)
        return [member = member, column](auto& row, const auto& where, auto cell) {
          if (!cell.empty()) row.*member = read_count(where, column, cell);
        };
  for (const auto& [name, member] : numbers)
    if (column == name)
      return [member = member, column](auto& row, const auto& where, auto cell) {
        if (!cell.empty()) row.*member = read_number(where, column, cell);
      };
  if (column == "shared_experts")
    return [column](auto& row, const auto& where, auto cell) {
      if (cell.empty()) return;
      const auto x = cell.find('x');
      row.shared_experts = read_count(where, column, cell.substr(0, x));
      if (x != cell.npos) row.shared_width = read_count(where, column, cell.substr(x + 1));
    };
  if (column == "scorable")
    return [](auto& row, const auto& where, auto cell) {
      if (cell != "yes" && cell != "no" && !cell.empty())
        fail(where, "scorable", cell, "yes or no");
      row.scorable = cell == "yes";
    };
  if (column == "outcome")
    return [](auto& row, const auto& where, auto cell) {
      if (cell != "ran" && cell != "out of memory" && !cell.empty())
        fail(where, "outcome", cell, "ran or out of memory");
      row.ran_out_of_memory = cell == "out of memory";
    };
  if (column == "mem_figure")
    return [](auto& row, const auto& where, auto cell) {
      if (cell != "allocated" && cell != "reserved" && cell != "process" && !cell.empty())
        fail(where, "mem_figure", cell, "allocated, reserved or process");
      row.mem_figure = cell;
    };
  return {};
}

std::vector<Setter> setters_of(const sim::CsvFile& file) {
  const std::string where = file.path + ":1";
  std::vector<Setter> out;
  std::set<std::string> seen;
  for (const std::string& column : file.header) {
    if (!seen.insert(column).second)
      throw InputError(where, "column " + column + " stands twice", "keep one");
    out.push_back(setter_of(column));
    if (!out.back())
      throw InputError(where, "unknown column '" + column + "'",
                       "the columns are those of training_measurements.csv");
  }
  const auto demand = [&](const char* name) {
    if (!seen.contains(name))
      throw InputError(where, "column " + std::string(name) + " is missing",
                       "the columns are those of training_measurements.csv");
  };
  for (const auto& column : texts) demand(column.first);
  for (const auto& column : counts) demand(column.first);
  for (const auto& column : numbers) demand(column.first);
  demand("scorable");
  return out;
}

}  // namespace

std::vector<PublishedRow> published_rows(const sim::CsvFile& file) {
  const std::vector<Setter> setters = setters_of(file);
  std::vector<PublishedRow> rows;
  std::set<std::string> ids;
  for (const sim::CsvRow& cells : file.rows) {
    PublishedRow row;
    row.file = file.path;
    row.line = cells.line;
    const std::string where = file.path + ":" + std::to_string(cells.line);
    for (std::size_t c = 0; c < setters.size(); ++c) setters[c](row, where, cells.cells[c]);
    if (row.id.empty()) throw InputError(where, "a row without an id", "e.g. HAGE-0001");
    if (!ids.insert(row.id).second)
      throw InputError(where, "id " + row.id + " stands twice", "ids name rows");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepcast::validate
