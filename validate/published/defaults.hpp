// What a published row leaves open, from two data files: validate/published_frameworks.toml (what a
// framework of that date does) and validate/published_clusters.toml (which machine that GPU stood
// in). Rules go by framework, date, GPU and the words of the row, never by a row or a source; the
// first rule of a list that matches decides. Knows no physics.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "validate/rows/row.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

struct YearMonth {
  std::int64_t year = 0, month = 0;
  auto operator<=>(const YearMonth&) const = default;
};

/// How a row of this framework and date is to be read where it says nothing.
struct FrameworkDefaults {
  std::string refused;  // why no scenario can be made, else empty
  std::string rule;     // the rule that decided, for provenance
  std::string reason;   // what was taken from it and where that comes from, sentences
  YearMonth date;
  bool date_stated = false;  // else: a usual date of the framework or the GPU

  // A table [software]: framework and version of the catalogue and the members that differ, those
  // of the row's attention_kernel included.
  sim::TomlValue software;
  // What it does unasked beside that: keys of [plan] and of [precision].
  sim::TomlValue plan = sim::toml_table("defaults"), precision = sim::toml_table("defaults");
  // Keys of [model] about adapters, for rows that have some.
  sim::TomlValue adapters = sim::toml_table("defaults");
  std::string nccl;  // a version of scenarios/nccl

  // What the row's dp_mode means in this framework; `shards_in_node`: hsdp, shards inside a node
  // and replicas over nodes.
  workloads::DataParallel data = workloads::DataParallel::ddp;
  bool shards_in_node = false;
  workloads::Dtype gradient_reduce = workloads::Dtype::bf16;
  bool sequence_parallel = false;  // where sp is blank and tp > 1
  // Where activation_checkpointing is blank; none: the least that fits into memory.
  std::optional<workloads::Recompute> recompute;
  workloads::Schedule schedule = workloads::Schedule::one_f_one_b;
  std::optional<std::int64_t> micro_batch;  // where blank; none: the largest that fits
  std::string optimizer;                    // "adamw", "lamb", "sgd"
  std::int64_t selective_every = 0;  // "selective" recomputes every n-th layer; 0: attention alone
  bool interleaves = false;          // has virtual pipeline stages, of which a row may say nothing
  bool later_recipe =
      false;              // the row's graphs and overlap are those of a recipe after its release
  bool compiles = false;  // runs with a compiler and without, of which a row may say nothing
  bool dropout = false;   // of embedding, attention and residual branches, beside the model's
  bool expert_degree_open = false;  // it is its recipe's, and not stated
  bool removes_padding = false;     // of sentences shorter than the sequence (BERT)
  std::int64_t vocab_multiple = 1;  // the vocabulary is padded to this x tp
};

/// The machine behind a row: values of [cluster].
struct ClusterDefaults {
  std::string refused;  // why no scenario can be made, else empty
  std::string rule;
  std::string assumption;  // what the row does not state and was taken instead; empty: nothing
  std::string gpu;         // of the catalogue
  sim::TomlValue node;     // value of cluster.node: `name` of the catalogue and what differs
  sim::TomlValue fabric;   // value of cluster.fabric
};

/// Both files, read and checked.
class PublishedDefaults {
 public:
  /// `directory` holds published_frameworks.toml and published_clusters.toml. Throws InputError
  /// with file:line: unknown key, unknown name, unreadable pattern or date, a list without a rule
  /// for everything else.
  PublishedDefaults(const std::string& directory, const sim::Catalogue& catalogue);
  /// The folder validate/ beside the catalogue.
  static PublishedDefaults standard(const sim::Catalogue& catalogue);

  FrameworkDefaults framework(const PublishedRow& row) const;
  ClusterDefaults cluster(const PublishedRow& row) const;
  /// Its GPU is of a kind that is counted apart.
  bool aside(const PublishedRow& row) const;
  ClusterDefaults cluster(const PublishedRow& row, YearMonth date_of_framework) const;

  /// Names of all rules, file order: "framework/torchtitan", ... For reports and tests.
  std::vector<std::string> rules() const;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;
};

}  // namespace stepcast::validate
