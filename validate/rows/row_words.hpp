// What the words of a published row say: its precision, what it recomputes, of what kind it is.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "validate/rows/row.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

/// Thrown for a row that no scenario can be made of.
struct RefusedRow {
  std::string why;
};

/// In small letters; and whether any of `words` stands in a text.
std::string lower(std::string text);
bool has_word(const std::string& text, std::initializer_list<const char*> words);
/// The number that follows `words`.
std::optional<double> number_after(const std::string& text, const std::string& words);

/// The recipe of low precision that a row states: a key's word; "fp8": it does not say which;
/// empty: 16 bits. Throws RefusedRow for what is not modelled.
std::string stated_recipe(const PublishedRow& row);

/// The training type, or none where the row does not say; throws RefusedRow for what is not
/// modelled.
std::optional<workloads::Dtype> stated_precision(const PublishedRow& row);

/// none: not stated, or in words that say nothing known.
std::optional<workloads::Recompute> stated_recompute(const PublishedRow& row);

/// Parts of a layer that a row names as recomputed, as plan.recompute_modules has them.
std::vector<std::string> stated_modules(const PublishedRow& row);

/// Whether the exchange between experts runs under another micro-batch's compute.
bool stated_expert_overlap(const PublishedRow& row);

// Columns of what_ran.csv. What no key expresses yet throws RefusedRow: one line per word changes
// that where a key comes.

/// A word of [software] loss_memory or loss_form; empty: not stated.
std::string stated_loss(const PublishedRow& row);

/// Shares of what lies on the host.
struct StatedOffload {
  double activations = 0, optimizer = 0, parameters = 0;
  bool overlap = false;  // copies and updates go on piece by piece
};
StatedOffload stated_offload(const PublishedRow& row);

/// Whether a compiler makes the kernels; none: not stated.
std::optional<bool> stated_compile(const PublishedRow& row);

/// Most rows of an expert over the mean; none: not stated.
std::optional<double> stated_capacity(const PublishedRow& row);

/// Adapters beside frozen weights (LoRA); rank 0: all is trained.
struct StatedAdapters {
  std::int64_t rank = 0;
  std::vector<std::string> targets{};
  bool four_bits = false;                            // frozen weights (QLoRA)
  bool states_rank = false, states_targets = false;  // else what is usual
};
StatedAdapters stated_adapters(const PublishedRow& row);
/// The MLP goes in tiles of as many tokens as the model is wide (DeepSpeed's TiledMLP).
bool stated_tiles(const PublishedRow& row);
/// A word of plan.optimizer; empty: not stated.
std::string stated_optimizer(const PublishedRow& row);
bool updates_in_backward(const PublishedRow& row);

/// How full the sequences are; empty where nothing is stated.
std::string told_of_packing(const PublishedRow& row);
/// Flags that have no key, a sentence each.
std::vector<std::string> told_of_flags(const PublishedRow& row);

/// "dense 16 bit", "dense mxfp8", "MoE fp8", ...
std::string kind_of(const PublishedRow& row);

}  // namespace stepcast::validate
