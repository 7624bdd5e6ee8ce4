#include "validate/pasted/said.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/inputs/formats.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "sim/tables/gpu_names.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// Signs and words of counting in other scripts, as the words that they stand for here.
struct Spelling {
  std::string_view text, word;
};
constexpr Spelling spellings[] = {
    {"×", " x "},      {"*", " x "},      {"＊", " x "},     {"卡", " cards "},
    {"张", " cards "}, {"块", " cards "}, {"台", " nodes "}, {"机", " nodes "},
    {"两", " 2 "},     {"双", " 2 "},     {"共", " total "},
};
constexpr Spelling number_words[] = {
    {"two", "2"}, {"four", "4"}, {"eight", "8"}, {"sixteen", "16"}};

/// Words of letters and digits; "8xH100" as "8", "x", "h100", "8GPU" as "8", "gpu".
std::vector<std::string> words_of(std::string_view line) {
  std::string text(line);
  for (const auto& [from, to] : spellings)
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  std::vector<std::string> out;
  std::string word;
  const auto end = [&] {
    const std::size_t digits = word.find_first_not_of("0123456789");
    const std::string_view behind =
        digits == std::string::npos ? std::string_view() : std::string_view(word).substr(digits);
    if (digits > 0 && (behind.starts_with("x") || behind.starts_with("gpu"))) {
      out.push_back(word.substr(0, digits));
      if (behind.starts_with("x")) out.emplace_back("x");
      word.erase(0, digits + (behind.starts_with("x") ? 1 : 0));
    }
    for (const auto& [name, digits_of] : number_words)
      if (word == name) word = digits_of;
    if (!word.empty()) out.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      end();
  }
  end();
  return out;
}

std::optional<std::int64_t> count_in(std::string_view word) {
  const auto number = integer_of(word);
  return number && *number > 0 && *number <= 1'000'000 ? number : std::nullopt;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> all) {
  return std::ranges::find(all, word) != all.end();
}
bool is_cards(std::string_view word) {
  return is_one_of(word,
                   {"cards", "card", "gpus", "gpu", "x", "nvidia", "tesla", "graphics", "of"});
}

/// "80gb", "80g", and "80" before "gb".
std::optional<std::string> memory_at(const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size()) return std::nullopt;
  std::string_view word = words[at];
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0) return std::nullopt;
  const std::string_view number = word.substr(0, digits);
  const std::string_view unit = digits == std::string_view::npos
                                    ? at + 1 < words.size() ? words[at + 1] : std::string_view()
                                    : word.substr(digits);
  if (!is_one_of(unit, {"g", "gb", "gib"})) return std::nullopt;
  return std::string(number) + "gb";
}

/// A GPU as a line names it, and how many of them.
struct Named {
  std::string gpu;     // CUDA's name, where the line has that
  std::string chip;    // "a100"
  std::string form;    // "pcie", "nvl"; empty: not said
  std::string memory;  // "40gb"
  std::size_t line = 0;
  std::optional<std::int64_t> count;
};

class Prose {
 public:
  Prose(std::string_view text, const sim::Catalogue& catalogue) {
    for (const sim::GpuIdentity& one : catalogue.gpus().all()) add_chip(one.gpu.name);
    for (const auto& chip : {"3080", "a10", "a10g", "a30", "t4", "p40", "a5000"})
      unknown_.insert(chip);
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line(text.substr(at, end - at), ++number);
      at = end + 1;
    }
  }

  /// CUDA's name behind "GPU type:", else the GPU with a count, else the first; its form and memory
  /// from wherever they are said.
  std::optional<Named> gpu() const {
    if (typed_) return typed_;
    if (named_.empty()) return std::nullopt;
    const auto counted =
        std::ranges::find_if(named_, [](const Named& one) { return one.count.has_value(); });
    Named out = counted == named_.end() ? named_.front() : *counted;
    for (const Named& other : named_) {
      if (other.chip != out.chip) continue;
      if (out.form.empty()) out.form = other.form;
      if (out.memory.empty()) out.memory = other.memory;
    }
    return out;
  }
  bool of_several() const {
    std::set<std::string> chips;
    for (const Named& one : named_) chips.insert(one.chip);
    return !typed_ && chips.size() > 1;
  }
  std::optional<std::int64_t> ranks() const {
    if (total_) return total_;
    std::optional<std::int64_t> each;
    if (const auto one = gpu()) each = one->count;
    for (const Named& one : named_)
      if (!each && one.count) each = one.count;
    if (!each) each = cards_;
    if (!each && listed_ > 0) each = listed_;
    constexpr std::int64_t most_of_a_node = 16;
    if (each && nodes_ && *each <= most_of_a_node) return *each * *nodes_;
    return each;
  }

 private:
  void add_chip(std::string_view name) {
    constexpr std::string_view family = "rtx-";
    if (name.starts_with(family)) name.remove_prefix(family.size());
    const std::string chip(name.substr(0, name.find('-')));
    if (chip != "host" && chip != "pro") chips_.insert(chip);
  }

  void line(std::string_view text, std::size_t number) {
    for (const std::string_view mark : {"GPU type:", "GPU Type:", "GPU models and configuration:"})
      if (const std::size_t at = text.find(mark); at != std::string_view::npos && !typed_)
        if (const std::string_view name = sim::bare(text.substr(at + mark.size())); !name.empty())
          typed_ = Named{std::string(name), lower(name), "", "", number, {}};
    if (const std::size_t at = text.find("GPU number:"); at != std::string_view::npos)
      if (const auto count = leading_number(sim::bare(text.substr(at + 11))); count && *count >= 1)
        total_ = static_cast<std::int64_t>(*count);
    if (const std::size_t at = text.find("CUDA_VISIBLE_DEVICES="); at != std::string_view::npos)
      visible(text.substr(at + 21));
    if (text.starts_with("GPU ") && text.find(": NVIDIA") < 8) ++listed_;
    words(words_of(text), number);
  }

  void visible(std::string_view list) {
    list = list.substr(0, list.find_first_not_of("0123456789,\"'"));
    const auto commas = std::ranges::count(list, ',');
    if (!list.empty() && commas > 0 && !cards_) cards_ = commas + 1;
  }

  void words(const std::vector<std::string>& all, std::size_t number) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!chip_of(all[i]).empty()) chip(all, i, number);
      if (i == 0) continue;
      const auto count = count_in(all[i - 1]);
      if (!count) continue;
      if (is_one_of(all[i], {"nodes", "machines", "servers", "node"}) && !nodes_) nodes_ = count;
      if (is_one_of(all[i], {"gpus", "gpu", "cards"}) && !cards_ && *count > 1) cards_ = count;
      const bool total = i >= 2 && is_one_of(all[i - 2], {"total", "of"}) &&
                         (all[i - 2] == "total" || (i >= 3 && all[i - 3] == "total"));
      if (total && !total_ && *count > 1) total_ = count;
    }
  }

  void chip(const std::vector<std::string>& all, std::size_t at, std::size_t number) {
    Named out{"", chip_of(all[at]), "", "", number, {}};
    for (std::size_t behind = at + 1; behind < all.size() && behind < at + 4; ++behind) {
      if (is_one_of(all[behind], {"pcie", "nvl"})) out.form = all[behind];
      if (const auto said = memory_at(all, behind); said && out.memory.empty()) out.memory = *said;
    }
    if (const auto said = at > 0 ? memory_at(all, at - 1) : std::nullopt;
        said && out.memory.empty())
      out.memory = *said;
    out.count = count_before(all, at);
    if (!out.count && at + 2 < all.size() && all[at + 1] == "x") out.count = count_in(all[at + 2]);
    if (!out.count) out.count = count_behind(all, at);
    named_.push_back(std::move(out));
  }

  /// "a100" of "a100s"; empty: no GPU.
  std::string chip_of(const std::string& word) const {
    for (const std::string& one :
         {word, word.ends_with("s") ? word.substr(0, word.size() - 1) : word})
      if (chips_.contains(one) || unknown_.contains(one)) return one;
    return "";
  }

  /// "8 x h100", "8 cards h100", "8 nvidia h100", "8 80gb h100"
  static std::optional<std::int64_t> count_before(const std::vector<std::string>& all,
                                                  std::size_t at) {
    std::size_t i = at;
    while (i > 0 && (is_cards(all[i - 1]) || memory_at(all, i - 1).has_value())) --i;
    return i > 0 ? count_in(all[i - 1]) : std::nullopt;
  }
  /// "a800 sxm4 80gb total 8 cards"
  static std::optional<std::int64_t> count_behind(const std::vector<std::string>& all,
                                                  std::size_t at) {
    constexpr std::size_t near = 7;
    for (std::size_t i = at + 1; i + 1 < all.size() && i < at + near; ++i)
      if (is_one_of(all[i + 1], {"cards", "gpus"}) || (all[i] == "x" && !memory_at(all, i + 1)))
        if (const auto count = count_in(all[i] == "x" ? all[i + 1] : all[i])) return count;
    return std::nullopt;
  }

  std::set<std::string> chips_, unknown_;
  std::vector<Named> named_;
  std::optional<Named> typed_;
  std::optional<std::int64_t> nodes_, cards_, total_;
  std::int64_t listed_ = 0;  // lines "GPU 3: NVIDIA H100 80GB HBM3"
};

bool is_known_model(const sim::Facts& facts, const sim::Catalogue& catalogue) {
  const sim::TomlValue* name = facts.find("model.name");
  if (facts.find("model.layers") != nullptr) return true;
  return name != nullptr && name->text() != nullptr && catalogue.has("models", *name->text());
}

/// "qwen2.5-7b" of "Qwen2.5-7B-Instruct": a word with a size in it.
bool has_size(std::string_view word) {
  for (std::size_t i = 0; i + 1 < word.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(word[i])) != 0 &&
        (word[i + 1] == 'b' || word[i + 1] == 'B'))
      return true;
  return false;
}

/// The model that the prose names, if it is one alone: by the catalogue's name.
std::string model_in(std::string_view prose, const sim::Catalogue& catalogue) {
  std::string text(prose);
  for (char& c : text)
    if (std::string_view("`'\"(),:;/[]").find(c) != std::string_view::npos || (c & 0x80) != 0)
      c = ' ';
  std::set<std::string> tried, found;
  for (std::string_view word : sim::words_of_text(text)) {
    while (word.ends_with(".")) word.remove_suffix(1);
    constexpr std::size_t longest = 60, most = 200;
    if (!has_size(word) || word.size() > longest || tried.size() > most) continue;
    if (!tried.insert(std::string(word)).second) continue;
    std::string name = lower(sim::model_in_file_name(std::string(word) + ".txt", catalogue));
    if (name.empty()) continue;
    std::ranges::replace(name, '_', '-');
    sim::Facts facts;
    sim::set_model_name(facts, name, catalogue, "");
    if (const sim::TomlValue* said = facts.find("model.name")) found.insert(*said->text());
  }
  return found.size() == 1 ? *found.begin() : std::string();
}

/// As the catalogue has it: of those of the chip the one with that memory, then in that form. A
/// chip that it lacks stays as it is called.
std::string catalogue_name(const Named& named, const sim::Catalogue& catalogue) {
  if (!named.gpu.empty()) return named.gpu;
  std::string plain = named.chip;
  for (const std::string* part : {&named.form, &named.memory})
    if (!part->empty()) plain += "-" + *part;
  const sim::GpuIdentity* best = catalogue.gpus().nearest(plain);
  if (best == nullptr) return plain;
  const auto has_memory = [&](const sim::GpuIdentity& one) {
    return named.memory.empty() || one.gpu.name.ends_with("-" + named.memory);
  };
  if (!has_memory(*best))
    for (const sim::GpuIdentity& one : catalogue.gpus().all())
      if (sim::fitness(named.chip, one.gpu.name) > 0 && has_memory(one)) return one.gpu.name;
  return best->gpu.name;
}

}  // namespace

void add_said(std::string_view prose, const std::string& path, const sim::Catalogue& catalogue,
              sim::Facts& facts) {
  const Prose said(prose, catalogue);
  const std::optional<Named> gpu = said.gpu();
  if (gpu && facts.gpu.empty() && facts.find("cluster.node") == nullptr) {
    facts.gpu = catalogue_name(*gpu, catalogue);
    facts.gpu_source = fmt::format("{}:{}", path, gpu->line);
    facts.notes.push_back(fmt::format("{}: the GPU is taken to be {}{}.", facts.gpu_source,
                                      printable(facts.gpu),
                                      said.of_several() ? ", others are named as well" : ""));
  }
  if (const auto ranks = said.ranks(); ranks && !facts.ranks) {
    facts.ranks = ranks;
    facts.ranks_source = path;
    facts.notes.push_back(
        fmt::format("{}: read as {} GPU{}.", path, *ranks, *ranks == 1 ? "" : "s"));
  }
  if (is_known_model(facts, catalogue)) return;
  if (const std::string model = model_in(prose, catalogue); !model.empty()) {
    facts.set("model.name", sim::toml_text(model, ""), path);
    facts.notes.push_back(fmt::format("{}: the model is taken to be {}.", path, model));
  }
}

}  // namespace stepcast::validate
