// The words of what_ran.csv that training.csv has no column for; row_words.hpp.
#include <algorithm>
#include <array>

#include "sim/files/numbers.hpp"
#include "validate/rows/pattern.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

/// A word of a column: what it is taken for, or why its rows are refused. The first that is found
/// decides.
struct Word {
  const char* word;
  const char* taken_for;
  const char* refused;
};

constexpr Word loss_words[] = {
    {"liger", "fused_linear", nullptr},
    {"256 tokens", "checkpointed", nullptr},
    {"chunk", "chunks", nullptr},
    {"te fused", "gradient", nullptr},
    // The model's fp32 logits, shifted, become their gradient in that copy's place.
    {"fused kernel", "shifted", nullptr},
    {"unfused", "kernels", nullptr},
    {"hf ce", "kernels", nullptr},
};

constexpr Word optimizer_words[] = {
    {"muon", "muon", nullptr}, {"8-bit", "adam_8bit", nullptr}, {"adafactor", "adafactor", nullptr},
    {"sgd", "sgd", nullptr},   {"adam", "adam", nullptr},
};

/// Of other_flags. A word that is neither here nor read elsewhere (row_keys.cpp) is told.
constexpr Word flag_words[] = {
    {"tiled mlp", "mlp_tiles", nullptr},
    {"optimizer in backward", "optimizer_in_backward", nullptr},
    {"4-bit base", "lora_base", nullptr},
    {"adapters", "lora_targets", nullptr},
    {"all-to-all", "dispatcher", nullptr},
    {"deepep", "dispatcher", nullptr},
    {"hybridep", "dispatcher", nullptr},
    {"ulysses", "context_exchange", nullptr},
    {"cp a2a", "context_exchange", nullptr},
    {"cp p2p", "context_exchange", nullptr},
    {"no sequence parallelism", "context", nullptr},
    {"cuda graphs", "cuda_graphs", nullptr},
    {"capacity", "capacity_factor", nullptr},
    {"natural routing", "routing", nullptr},
    {"forced balance", "routing", nullptr},
    {"delayed wgrad", "delay_wgrad", nullptr},
    {"fused rmsnorm", "fused_norm", nullptr},
    {"without expandable segments", "the usual allocator", nullptr},
    {"single-device full recipe", "the recipe's optimizer", nullptr},
    {"fsdp ", "the plan's degrees", nullptr},
    {"sft", "full sequences", nullptr},
    {"deterministic", "deterministic", nullptr},
};

const Word* found_in(const std::string& text, std::span<const Word> words) {
  const auto at = std::ranges::find_if(
      words, [&](const Word& word) { return text.find(word.word) != std::string::npos; });
  return at == words.end() ? nullptr : &*at;
}

/// The word that a cell has; throws RefusedRow for one that no key expresses, or nobody knows.
std::string taken_for(const char* column, const std::string& cell, std::span<const Word> words) {
  if (cell.empty()) return "";
  const Word* word = found_in(lower(cell), words);
  if (word == nullptr)
    throw RefusedRow{std::string("the ") + column + " '" + cell + "' is not known"};
  if (word->refused != nullptr) throw RefusedRow{word->refused};
  return word->taken_for;
}

/// The number that stands before `unit`.
std::optional<double> number_before(const std::string& text, const std::string& unit) {
  const auto end = text.find(unit);
  if (end == std::string::npos) return std::nullopt;
  auto begin = end;
  while (begin > 0 && std::string_view("0123456789.").find(text[begin - 1]) != std::string::npos)
    --begin;
  return sim::number_in<double>(std::string_view(text).substr(begin, end - begin));
}

}  // namespace

std::string stated_loss(const PublishedRow& row) {
  return taken_for("loss kernel", row.loss_kernel, loss_words);
}

StatedOffload stated_offload(const PublishedRow& row) {
  StatedOffload out;
  const std::string text = lower(row.offload);
  if (text.empty() || text == "none") return out;
  if (has_word(text, {"param"})) out.parameters = 1.0;
  if (has_word(text, {"optimizer"}))
    out.optimizer = number_before(text, " %").value_or(100.0) / 100.0;
  if (has_word(text, {"activations"})) {
    const auto layers = number_before(text, " layers");
    const double all = static_cast<double>(row.layers.value_or(0));
    if (layers && !(all > 0)) throw RefusedRow{"layers are offloaded, of how many is not stated"};
    out.activations = layers ? std::min(1.0, *layers / all) : 1.0;
  }
  // A checkpointed layer keeps its input, all of which goes.
  if (has_word(text, {"checkpointed activations"})) out.activations = 1.0;
  out.overlap = has_word(text, {"overlapped copies"});
  if (out.optimizer == 0.0 && out.activations == 0.0 && !has_word(text, {"0 %"}))
    throw RefusedRow{"the offload '" + row.offload + "' is not known"};
  return out;
}

std::optional<bool> stated_compile(const PublishedRow& row) {
  const std::string text = lower(row.compile);
  if (text.empty()) return std::nullopt;
  // torchtitan's graph trainer replays a traced graph; its kernels are eager ones unless Inductor
  // is asked for (torchtitan experiments/graph_trainer, recalled, 2026).
  if (text == "no" || text == "graph trainer") return false;
  if (text == "yes" || has_word(text, {"inductor"})) return true;
  throw RefusedRow{"the compiler '" + row.compile + "' is not known"};
}

std::optional<double> stated_capacity(const PublishedRow& row) {
  return number_after(lower(row.other_flags), "capacity_factor ");
}

std::optional<double> number_after(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(at + words.size());
  return sim::number_in<double>(rest.substr(0, rest.find_first_of(" ;")));
}

StatedAdapters stated_adapters(const PublishedRow& row) {
  StatedAdapters out;
  const std::string text = lower(row.lora_rank), flags = lower(row.other_flags);
  if (text.empty()) return out;
  const auto rank = sim::number_in<std::int64_t>(text);
  out.rank = rank.value_or(8);
  out.states_rank = rank.has_value();
  out.states_targets = has_word(flags, {"q,k,v,o adapters"});
  out.targets = {"q", "k", "v", "o"};
  // Experts' products have no adapters here.
  if (!out.states_targets && !row.has_experts())
    for (const char* word : {"gate", "up", "down"}) out.targets.emplace_back(word);
  out.four_bits = has_word(flags, {"4-bit base"});
  return out;
}

bool stated_tiles(const PublishedRow& row) {
  return has_word(lower(row.other_flags), {"tiled mlp"});
}

std::string stated_optimizer(const PublishedRow& row) {
  return taken_for("optimizer", row.optimizer, optimizer_words);
}

bool updates_in_backward(const PublishedRow& row) {
  return has_word(lower(row.other_flags), {"optimizer in backward"});
}

std::string told_of_packing(const PublishedRow& row) {
  const std::string text = lower(row.packing);
  if (text.empty()) return "";
  if (text.starts_with("unpacked") || text.starts_with("pad"))
    throw RefusedRow{"how many tokens a sequence has is not stated"};
  if (has_word(text, {"packed"}))
    return "packed: sequences are full, attention goes over all of it";
  throw RefusedRow{"the packing '" + row.packing + "' is not known"};
}

std::vector<std::string> told_of_flags(const PublishedRow& row) {
  std::vector<std::string> told;
  const std::string& flags = row.other_flags;
  for (std::size_t at = 0; at < flags.size();) {
    const std::size_t end = std::min(flags.find(';', at), flags.size());
    std::string flag = flags.substr(at, end - at);
    flag.erase(0, flag.find_first_not_of(' '));
    at = end + 1;
    const Word* word = found_in(lower(flag), flag_words);
    if (word != nullptr && word->refused != nullptr) throw RefusedRow{word->refused};
    if (word == nullptr) told.push_back("'" + flag + "' is left out: no key expresses it");
  }
  return told;
}

}  // namespace stepcast::validate
