#include "validate/published/completed.hpp"

#include <fmt/format.h>

#include <algorithm>

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

void take_batch(CompletedRow& out) {
  PublishedRow& row = out.row;
  if (row.global_batch_seqs || !row.gpus || !row.micro_batch_seqs) return;
  const auto degree = [](const auto& stated) {
    return std::max<std::int64_t>(1, stated.value_or(1));
  };
  const std::int64_t ranks = degree(row.tp) * degree(row.pp) * degree(row.cp);
  if (*row.gpus % ranks != 0) return;  // refused where the plan is made
  row.global_batch_seqs = *row.gpus / ranks * *row.micro_batch_seqs;
  out.assumed.push_back(fmt::format("the global batch is not stated: {}, a micro-batch a replica",
                                    *row.global_batch_seqs));
}

}  // namespace

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
  take_batch(out);
  return out;
}

}  // namespace stepcast::validate
