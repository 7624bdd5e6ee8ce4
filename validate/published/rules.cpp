#include "validate/published/rules.hpp"

#include <algorithm>
#include <charconv>

#include "engine/check.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using RowText = std::string PublishedRow::*;
constexpr std::pair<const char*, RowText> columns[] = {
    {"framework", &PublishedRow::framework},
    {"source", &PublishedRow::source},
    {"notes", &PublishedRow::notes},
    {"dispatcher", &PublishedRow::dispatcher},
    {"gpu", &PublishedRow::gpu},
    {"intra_node", &PublishedRow::intra_node},
    {"model", &PublishedRow::model},
    {"precision", &PublishedRow::precision},
    {"attention_kernel", &PublishedRow::attention_kernel},
    {"activation_checkpointing", &PublishedRow::activation_checkpointing},
    {"dp_mode", &PublishedRow::dp_mode},
};

/// Of what_ran.csv alone, behind the others.
constexpr std::pair<const char*, RowText> further_columns[] = {
    {"framework_version", &PublishedRow::framework_version},
    {"network", &PublishedRow::network},
    {"packing", &PublishedRow::packing},
    {"offload", &PublishedRow::offload},
    {"loss_kernel", &PublishedRow::loss_kernel},
    {"optimizer", &PublishedRow::optimizer},
    {"compile", &PublishedRow::compile},
    {"other_flags", &PublishedRow::other_flags},
};

/// Patterns and dates are looked for in this much of a text.
constexpr std::size_t longest_text = 1500;
std::string_view looked_at(std::string_view text) { return text.substr(0, longest_text); }

std::string all_words(const PublishedRow& row) {
  std::string out;
  for (const auto& [name, member] : columns) out += row.*member + " | ";
  out += row.url;
  if (row.columns == ColumnSet::what_ran)
    for (const auto& [name, member] : further_columns) out += " | " + row.*member;
  return out;
}

/// What a rule looks at. A run that names no framework may name it in its title: "MaxText on ...".
const std::string& text_of(const RowFacts& facts, RowText column) {
  if (column == nullptr) return facts.words;
  const std::string& text = facts.row.*column;
  return column == &PublishedRow::framework && text.empty() ? facts.row.source : text;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

/// The number that the first `digits` characters are.
std::optional<std::int64_t> whole(std::string_view text, std::size_t digits) {
  if (text.size() < digits || !std::ranges::all_of(text.substr(0, digits), digit))
    return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + digits, value);
  return value;
}

bool is_month(const YearMonth& date) {
  return date.month >= 1 && date.month <= 12 && date.year >= 2016 && date.year <= 2035;
}

bool ends_number(std::string_view rest) { return rest.empty() || !digit(rest[0]); }

/// Year and month in two digits each.
std::optional<YearMonth> short_date(std::string_view year, std::string_view month) {
  const auto y = whole(year, 2), m = whole(month, 2);
  if (!y || !m) return std::nullopt;
  return YearMonth{2000 + *y, *m};
}

/// A container tag in a text that also says what else it is: "NGC 20.12", "NeMo 24.07".
std::optional<YearMonth> tag_at(std::string_view text) {
  if (text.size() < 5 || text[2] != '.' || !ends_number(text.substr(5))) return std::nullopt;
  return short_date(text, text.substr(3));
}

/// An arXiv number: "2401.12345".
std::optional<YearMonth> arxiv_at(std::string_view text) {
  if (text.size() < 9 || text[4] != '.' || !whole(text.substr(5), 4)) return std::nullopt;
  const std::size_t end = whole(text.substr(5), 5) ? 10 : 9;
  if (!ends_number(text.substr(end))) return std::nullopt;
  return short_date(text, text.substr(2));
}

/// "2023-09"
std::optional<YearMonth> year_and_month_at(std::string_view text) {
  if (text.size() < 7 || text[4] != '-' || !ends_number(text.substr(7))) return std::nullopt;
  const auto year = whole(text, 4), month = whole(text.substr(5), 2);
  if (!year || !month) return std::nullopt;
  return YearMonth{*year, *month};
}

/// A year that is no part of a larger number, in July.
std::optional<YearMonth> year_at(std::string_view text) {
  const auto year = whole(text, 4);
  if (!year) return std::nullopt;
  const auto next = text.find_first_not_of(".,", 4);
  if (next != text.npos && digit(text[next])) return std::nullopt;
  return YearMonth{*year, 7};
}

/// How dates are written: the date that a text begins with, and what may not stand before one.
struct DateForm {
  std::optional<YearMonth> (*date_at)(std::string_view);
  std::string_view not_before;
};
constexpr DateForm tag{tag_at, "0123456789.v"}, arxiv{arxiv_at, "0123456789."},
    year_and_month{year_and_month_at, "0123456789"}, year{year_at, "0123456789.,"};

/// The first date of this form; years before 2010 and after 2029 are numbers.
std::optional<YearMonth> find_date(std::string_view text, const DateForm& form) {
  text = looked_at(text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && form.not_before.find(text[at - 1]) != text.npos) continue;
    const auto date = form.date_at(text.substr(at));
    if (date && is_month(*date) && date->year < 2030) return date;
  }
  return std::nullopt;
}

std::optional<YearMonth> release_in(const std::string& text, const std::vector<Release>& releases) {
  for (const Release& release : releases)
    if (release.words.found_in(looked_at(text))) return release.date;
  return std::nullopt;
}

}  // namespace

std::optional<YearMonth> stated_date(const PublishedRow& row,
                                     const std::vector<Release>& releases) {
  if (const auto found = release_in(row.framework_version, releases)) return found;
  if (const auto found = year_and_month_at(row.date)) return found;
  if (const auto found = year_at(row.date)) return found;
  for (const std::string* text : {&row.framework, &row.source}) {
    if (const auto found = release_in(*text, releases)) return found;
    for (const DateForm& precise : {year_and_month, tag, arxiv})
      if (const auto found = find_date(*text, precise)) return found;
  }
  if (const auto found = release_in(row.notes, releases)) return found;
  for (const std::string* text : {&row.framework, &row.source})
    if (const auto found = find_date(*text, year)) return found;
  if (const auto found = find_date(row.url, arxiv)) return found;
  return find_date(row.notes, arxiv);
}

YearMonth date_of(const std::string& text, const std::string& where) {
  YearMonth date;
  if (text.size() == 4) date = {whole(text, 4).value_or(0), 1};
  if (text.size() == 7) date = year_and_month_at(text).value_or(date);
  if (!is_month(date))
    throw InputError(where, "'" + text + "' is no date", "write it like \"2023-09\"");
  return date;
}

RowFacts::RowFacts(const PublishedRow& of, YearMonth when, std::string on)
    : row(of), date(when), gpu(std::move(on)), words(all_words(of)) {}

Condition::Condition(const sim::TomlValue& table) {
  sim::TableReader reader(table, "when");
  const auto demand = [&](const char* name, RowText column) {
    if (const auto text = reader.text(name))
      demands_.push_back({column, Pattern(*text, reader.where(name))});
  };
  demand("words", nullptr);
  for (const auto& [name, column] : columns) demand(name, column);
  for (const auto& [name, column] : further_columns) demand(name, column);
  gpus_ = reader.texts("catalogue_gpu").value_or(gpus_);
  if (const auto* counts = reader.value("gpus_per_node")) {
    if (counts->array() == nullptr) reader.fail("gpus_per_node", "must be an array of integers");
    for (const auto& item : *counts->array()) {
      const auto* count = std::get_if<std::int64_t>(&item.data);
      if (count == nullptr) reader.fail("gpus_per_node", "must be an array of integers");
      gpus_per_node_.push_back(*count);
    }
  }
  if (const auto text = reader.text("from")) from_ = date_of(*text, reader.where("from"));
  if (const auto text = reader.text("until")) until_ = date_of(*text, reader.where("until"));
  least_params_b_ = reader.number("least_params_b");
  most_sequence_ = reader.number("most_sequence");
  least_gbps_ = reader.number("least_gbps", sim::Range::not_negative);
  most_gbps_ = reader.number("most_gbps");
  several_nodes_ = reader.flag("several_nodes");
  model_parallel_ = reader.flag("model_parallel");
  interleaved_ = reader.flag("interleaved");
  experts_ = reader.flag("experts");
  adapters_ = reader.flag("adapters");
  compiled_ = reader.flag("compiled");
  expert_degree_ = reader.flag("expert_degree");
  reader.finish();
}

bool Condition::always() const {
  return demands_.empty() && gpus_.empty() && gpus_per_node_.empty() && !from_ && !until_ &&
         !least_params_b_ && !most_sequence_ && !least_gbps_ && !most_gbps_ && !several_nodes_ &&
         !model_parallel_ && !interleaved_ && !experts_ && !adapters_ && !compiled_ &&
         !expert_degree_;
}

bool Condition::holds(const RowFacts& facts) const {
  const PublishedRow& row = facts.row;
  const auto among = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  if (from_ && facts.date < *from_) return false;
  if (until_ && facts.date >= *until_) return false;
  if (!among(gpus_, facts.gpu)) return false;
  if (!among(gpus_per_node_, row.gpus_per_node.value_or(0))) return false;
  if (least_params_b_ && !(row.params_b && *row.params_b >= *least_params_b_)) return false;
  if (most_sequence_ && !(row.seq_len && static_cast<double>(*row.seq_len) <= *most_sequence_))
    return false;
  const auto gbps = row.inter_node_gbps_per_node;
  if (least_gbps_ && !(gbps && *gbps >= *least_gbps_)) return false;
  if (most_gbps_ && !(gbps && *gbps <= *most_gbps_)) return false;
  const auto agrees = [](const std::optional<bool>& wanted, bool is) {
    return !wanted || *wanted == is;
  };
  const std::int64_t stages = row.pp.value_or(1);
  if (!agrees(several_nodes_, row.gpus.value_or(1) > row.gpus_per_node.value_or(8))) return false;
  if (!agrees(model_parallel_, row.tp.value_or(1) > 1 || stages > 1)) return false;
  if (!agrees(interleaved_, stages > 1 && row.virtual_pp.value_or(1) > 1)) return false;
  if (!agrees(experts_, row.has_experts())) return false;
  if (!agrees(adapters_, stated_adapters(row).rank > 0)) return false;
  if (!agrees(expert_degree_, row.ep.has_value())) return false;
  if (compiled_ && stated_compile(row) != compiled_) return false;
  return std::ranges::all_of(demands_, [&](const Demand& demand) {
    return demand.pattern.found_in(looked_at(text_of(facts, demand.column)));
  });
}

}  // namespace stepcast::validate
