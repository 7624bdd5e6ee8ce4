#include "sim/inputs/vocabulary.hpp"

#include <fmt/format.h>

#include <optional>

#include "sim/import/model_index.hpp"

namespace stepcast::sim {
namespace {

using Count = std::optional<std::int64_t>;

Count count_in(const TomlValue& table, const char* key) {
  const TomlValue* found = table.find(key);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? std::nullopt : Count(*number);
}

/// Of a model that the catalogue or its index of ids has.
Count vocabulary_of(const std::string& model, const Catalogue& catalogue) {
  const std::string last = model.substr(model.rfind('/') + 1);
  if (last.empty() || is_file_name(last) || !catalogue.has("models", last)) return std::nullopt;
  const IndexedModel* indexed = catalogue.model_index().find(last);
  if (indexed != nullptr && !indexed->unlike.empty()) return std::nullopt;
  return count_in(catalogue.entry("models", last, "the tokenizer"), "vocab");
}

/// GPT-2's byte pairs; SentencePiece models of Llama 1 and 2; what TikTokenizer cuts its file to.
/// Others are files of any size.
Count vocabulary_of_kind(const std::string& kind) {
  constexpr std::int64_t gpt2 = 50'257, llama2 = 32'000;
  constexpr std::int64_t tiktoken = 131'072;  // DEFAULT_TIKTOKEN_MAX_VOCAB, at d98e8a6 (2026-08)
  if (kind == "TikTokenizer") return tiktoken;
  if (kind == "GPT2BPETokenizer") return gpt2;
  if (kind == "Llama2Tokenizer") return llama2;
  return std::nullopt;
}

/// "nemotron_2_256k.model" has 256,000 tokens; none: no such number in a SentencePiece model's
/// name.
Count vocabulary_in_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!name.ends_with(".model")) return std::nullopt;
  for (std::size_t k = name.find('k'); k != std::string::npos; k = name.find('k', k + 1)) {
    std::size_t first = k;
    while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
    const bool ends = name[k + 1] == '.' || name[k + 1] == '_' || name[k + 1] == '-';
    const auto thousands = integer_in(std::string_view(name).substr(first, k - first));
    constexpr std::int64_t least = 8, most = 1024;
    if (ends && thousands && *thousands >= least && *thousands <= most) return *thousands * 1000;
  }
  return std::nullopt;
}

bool is_alike(const TomlValue& entry, const Facts& facts) {
  for (const char* key : {"layers", "hidden", "heads", "ffn_hidden"}) {
    const Count said = facts.integer(std::string("model.") + key);
    if (said && count_in(entry, key) != said) return false;
  }
  return facts.integer("model.layers").has_value() && facts.integer("model.hidden").has_value();
}

/// Every key of the entry is a fact; learned positions are as many as are said.
bool is_same(const TomlValue& entry, const Facts& facts) {
  for (const TomlEntry& member : *entry.table()) {
    bool beside = false;
    for (const char* key : {"name", "source", "sources", "notes", "max_positions"})
      beside = beside || member.key == key;
    const TomlValue* fact = facts.find("model." + member.key);
    if (!beside && (fact == nullptr || write_toml_value(*fact) != write_toml_value(member.value)))
      return false;
  }
  return true;
}

}  // namespace

void add_model_name(Facts& facts, const Catalogue& catalogue, const std::string& source) {
  if (facts.find("model.name") != nullptr || facts.find("model.layers") == nullptr) return;
  for (const std::string& name : catalogue.names("models"))
    if (is_same(catalogue.entry("models", name, source), facts))
      return facts.set("model.name", toml_text(name, ""), source);
  for (const IndexedModel& model : catalogue.model_index().models())
    if (model.catalogue.empty() && model.unlike.empty() && is_same(model.entry, facts))
      return facts.set("model.name", toml_text(model.id, ""), source);
}

namespace {

/// _vocab_size_with_padding(): where tensor ranks would not have whole rows.
void pad(Facts& facts, const Settings& settings, const std::string& source) {
  const auto vocab = facts.integer("model.vocab"), tensor = facts.integer("plan.tensor");
  const std::int64_t each = settings.integer("make_vocab_size_divisible_by").value_or(128);
  constexpr std::int64_t most = 1'000'000;
  if (!vocab || !tensor || *tensor < 1 || *tensor > most || each < 1 || each > most ||
      *vocab % *tensor == 0)
    return;
  const std::int64_t step = each * *tensor, padded = (*vocab + step - 1) / step * step;
  facts.set("model.vocab", {padded, ""}, source);
  facts.notes.push_back(fmt::format("The vocabulary of {} is padded to {}.", *vocab, padded));
}

void say_vocabulary(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source) {
  if (facts.find("model.vocab") != nullptr) return;
  const auto take = [&](Count vocab, const std::string& why) {
    if (!vocab) return false;
    facts.set("model.vocab", {*vocab, ""}, source);
    facts.notes.push_back(fmt::format("The vocabulary is not said: {}, {}.", *vocab, why));
    return true;
  };
  const std::string* model = settings.find("tokenizer_model");
  if (model != nullptr && take(vocabulary_of(*model, catalogue), "that of " + *model)) return;
  if (model != nullptr && take(vocabulary_in_name(*model), "as " + *model + " is called")) return;
  const std::string* kind = settings.find("tokenizer_type");
  if (kind != nullptr && take(vocabulary_of_kind(*kind), "that of a " + *kind)) return;
  if (kind == nullptr && settings.has("merge_file") &&
      take(vocabulary_of_kind("GPT2BPETokenizer"), "that of GPT-2, whose merges it names"))
    return;
  for (const std::string& name : catalogue.names("models"))
    if (const TomlValue& entry = catalogue.entry("models", name, source); is_alike(entry, facts)) {
      take(count_in(entry, "vocab"), "that of " + name + ", which has such layers");
      return;
    }
}

}  // namespace

void add_vocabulary(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                    const std::string& source) {
  say_vocabulary(facts, settings, catalogue, source);
  pad(facts, settings, source);
}

}  // namespace stepcast::sim
