#include "validate/published/completed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/files/toml_table.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

workloads::TransformerShape shape_named(const std::string& model, const sim::Catalogue& catalogue) {
  sim::TomlValue value = sim::toml_table("published");
  value.set("name", sim::toml_text(model, "published"));
  sim::TableReader table(value, "model");
  return catalogue.model(table);
}

void take_shape(PublishedRow& row, const workloads::TransformerShape& shape) {
  row.layers = shape.layers;
  row.hidden = shape.hidden;
  row.heads = shape.heads;
  row.kv_heads = shape.kv_heads;
  row.head_dim = shape.head_dim;
  row.ffn_hidden = shape.ffn_hidden;
  row.vocab = shape.vocab;
  if (shape.mtp_layers > 0) row.mtp_layers = shape.mtp_layers;
  if (shape.experts.count == 0) return;
  row.experts = shape.experts.count;
  row.topk = shape.experts.per_token;
  row.moe_ffn = shape.experts.ffn;
  row.dense_layers = shape.experts.dense_layers;
}

/// Ulysses: all ranks share each sequence, unless a flag says that none do.
void take_sequence_ranks(PublishedRow& row) {
  if (row.cp || !row.gpus || !has_word(lower(row.notes), {"sequence parallel degree = gpus"}) ||
      has_word(lower(row.other_flags), {"no sequence parallelism"}))
    return;
  row.cp = *row.gpus;
}

/// Sequences of uneven length by their mean: what tokens and steps a second tell, else what is
/// said ("about 279 tokens a sample").
void take_mean_length(CompletedRow& out) {
  PublishedRow& row = out.row;
  if (row.seq_len || row.packing.empty()) return;
  const bool told =
      row.tokens_per_s_per_gpu && row.step_time_s && row.global_batch_seqs && row.gpus;
  const double tokens = told ? *row.tokens_per_s_per_gpu * *row.step_time_s *
                                   static_cast<double>(*row.gpus) /
                                   static_cast<double>(*row.global_batch_seqs)
                             : number_after(row.packing, "about ").value_or(0.0);
  if (!(tokens >= 1)) return;
  row.seq_len = std::llround(tokens);
  row.packing.clear();
  out.uneven = true;
  out.assumed.push_back(
      fmt::format("sequences of uneven length taken as of their mean, {} tokens{}", *row.seq_len,
                  told ? ", from tokens per second and the step's time" : ""));
}

/// Ring and all-to-all cut a sequence into equal parts.
void take_whole_parts(CompletedRow& out) {
  PublishedRow& row = out.row;
  const std::int64_t parts = 2 * row.cp.value_or(1);
  if (parts == 2 || !row.seq_len || *row.seq_len % parts == 0 || *row.seq_len < parts) return;
  *row.seq_len -= *row.seq_len % parts;
  out.assumed.push_back(fmt::format("{} tokens, the next that its ranks divide", *row.seq_len));
}

/// A step's sequences, if tokens per second and the step's time make whole micro-batches, `each` of
/// all replicas, to within what rounding leaves.
std::optional<std::int64_t> batch_of_tokens(const PublishedRow& row, std::int64_t each) {
  constexpr double rounding = 0.03;
  if (!row.tokens_per_s_per_gpu || !row.step_time_s || !row.seq_len) return std::nullopt;
  const double sequences = *row.tokens_per_s_per_gpu * *row.step_time_s *
                           static_cast<double>(*row.gpus) / static_cast<double>(*row.seq_len);
  const auto turns = std::llround(sequences / static_cast<double>(each));
  const auto whole = static_cast<double>(turns * each);
  if (turns < 1 || std::abs(sequences - whole) > rounding * whole) return std::nullopt;
  return turns * each;
}

}  // namespace

bool take_batch(PublishedRow& row, std::vector<std::string>& assumed) {
  if (row.global_batch_seqs) return true;
  if (!row.gpus || !row.micro_batch_seqs) return false;
  const auto degree = [](const auto& stated) {
    return std::max<std::int64_t>(1, stated.value_or(1));
  };
  const std::int64_t ranks = degree(row.tp) * degree(row.pp) * degree(row.cp);
  if (*row.gpus % ranks != 0) return false;  // refused where the plan is made
  if (const auto batch = batch_of_tokens(row, *row.gpus / ranks * *row.micro_batch_seqs)) {
    row.global_batch_seqs = *batch;
    assumed.push_back(fmt::format("global batch {}, from tokens per second and the step's time",
                                  *row.global_batch_seqs));
    return true;
  }
  // A pipeline is full with as many micro-batches as stages.
  row.global_batch_seqs = *row.gpus / ranks * *row.micro_batch_seqs * degree(row.pp);
  assumed.push_back(
      fmt::format("the global batch is not stated: {}, {} a replica", *row.global_batch_seqs,
                  degree(row.pp) > 1 ? "a micro-batch for each stage" : "a micro-batch"));
  return !row.step_time_s;
}

CompletedRow completed(const PublishedRow& row, const PublishedModels& models,
                       const sim::Catalogue& catalogue) {
  CompletedRow out{row, {}};
  if (row.columns != ColumnSet::what_ran) return out;
  if (!row.layers && !row.hidden) {
    out.row.catalogue_model = models.catalogue_name(row);
    if (!out.row.catalogue_model.empty())
      take_shape(out.row, shape_named(out.row.catalogue_model, catalogue));
  }
  take_sequence_ranks(out.row);
  take_mean_length(out);
  take_whole_parts(out);
  return out;
}

}  // namespace stepcast::validate
