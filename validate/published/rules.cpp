#include "validate/published/rules.hpp"

#include <algorithm>
#include <charconv>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using Text = std::string PublishedRow::*;
constexpr std::pair<const char*, Text> columns[] = {
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

/// Patterns look at this much of a text: std::regex recurses with its length.
constexpr std::size_t longest_text = 1500;

std::string all_words(const PublishedRow& row) {
  std::string out;
  for (const auto& [name, member] : columns) out += row.*member + " | ";
  return out + row.url;
}

std::int64_t whole(const std::string& digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool is_month(const YearMonth& date) {
  return date.month >= 1 && date.month <= 12 && date.year >= 2016 && date.year <= 2035;
}

/// The first match of `regex` that is a date, its groups being year and month; a year of two
/// digits is of this century, a missing month is July.
std::optional<YearMonth> find_date(const std::string& text, const std::regex& regex) {
  const auto stop = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), longest_text));
  for (std::sregex_iterator it(text.begin(), stop, regex), end; it != end; ++it) {
    YearMonth date{whole((*it)[1]), it->size() > 2 ? whole((*it)[2]) : 7};
    if (date.year < 100) date.year += 2000;
    if (is_month(date)) return date;
  }
  return std::nullopt;
}

/// A container tag in a text that also says what else it is: "NGC 20.12", "NeMo 24.07".
const std::regex& tag() {
  static const std::regex regex(R"((?:^|[^0-9.v])([12]\d)\.(0[1-9]|1[0-2])(?![0-9]))");
  return regex;
}
const std::regex& arxiv() {
  static const std::regex regex(R"((?:^|[^0-9.])([12]\d)(0[1-9]|1[0-2])\.\d{4,5}(?![0-9]))");
  return regex;
}
const std::regex& year_and_month() {
  static const std::regex regex(R"((?:^|[^0-9])(20[12]\d)-(0[1-9]|1[0-2])(?![0-9]))");
  return regex;
}
const std::regex& year() {
  static const std::regex regex(R"((?:^|[^0-9.,])(20[12]\d)(?![0-9.,]*[0-9]))");
  return regex;
}

bool found_in(const std::string& text, const std::regex& regex) {
  return text.size() <= longest_text ? std::regex_search(text, regex)
                                     : std::regex_search(text.substr(0, longest_text), regex);
}

std::optional<YearMonth> release_in(const std::string& text, const std::vector<Release>& releases) {
  for (const Release& release : releases)
    if (found_in(text, release.regex)) return release.date;
  return std::nullopt;
}

}  // namespace

std::optional<YearMonth> stated_date(const PublishedRow& row,
                                     const std::vector<Release>& releases) {
  const std::vector<const std::regex*> precise{&year_and_month(), &tag(), &arxiv()};
  for (const std::string* text : {&row.framework, &row.source}) {
    if (const auto found = release_in(*text, releases)) return found;
    for (const std::regex* regex : precise)
      if (const auto found = find_date(*text, *regex)) return found;
  }
  if (const auto found = release_in(row.notes, releases)) return found;
  for (const std::string* text : {&row.framework, &row.source})
    if (const auto found = find_date(*text, year())) return found;
  if (const auto found = find_date(row.url, arxiv())) return found;
  return find_date(row.notes, arxiv());
}

std::regex pattern_of(const std::string& text, const std::string& where) {
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw InputError(where, "'" + text + "' is no pattern", error.what());
  }
}

YearMonth date_of(const std::string& text, const std::string& where) {
  static const std::regex form(R"((20\d\d)(?:-(\d\d))?)");
  std::smatch parts;
  YearMonth date;
  if (std::regex_match(text, parts, form))
    date = {whole(parts[1]), parts[2].matched ? whole(parts[2]) : 1};
  if (!is_month(date))
    throw InputError(where, "'" + text + "' is no date", "write it like \"2023-09\"");
  return date;
}

std::string column_of(const PublishedRow& row, const std::string& column) {
  if (column == "words") return all_words(row);
  // A run that names no framework may name it in its title: "MaxText on ...".
  if (column == "framework" && row.framework.empty()) return row.source;
  for (const auto& [name, member] : columns)
    if (column == name) return row.*member;
  throw BrokenPromise("a rule looks at a column that rows do not have");
}

Condition::Condition(const sim::TomlValue& table) {
  sim::TableReader reader(table, "when");
  std::vector<std::string> names{"words"};
  for (const auto& [name, member] : columns) names.emplace_back(name);
  for (const std::string& name : names)
    if (const auto text = reader.text(name))
      patterns_.push_back({name, pattern_of(*text, reader.where(name))});
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
  reader.finish();
}

bool Condition::always() const {
  return patterns_.empty() && gpus_.empty() && gpus_per_node_.empty() && !from_ && !until_ &&
         !least_params_b_ && !most_sequence_ && !least_gbps_ && !most_gbps_ && !several_nodes_ &&
         !model_parallel_ && !interleaved_ && !experts_;
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
  return std::all_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    return found_in(column_of(row, pattern.column), pattern.regex);
  });
}

}  // namespace stepcast::validate
