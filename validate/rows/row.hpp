// A published training run as its table states it: one row of either set of columns
// (docs/published_runs.md), typed, blanks kept as blanks. Interprets nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"

namespace stepcast::validate {

/// measured: the columns of training.csv. what_ran: those of what_ran.csv, whose rows leave the
/// model's shape to its name and what nobody states to the peak that is reported.
enum class ColumnSet : std::uint8_t { measured, what_ran };

struct PublishedRow {
  ColumnSet columns = ColumnSet::measured;
  std::string file;
  std::int64_t line = 0;  // in the file
  std::string id, source, url, gpu, intra_node, model;
  std::string dp_mode, sp, activation_checkpointing, precision, attention_kernel, framework;
  std::string confidence, notes;
  std::optional<std::int64_t> gpus, gpus_per_node;
  std::optional<double> inter_node_gbps_per_node;  // Gbit/s of a node, one direction, all NICs
  std::optional<double> params_b;                  // the source's own count, 1e9
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn_hidden, vocab;
  std::optional<std::int64_t> seq_len, global_batch_seqs, micro_batch_seqs, grad_accum;
  std::optional<std::int64_t> tp, pp, virtual_pp, cp, ep;
  std::optional<double> step_time_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu_pct, hfu_pct;
  std::optional<double> mem_gib_per_gpu, power_w;
  bool scorable = true;
  // Of tables that have these columns.
  std::optional<std::int64_t> shard_degree;  // group that shares one copy, of FSDP, hsdp or zero1
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> experts, topk, moe_ffn, dense_layers, mtp_layers, etp;
  // Columns of tables of experts: "1" as wide as an expert, "1x1024" of another width.
  std::optional<std::int64_t> shared_experts, shared_width;
  std::string fp8_recipe, mla, dispatcher, routing, recompute_modules, cuda_graph, ep_overlap;
  bool ran_out_of_memory = false;  // `outcome`: "ran", or "out of memory"
  std::string mem_figure;  // of mem_gib_per_gpu: "allocated", "reserved", "process", or blank
  // Of what_ran.csv alone.
  std::string date, framework_version, network, packing, offload, loss_kernel, optimizer;
  std::string lora_rank, compile, other_flags, flop_convention, tags;
  std::string mem_words;              // the column mem_figure as it stands
  std::string further_figure;         // a second one that its words give
  std::optional<double> further_gib;  // ... and its peak
  bool mem_base_open = false;         // stated as GB: whether of 1e9 bytes or of 2^30 is not said
  std::optional<double> mem_gb_as_stated;  // that number, where mem_gib_per_gpu is another one
  std::string catalogue_model;             // that gave the shape; empty: the columns did

  /// The id's four letters, by which scores are grouped.
  std::string source_key() const { return id.substr(0, 4); }
  /// A mixture of experts, by what it states or by the ranks that share some.
  bool has_experts() const { return experts.value_or(0) > 0 || ep.value_or(1) > 1; }
};

/// Reads rows of either set of columns, in any order, as the header tells; those of some tables
/// alone may be missing. Throws InputError with file:line: a missing, unknown or doubled column, a
/// cell that is no such number, an id that is empty or twice.
std::vector<PublishedRow> published_rows(const sim::CsvFile& file);

}  // namespace stepcast::validate
