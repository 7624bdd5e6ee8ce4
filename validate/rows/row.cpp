#include "validate/rows/row.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <variant>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::validate {
namespace {

using Text = std::string PublishedRow::*;
using Count = std::optional<std::int64_t> PublishedRow::*;
using Number = std::optional<double> PublishedRow::*;
using Parser = void (*)(PublishedRow&, const std::string& where, std::string_view cell);

/// Whether a set of columns has one.
enum Presence : std::uint8_t { never, may, must };

struct RowColumn {
  const char* name;
  std::variant<Text, Count, Number, Parser> member;
  Presence measured, what_ran;

  Presence in(ColumnSet set) const { return set == ColumnSet::measured ? measured : what_ran; }
};

[[noreturn]] void fail(const std::string& where, const std::string& column, std::string_view cell,
                       const char* hint) {
  throw InputError(where, "'" + std::string(cell) + "' in column " + column + " is unreadable",
                   hint);
}

/// Everything a count can be in this table; larger ones are mistakes and would overflow products.
constexpr double largest_count = 1e9;

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

void read_shared_experts(PublishedRow& row, const std::string& where, std::string_view cell) {
  if (cell.empty()) return;
  const auto x = cell.find('x');
  row.shared_experts = read_count(where, "shared_experts", cell.substr(0, x));
  if (x != cell.npos) row.shared_width = read_count(where, "shared_experts", cell.substr(x + 1));
}

void read_scorable(PublishedRow& row, const std::string& where, std::string_view cell) {
  if (cell != "yes" && cell != "no" && !cell.empty()) fail(where, "scorable", cell, "yes or no");
  row.scorable = cell == "yes";
}

void read_outcome(PublishedRow& row, const std::string& where, std::string_view cell) {
  const std::string_view died = row.columns == ColumnSet::what_ran ? "oom" : "out of memory";
  const bool blank = cell.empty() && row.columns == ColumnSet::measured;
  if (cell != "ran" && cell != died && !blank)
    fail(where, "outcome", cell, died == "oom" ? "ran or oom" : "ran or out of memory");
  row.ran_out_of_memory = cell == died;
}

/// The figure that words begin with: "max reserved", "peak active", "nvidia-smi, rounded"; empty:
/// none that is known.
std::string figure_in(std::string_view words) {
  const auto has = [&](std::string_view word) { return words.find(word) != words.npos; };
  if (has("reserved")) return "reserved";
  if (has("allocated") || has("active")) return "allocated";
  return has("nvidia-smi") ? "process" : "";
}

/// The last word of a text as a number.
std::optional<double> last_number(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  return sim::number_in<double>(text.substr(text.find_last_of(' ') + 1));
}

/// "peak allocated (reserved 72.356)" has two figures; "56.2 GB as stated" and "allocated (GB as
/// stated)" a number whose base is not said.
void read_memory_words(PublishedRow& row, const std::string&, std::string_view words) {
  row.mem_words = words;
  const auto opens = std::min(words.find('('), words.size());
  const std::string_view first = words.substr(0, opens);
  std::string_view second = words.substr(std::min(opens + 1, words.size()));
  if (second.ends_with(')')) second.remove_suffix(1);
  row.mem_figure = figure_in(first);
  if (const auto number = last_number(second)) {
    row.further_figure = figure_in(second);
    row.further_gib = number;
  }
  if (const auto at = words.find("GB as stated"); at != words.npos) {
    row.mem_gb_as_stated = last_number(words.substr(0, at));
    row.mem_base_open = true;
  }
}

void read_figure(PublishedRow& row, const std::string& where, std::string_view cell) {
  if (row.columns == ColumnSet::what_ran) return read_memory_words(row, where, cell);
  if (cell != "allocated" && cell != "reserved" && cell != "process" && !cell.empty())
    fail(where, "mem_figure", cell, "allocated, reserved or process");
  row.mem_figure = cell;
}

using R = PublishedRow;
constexpr RowColumn row_columns[] = {
    {"id", &R::id, must, must},
    {"source", &R::source, must, must},
    {"framework", &R::framework, must, must},
    {"model", &R::model, must, must},
    {"layers", &R::layers, must, must},
    {"hidden", &R::hidden, must, must},
    {"heads", &R::heads, must, must},
    {"kv_heads", &R::kv_heads, must, must},
    {"ffn_hidden", &R::ffn_hidden, must, must},
    {"vocab", &R::vocab, must, must},
    {"experts", &R::experts, may, must},
    {"topk", &R::topk, may, must},
    {"moe_ffn", &R::moe_ffn, may, must},
    {"gpu", &R::gpu, must, must},
    {"gpus", &R::gpus, must, must},
    {"gpus_per_node", &R::gpus_per_node, must, must},
    {"tp", &R::tp, must, must},
    {"sp", &R::sp, must, must},
    {"cp", &R::cp, must, must},
    {"pp", &R::pp, must, must},
    {"ep", &R::ep, must, must},
    {"etp", &R::etp, may, must},
    {"dp_mode", &R::dp_mode, must, must},
    {"micro_batch_seqs", &R::micro_batch_seqs, must, must},
    {"global_batch_seqs", &R::global_batch_seqs, must, must},
    {"seq_len", &R::seq_len, must, must},
    {"precision", &R::precision, must, must},
    {"attention_kernel", &R::attention_kernel, must, must},
    {"step_time_s", &R::step_time_s, must, must},
    {"tokens_per_s_per_gpu", &R::tokens_per_s_per_gpu, must, must},
    {"tflops_per_gpu", &R::tflops_per_gpu, must, must},
    {"outcome", &read_outcome, may, must},
    {"mem_figure", &read_figure, may, must},
    {"confidence", &R::confidence, must, must},

    {"url_or_repo_path", &R::url, must, never},
    {"intra_node", &R::intra_node, must, never},
    {"inter_node_gbps_per_node", &R::inter_node_gbps_per_node, must, never},
    {"params_b", &R::params_b, must, never},
    {"grad_accum", &R::grad_accum, must, never},
    {"virtual_pp", &R::virtual_pp, must, never},
    {"activation_checkpointing", &R::activation_checkpointing, must, never},
    {"mfu_pct", &R::mfu_pct, must, never},
    {"hfu_pct", &R::hfu_pct, must, never},
    {"mem_gib_per_gpu", &R::mem_gib_per_gpu, must, never},
    {"power_w", &R::power_w, must, never},
    {"notes", &R::notes, must, never},
    {"scorable", &read_scorable, must, never},
    {"shard_degree", &R::shard_degree, may, never},
    {"head_dim", &R::head_dim, may, never},
    {"dense_layers", &R::dense_layers, may, never},
    {"mtp_layers", &R::mtp_layers, may, never},
    {"shared_experts", &read_shared_experts, may, never},
    {"fp8_recipe", &R::fp8_recipe, may, never},
    {"mla", &R::mla, may, never},
    {"dispatcher", &R::dispatcher, may, never},
    {"routing", &R::routing, may, never},
    {"recompute_modules", &R::recompute_modules, may, never},
    {"cuda_graph", &R::cuda_graph, may, never},
    {"ep_overlap", &R::ep_overlap, may, never},

    {"date", &R::date, never, must},
    {"framework_version", &R::framework_version, never, must},
    {"network", &R::network, never, must},
    {"vpp", &R::virtual_pp, never, must},
    {"packing", &R::packing, never, must},
    {"recipe", &R::fp8_recipe, never, must},
    {"recompute", &R::activation_checkpointing, never, must},
    {"offload", &R::offload, never, must},
    {"loss_kernel", &R::loss_kernel, never, must},
    {"optimizer", &R::optimizer, never, must},
    {"lora_rank", &R::lora_rank, never, must},
    {"compile", &R::compile, never, must},
    {"other_flags", &R::other_flags, never, must},
    {"mem_gib", &R::mem_gib_per_gpu, never, must},
    {"flop_convention", &R::flop_convention, never, must},
    {"note", &R::notes, never, must},
    {"tags", &R::tags, never, must},
};

const char* hint_for(ColumnSet set) {
  return set == ColumnSet::measured ? "the columns are those of training_measurements.csv"
                                    : "the columns are those of what_ran.csv";
}

/// The set that knows more of a header.
ColumnSet set_of(const sim::CsvFile& file) {
  const auto known = [&](ColumnSet set) {
    return std::ranges::count_if(file.header, [&](const std::string& name) {
      return std::ranges::any_of(
          row_columns, [&](const RowColumn& c) { return name == c.name && c.in(set) != never; });
    });
  };
  return known(ColumnSet::what_ran) > known(ColumnSet::measured) ? ColumnSet::what_ran
                                                                 : ColumnSet::measured;
}

/// Puts a cell where its column says.
void put_cell(PublishedRow& row, const RowColumn& column, const std::string& where,
              std::string_view cell) {
  if (const auto* text = std::get_if<Text>(&column.member)) row.*(*text) = cell;
  if (const auto* parser = std::get_if<Parser>(&column.member)) (*parser)(row, where, cell);
  if (cell.empty()) return;
  if (const auto* count = std::get_if<Count>(&column.member))
    row.*(*count) = read_count(where, column.name, cell);
  if (const auto* number = std::get_if<Number>(&column.member))
    row.*(*number) = read_number(where, column.name, cell);
}

std::vector<const RowColumn*> columns_of(const sim::CsvFile& file, ColumnSet set) {
  const std::string where = file.path + ":1";
  std::vector<const RowColumn*> out;
  std::set<std::string> seen;
  for (const std::string& name : file.header) {
    if (!seen.insert(name).second)
      throw InputError(where, "column " + name + " stands twice", "keep one");
    const auto* column = std::ranges::find_if(
        row_columns, [&](const RowColumn& c) { return name == c.name && c.in(set) != never; });
    if (column == std::end(row_columns))
      throw InputError(where, "unknown column '" + name + "'", hint_for(set));
    out.push_back(column);
  }
  for (const RowColumn& column : row_columns)
    if (column.in(set) == must && !seen.contains(column.name))
      throw InputError(where, "column " + std::string(column.name) + " is missing", hint_for(set));
  return out;
}

}  // namespace

std::vector<PublishedRow> published_rows(const sim::CsvFile& file) {
  const ColumnSet set = set_of(file);
  const std::vector<const RowColumn*> found = columns_of(file, set);
  std::vector<PublishedRow> rows;
  std::set<std::string> ids;
  for (const sim::CsvRow& cells : file.rows) {
    PublishedRow row;
    row.columns = set;
    row.file = file.path;
    row.line = cells.line;
    const std::string where = file.path + ":" + std::to_string(cells.line);
    for (std::size_t c = 0; c < found.size(); ++c) put_cell(row, *found[c], where, cells.cells[c]);
    if (row.id.empty()) throw InputError(where, "a row without an id", "e.g. HAGE-0001");
    if (!ids.insert(row.id).second)
      throw InputError(where, "id " + row.id + " stands twice", "ids name rows");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepcast::validate
