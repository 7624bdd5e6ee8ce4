// The rules of published_frameworks.toml: which software a row ran on and what it does unasked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/published/rules.hpp"

namespace stepcast::validate {

/// What a rule says; what it leaves open stays as the rules before it have it.
struct FrameworkValues {
  std::string reason;
  std::optional<std::string> refused;
  sim::TomlValue software = sim::toml_table("defaults");
  sim::TomlValue plan = sim::toml_table("defaults"), precision = sim::toml_table("defaults");
  sim::TomlValue adapters = sim::toml_table("defaults");
  std::optional<std::string> packaging;
  std::optional<std::string> gradient_reduce;  // a dtype, or "compute"
  std::optional<bool> sequence_parallel;
  std::optional<std::string> recompute;  // a kind, or "least"
  std::optional<workloads::Schedule> schedule;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::string> optimizer;
  std::optional<bool> dropout, removes_padding, interleaves, later_recipe, compiles;
  std::optional<std::int64_t> selective_every, vocab_multiple;

  void overlay(const FrameworkValues& other);
};

struct FrameworkRule {
  std::string name;
  Condition when;
  FrameworkValues values;
};

/// What a word of dp_mode means.
struct DataRule {
  Condition when;
  workloads::DataParallel data{};
  bool shards_in_node = false;
};

/// NCCL of a way of packaging (a PyTorch wheel, an NGC container) from a month on.
struct NcclOfDate {
  std::string packaging;
  YearMonth from;
  std::string version;
};

/// What did not exist before a month: a model, a kernel, a framework.
struct EarliestDate {
  Condition when;
  YearMonth date;
};

struct FrameworkFile {
  std::vector<Release> releases;
  std::vector<EarliestDate> earliest;
  std::vector<NcclOfDate> nccl;
  std::vector<DataRule> data;
  std::vector<FrameworkRule> frameworks;  // the first that holds
  std::vector<FrameworkRule> details;     // all that hold, later ones win

  /// `usual`: the month for a row that states none and has nothing in it that is younger.
  FrameworkDefaults of(const PublishedRow& row, const std::string& gpu, YearMonth usual) const;
  std::string nccl_of(const std::string& packaging, YearMonth date) const;
};

FrameworkFile read_framework_file(const std::string& path);

/// The tables of [[name]]; throws when there is none.
std::vector<const sim::TomlValue*> tables_of(sim::TableReader& document, const std::string& name);

}  // namespace stepcast::validate
