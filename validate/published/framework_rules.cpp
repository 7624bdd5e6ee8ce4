#include "validate/published/framework_rules.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::TableReader;
using sim::TomlValue;

std::string word_of(TableReader& rule, const std::string& key, std::optional<std::string> word,
                    const std::vector<std::string>& known) {
  if (word && std::find(known.begin(), known.end(), *word) == known.end())
    rule.fail(key, "'" + *word + "' is no " + key, sim::suggestion(*word, known));
  return *word;
}

template <class E, std::size_t n>
std::vector<std::string> words_of(const sim::Names<E, n>& names, const std::string& further) {
  std::vector<std::string> out;
  for (const auto& [name, meaning] : names) out.emplace_back(name);
  if (!further.empty()) out.push_back(further);
  return out;
}

std::optional<std::string> choice_of(TableReader& rule, const std::string& key,
                                     const std::vector<std::string>& known) {
  auto word = rule.text(key);
  if (word) word_of(rule, key, word, known);
  return word;
}

FrameworkValues read_values(TableReader& rule) {
  FrameworkValues values;
  values.reason = rule.text("reason").value_or("");
  values.refused = rule.text("refused");
  if (const TomlValue* software = rule.table("software")) values.software = *software;
  if (const TomlValue* plan = rule.table("plan")) values.plan = *plan;
  if (const TomlValue* precision = rule.table("precision")) values.precision = *precision;
  if (const TomlValue* adapters = rule.table("adapters")) values.adapters = *adapters;
  values.packaging = choice_of(rule, "packaging", {"wheel", "container"});
  values.gradient_reduce =
      choice_of(rule, "gradient_reduce", words_of(sim::dtype_names, "compute"));
  values.sequence_parallel = rule.flag("sequence_parallel");
  values.recompute = choice_of(rule, "recompute", words_of(sim::recompute_names, "least"));
  values.schedule = rule.choice("schedule", sim::schedule_names);
  values.micro_batch = rule.integer("micro_batch");
  values.optimizer = choice_of(rule, "optimizer", {"adamw", "lamb", "sgd", "adafactor", "lion"});
  values.dropout = rule.flag("dropout");
  values.removes_padding = rule.flag("removes_padding");
  values.interleaves = rule.flag("interleaves");
  values.later_recipe = rule.flag("later_recipe");
  values.compiles = rule.flag("compiles");
  values.selective_every = rule.integer("selective_every");
  values.vocab_multiple = rule.integer("vocab_multiple");
  return values;
}

/// `known`: the rules before, which this one may be `like`.
FrameworkRule read_rule(const TomlValue& table, const char* list,
                        const std::vector<FrameworkRule>& known) {
  TableReader reader(table, list);
  FrameworkRule rule;
  rule.name = reader.required("name", reader.text("name"));
  if (const TomlValue* when = reader.table("when")) rule.when = Condition(*when);
  if (const auto like = reader.text("like")) {
    const auto base = std::find_if(known.begin(), known.end(),
                                   [&](const FrameworkRule& other) { return other.name == *like; });
    if (base == known.end()) reader.fail("like", "there is no rule '" + *like + "' above");
    rule.values = base->values;
  }
  rule.values.overlay(read_values(reader));
  reader.finish();
  return rule;
}

std::vector<FrameworkRule> read_rules(TableReader& document, const char* list) {
  std::vector<FrameworkRule> rules;
  for (const TomlValue* table : tables_of(document, list)) {
    rules.push_back(read_rule(*table, list, rules));
    for (std::size_t i = 0; i + 1 < rules.size(); ++i)
      if (rules[i].name == rules.back().name)
        throw InputError(table->where, "rule '" + rules.back().name + "' stands twice");
  }
  return rules;
}

DataRule read_data_rule(const TomlValue& table) {
  TableReader reader(table, "data_parallel");
  DataRule rule;
  if (const TomlValue* when = reader.table("when")) rule.when = Condition(*when);
  rule.data = reader.required("data", reader.choice("data", sim::data_parallel_names));
  rule.shards_in_node = reader.flag("shards_in_node").value_or(false);
  reader.text("reason");
  reader.finish();
  return rule;
}

EarliestDate read_earliest(const TomlValue& table) {
  TableReader reader(table, "earliest");
  const Condition when(*reader.required("when", reader.table("when")));
  const std::string date = reader.required("date", reader.text("date"));
  reader.finish();
  return {when, date_of(date, reader.where("date"))};
}

Release read_release(const TomlValue& table) {
  TableReader reader(table, "release");
  const std::string text = reader.required("words", reader.text("words"));
  const std::string date = reader.required("date", reader.text("date"));
  reader.finish();
  return {Pattern(text, reader.where("words")), date_of(date, reader.where("date"))};
}

NcclOfDate read_nccl(const TomlValue& table) {
  TableReader reader(table, "nccl");
  NcclOfDate entry;
  entry.packaging =
      word_of(reader, "packaging", reader.required("packaging", reader.text("packaging")),
              {"wheel", "container"});
  entry.from = date_of(reader.required("from", reader.text("from")), reader.where("from"));
  entry.version = reader.required("version", reader.text("version"));
  reader.text("reason");
  reader.finish();
  return entry;
}

std::optional<workloads::Recompute> recompute_of(const std::optional<std::string>& word) {
  for (const auto& [name, meaning] : sim::recompute_names)
    if (word && *word == name) return meaning;
  return std::nullopt;
}

/// "compute": the 16-bit type of the row, which on a V100 can only be fp16.
workloads::Dtype gradient_dtype(const std::string& word, const PublishedRow& row) {
  for (const auto& [name, meaning] : sim::dtype_names)
    if (word == name) return meaning;
  const std::string stated = lower(row.precision.substr(0, 100));
  const bool half =
      has_word(stated + " " + lower(row.gpu.substr(0, 100)), {"fp16", "float16", "half", "v100"});
  const bool brain = has_word(stated, {"bf16", "bfloat16"});
  return half && !brain ? workloads::Dtype::fp16 : workloads::Dtype::bf16;
}

void take(TomlValue& mine, const TomlValue& other) {
  for (const sim::TomlEntry& entry : *other.table()) mine.set(entry.key, entry.value);
}
template <class T>
void take(std::optional<T>& mine, const std::optional<T>& other) {
  if (other) mine = other;
}

FrameworkDefaults defaults_of(const FrameworkValues& values, const PublishedRow& row) {
  FrameworkDefaults out;
  out.refused = values.refused.value_or("");
  out.reason = values.reason;
  out.software = values.software;
  out.plan = values.plan;
  out.precision = values.precision;
  out.adapters = values.adapters;
  out.gradient_reduce = gradient_dtype(values.gradient_reduce.value_or("compute"), row);
  out.sequence_parallel = values.sequence_parallel.value_or(false);
  out.recompute = recompute_of(values.recompute);
  out.schedule = values.schedule.value_or(workloads::Schedule::one_f_one_b);
  out.micro_batch = values.micro_batch;
  out.optimizer = values.optimizer.value_or("adamw");
  out.dropout = values.dropout.value_or(false);
  out.removes_padding = values.removes_padding.value_or(false);
  out.interleaves = values.interleaves.value_or(false);
  out.later_recipe = values.later_recipe.value_or(false);
  out.compiles = values.compiles.value_or(false);
  out.selective_every = values.selective_every.value_or(0);
  out.vocab_multiple = values.vocab_multiple.value_or(1);
  return out;
}

}  // namespace

void FrameworkValues::overlay(const FrameworkValues& other) {
  if (!other.reason.empty()) reason += (reason.empty() ? "" : "; ") + other.reason;
  take(refused, other.refused);
  take(software, other.software);
  take(plan, other.plan);
  take(precision, other.precision);
  take(adapters, other.adapters);
  take(packaging, other.packaging);
  take(gradient_reduce, other.gradient_reduce);
  take(sequence_parallel, other.sequence_parallel);
  take(recompute, other.recompute);
  take(schedule, other.schedule);
  take(micro_batch, other.micro_batch);
  take(optimizer, other.optimizer);
  take(dropout, other.dropout);
  take(removes_padding, other.removes_padding);
  take(interleaves, other.interleaves);
  take(later_recipe, other.later_recipe);
  take(compiles, other.compiles);
  take(selective_every, other.selective_every);
  take(vocab_multiple, other.vocab_multiple);
}

std::vector<const TomlValue*> tables_of(TableReader& document, const std::string& name) {
  const TomlValue& list = *document.required(name, document.value(name));
  std::vector<const TomlValue*> out;
  if (list.array() == nullptr)
    document.fail(name, "'" + name + "' must be tables [[" + name + "]]");
  for (const TomlValue& item : *list.array()) {
    if (item.table() == nullptr)
      document.fail(name, "'" + name + "' must be tables [[" + name + "]]");
    out.push_back(&item);
  }
  return out;
}

FrameworkFile read_framework_file(const std::string& path) {
  const TomlValue root = sim::read_toml_file(path);
  TableReader document(root, "");
  FrameworkFile file;
  for (const TomlValue* table : tables_of(document, "release"))
    file.releases.push_back(read_release(*table));
  for (const TomlValue* table : tables_of(document, "earliest"))
    file.earliest.push_back(read_earliest(*table));
  for (const TomlValue* table : tables_of(document, "nccl")) file.nccl.push_back(read_nccl(*table));
  for (const TomlValue* table : tables_of(document, "data_parallel"))
    file.data.push_back(read_data_rule(*table));
  file.frameworks = read_rules(document, "framework");
  file.details = read_rules(document, "detail");
  document.finish();
  if (!file.frameworks.back().when.always())
    document.fail("framework", "no rule is left for other frameworks",
                  "end the list with a rule without 'when'");
  return file;
}

FrameworkDefaults FrameworkFile::of(const PublishedRow& row, const std::string& gpu,
                                    YearMonth usual) const {
  const auto stated = stated_date(row, releases);
  YearMonth date = stated.value_or(usual);
  RowFacts facts(row, usual, gpu);
  if (!stated)
    for (const EarliestDate& each : earliest)
      if (each.when.holds(facts)) date = std::max(date, each.date);
  facts.date = date;
  const auto rule = std::find_if(frameworks.begin(), frameworks.end(),
                                 [&](const FrameworkRule& each) { return each.when.holds(facts); });
  FrameworkValues values = rule->values;
  std::string name = rule->name;
  for (const FrameworkRule& detail : details) {
    if (!detail.when.holds(facts)) continue;
    values.overlay(detail.values);
    name += " + " + detail.name;
  }

  FrameworkDefaults out = defaults_of(values, row);
  out.rule = name;
  out.date = date;
  out.date_stated = stated.has_value();
  out.nccl = nccl_of(values.packaging.value_or("wheel"), date);
  const auto meaning = std::find_if(data.begin(), data.end(),
                                    [&](const DataRule& each) { return each.when.holds(facts); });
  if (meaning == data.end()) {
    if (out.refused.empty()) out.refused = "dp_mode '" + row.dp_mode + "' is not known";
  } else {
    out.data = meaning->data;
    out.shards_in_node = meaning->shards_in_node;
  }
  return out;
}

std::string FrameworkFile::nccl_of(const std::string& packaging, YearMonth date) const {
  std::string version;
  for (const NcclOfDate& entry : nccl)  // ascending: the last one that was out
    if (entry.packaging == packaging && entry.from <= date) version = entry.version;
  return version;
}

}  // namespace stepcast::validate
