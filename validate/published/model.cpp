#include "validate/published/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/toml_table.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::TomlValue;

/// Beyond this the shape is another model than the one that was counted (experts, a second stack).
constexpr double parameters_agree_within = 0.25;

void put(TomlValue& table, const char* key, std::int64_t value) {
  table.set(key, {value, table.where});
}

/// Multiply-add weights of the blocks and of one vocabulary matrix, in parameters.
double parameters(const PublishedRow& row, std::int64_t ffn_matrices, std::int64_t ffn,
                  std::int64_t vocab) {
  const auto h = static_cast<double>(*row.hidden), f = static_cast<double>(ffn);
  const auto kv_share =
      static_cast<double>(row.kv_heads.value_or(*row.heads)) / static_cast<double>(*row.heads);
  const double attention = h * h * (2.0 + 2.0 * kv_share);
  return static_cast<double>(*row.layers) *
             (attention + static_cast<double>(ffn_matrices) * h * f) +
         h * static_cast<double>(vocab);
}

/// 4 h; with a gate two thirds of it, up to the next multiple of 256 (arXiv 2302.13971 and Meta's
/// llama model.py: 11008 for 4096).
std::int64_t usual_ffn(std::int64_t hidden, bool gated) {
  constexpr std::int64_t multiple = 256;
  if (!gated) return 4 * hidden;
  return ceil_div(8 * hidden / 3, multiple) * multiple;
}

/// The number of the first part that is `word` and up to nine digits.
std::optional<std::int64_t> part_of(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at <= text.size(); at = std::min(text.find(';', at), text.size()) + 1) {
    std::string_view part = text.substr(at, text.find(';', at) - at);
    if (!part.starts_with(word)) continue;
    part.remove_prefix(word.size());
    const bool digits = part.find_first_not_of("0123456789") == part.npos;
    if (!part.empty() && part.size() <= 9 && digits) return sim::number_in<std::int64_t>(part);
  }
  return std::nullopt;
}

/// "q1536;kv512;nope128;rope64;v128"; q0 where queries come straight from the hidden tensor.
void put_latent(const std::string& text, TomlValue& table) {
  table.set("rope", {true, table.where});  // its keys have a rotary part
  for (const auto& [word, key] : {std::pair{"q", "latent_q_rank"},
                                  {"kv", "latent_kv_rank"},
                                  {"nope", "latent_nope"},
                                  {"rope", "latent_rope"},
                                  {"v", "latent_value"}})
    if (const auto number = part_of(text, word)) put(table, key, *number);
}

/// What the columns say of experts and of attention and layers beside them.
void put_experts(const PublishedRow& row, TomlValue& table) {
  if (!row.mla.empty()) put_latent(row.mla, table);
  if (row.mtp_layers) put(table, "mtp_layers", *row.mtp_layers);
  if (row.experts.value_or(0) == 0) return;
  put(table, "experts", *row.experts);
  put(table, "experts_per_token", row.topk.value_or(1));
  const std::int64_t ffn = row.moe_ffn.value_or(row.ffn_hidden.value_or(0));
  put(table, "expert_ffn", ffn);
  put(table, "shared_expert_ffn", row.shared_experts.value_or(0) * row.shared_width.value_or(ffn));
  put(table, "dense_layers", row.dense_layers.value_or(0));
}

const char* missing_size(const PublishedRow& row) {
  if (!row.layers || !row.hidden || !row.heads) return "the row does not state the model's shape";
  if (*row.layers < 1 || *row.hidden < 1 || *row.heads < 1) return "a model of size 0";
  if (!row.head_dim && row.mla.empty() && *row.hidden % *row.heads != 0)
    return "the heads do not divide the hidden size";
  return nullptr;
}

}  // namespace

PublishedModels::PublishedModels(const std::string& file) {
  const TomlValue document = sim::read_toml_file(file);
  sim::TableReader reader(document, "");
  const auto tables = [&](const char* list) {
    const TomlValue* value = reader.required(list, reader.value(list));
    if (value->array() == nullptr)
      throw InputError(value->where,
                       std::string("'") + list + "' must be written [[" + list + "]]");
    for (const TomlValue& item : *value->array())
      if (item.table() == nullptr)
        throw InputError(item.where, std::string("a [[") + list + "]] must be a table");
    return *value->array();
  };
  for (const TomlValue& item : tables("named")) read_named(item);
  for (const TomlValue& item : tables("family")) read_family(item);
  reader.finish();
  const bool all = !families_.empty() && families_.back().match == std::vector<std::string>{"*"};
  if (!all)
    throw InputError(document.where, "the last [[family]] must match every model",
                     "match = [\"*\"]");
}

void PublishedModels::read_named(const TomlValue& item) {
  sim::TableReader table(item, "named");
  const std::string pattern = table.required("match", table.text("match"));
  Named named{Pattern(pattern, table.where("match")), table.required("model", table.text("model"))};
  table.text("source");
  table.finish();
  named_.push_back(std::move(named));
}

void PublishedModels::read_family(const TomlValue& item) {
  sim::TableReader table(item, "family");
  Family family;
  family.members = sim::toml_table(item.where);
  family.name = table.required("name", table.text("name"));
  family.match = table.required("match", table.texts("match"));
  family.refused = table.text("refused").value_or("");
  family.named_alone = table.text("named_alone").value_or("");
  family.vocab = table.integer("vocab").value_or(0);
  family.dense = table.flag("dense").value_or(true);
  for (const sim::TomlEntry& entry : *item.table()) {
    const bool word = entry.key == "activation" && entry.value.text() != nullptr;
    if (word && *entry.value.text() == "from_parameters") {
      family.activation_from_parameters = true;
      continue;
    }
    constexpr std::array own = {"name",  "match",  "refused", "named_alone",
                                "vocab", "source", "dense"};
    if (std::ranges::find(own, entry.key) == own.end()) family.members.set(entry.key, entry.value);
  }
  families_.push_back(std::move(family));
}

std::string PublishedModels::catalogue_name(const PublishedRow& row) const {
  if (!family_of(row).refused.empty()) return "";
  const auto at = std::ranges::find_if(
      named_, [&](const Named& each) { return each.name.found_in(row.model); });
  return at == named_.end() ? "" : at->model;
}

const PublishedModels::Family& PublishedModels::family_of(const PublishedRow& row) const {
  const std::string name = lower(row.model);
  for (const Family& family : families_)
    for (const std::string& word : family.match)
      if (word == "*" || name.find(word) != std::string::npos) return family;
  throw BrokenPromise("the last family matches every model");
}

PublishedModel PublishedModels::of(const PublishedRow& row, std::int64_t vocab_multiple) const {
  const Family& family = family_of(row);
  PublishedModel out;
  if (!family.refused.empty()) return out.refused = family.refused, out;
  const std::int64_t multiple = std::max<std::int64_t>(1, vocab_multiple);
  if (!row.catalogue_model.empty()) {
    out.table = sim::toml_table(family.members.where);
    out.table.set("name", sim::toml_text(row.catalogue_model, out.table.where));
    put(out.table, "vocab", ceil_div(*row.vocab, multiple) * multiple);
    if (row.mtp_layers && stated_adapters(row).rank > 0) {
      put(out.table, "mtp_layers", 0);
      out.assumed.emplace_back("the module for further tokens left out beside adapters");
    }
    return out;
  }
  if (!family.named_alone.empty()) return out.refused = family.named_alone, out;
  if ((row.ep.value_or(1) > 1 || !family.dense) && row.experts.value_or(0) == 0)
    return out.refused = "mixture of experts, of which the row says no more", out;
  if (const char* why = missing_size(row)) return out.refused = why, out;

  std::int64_t vocab = row.vocab.value_or(0);
  if (vocab == 0) {
    vocab = family.vocab;
    out.assumed.push_back(fmt::format("vocabulary {} ({})", vocab, family.name));
  }
  const std::int64_t padded = ceil_div(vocab, multiple) * multiple;

  out.table = family.members;
  bool gated = true;
  if (const TomlValue* activation = family.members.find("activation"))
    gated = *activation->text() == "swiglu";
  std::int64_t ffn = row.ffn_hidden.value_or(0);
  if (ffn == 0) {
    ffn = usual_ffn(*row.hidden, gated);
    out.assumed.push_back(fmt::format("MLP of width {}", ffn));
  }
  const double stated = row.has_experts() ? 0.0 : row.params_b.value_or(0.0) * 1e9;
  if (family.activation_from_parameters) {
    gated = stated == 0.0 || std::abs(parameters(row, 3, ffn, 2 * vocab) - stated) <=
                                 std::abs(parameters(row, 2, ffn, vocab) - stated);
    out.assumed.push_back(
        fmt::format("{} blocks, by the count of parameters", gated ? "Llama" : "GPT"));
    if (!gated) {
      out.table.set("norm", sim::toml_text("layernorm", out.table.where));
      out.table.set("activation", sim::toml_text("gelu", out.table.where));
    }
  }
  if (stated > 0.0) {
    const double one = parameters(row, gated ? 3 : 2, ffn, vocab);
    const double two = parameters(row, gated ? 3 : 2, ffn, 2 * vocab);
    if (stated < (1 - parameters_agree_within) * one ||
        stated > (1 + parameters_agree_within) * two)
      return out.refused = "the shape does not give the parameters that the row states", out;
    // Only where the count is the source's own: half a unit of the last of three digits.
    constexpr double to_the_digit = 0.005;
    if (row.vocab && row.ffn_hidden && out.table.find("tied_embeddings") == nullptr &&
        std::abs(stated - one) < to_the_digit * one && two > 1.05 * one) {
      out.table.set("tied_embeddings", {true, out.table.where});
      out.assumed.emplace_back("tied embeddings, by the count of parameters");
    }
  }
  out.table.set("name", sim::toml_text(row.model, out.table.where));
  put(out.table, "layers", *row.layers);
  put(out.table, "hidden", *row.hidden);
  put(out.table, "heads", *row.heads);
  put(out.table, "kv_heads", row.kv_heads.value_or(*row.heads));
  if (row.head_dim) put(out.table, "head_dim", *row.head_dim);
  put(out.table, "ffn_hidden", ffn);
  put(out.table, "vocab", padded);
  put_experts(row, out.table);
  const TomlValue* rope = out.table.find("rope");
  const TomlValue* alibi = out.table.find("alibi");
  const bool rotary = rope == nullptr || std::get<bool>(rope->data);
  if (!rotary && (alibi == nullptr || !std::get<bool>(alibi->data))) {
    const TomlValue* positions = out.table.find("max_positions");
    const std::int64_t usual = positions == nullptr ? 0 : std::get<std::int64_t>(positions->data);
    put(out.table, "max_positions", std::max(usual, row.seq_len.value_or(0)));
  }
  return out;
}

}  // namespace stepcast::validate
