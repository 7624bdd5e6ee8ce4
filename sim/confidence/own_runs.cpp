#include "sim/confidence/own_runs.hpp"

#include <algorithm>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"

namespace stepcast::sim {
namespace {

/// Columns of published runs and the keys of a scenario that they are.
constexpr std::pair<const char*, const char*> keys_of_columns[] = {
    {"seq_len", "model.sequence"},
    {"global_batch_seqs", "batch.global"},
    {"micro_batch_seqs", "batch.micro_batch"},
    {"dp_mode", "plan.data"},
    {"tp", "plan.tensor"},
    {"pp", "plan.pipeline"},
    {"virtual_pp", "plan.virtual_stages"},
    {"cp", "plan.context"},
    {"activation_checkpointing", "plan.recompute"},
};
constexpr const char* others[] = {
    "step_time_s", "tokens_per_s_per_gpu", "model", "gpus", "sp", "id", "notes"};

std::vector<std::string> known_columns() {
  std::vector<std::string> out(std::begin(others), std::end(others));
  for (const auto& [column, key] : keys_of_columns) out.emplace_back(column);
  for (const ScenarioKey& key : scenario_keys()) out.push_back(key.path);
  return out;
}

class RunReader {
 public:
  RunReader(const CsvFile& file, const Scenario& base, const Catalogue& catalogue)
      : file_(file),
        base_(base),
        catalogue_(catalogue),
        columns_(columns_of(file, known_columns())) {}

  OwnRun read(const CsvRow& row) const {
    const CsvLine line(file_, columns_, row);
    const std::string where = file_.path + ":" + std::to_string(row.line);
    const TomlValue document = document_of(line, where);
    OwnRun out{scenario_of(document, where), {}};
    out.scenario.run.ignore_memory = true;  // it ran
    out.step = to_duration(measured(line, out.scenario));
    return out;
  }

 private:
  /// What concerns the row as a whole has no place of its own.
  Scenario scenario_of(const TomlValue& document, const std::string& where) const {
    try {
      return read_scenario(document, catalogue_);
    } catch (const InputError& error) {
      throw InputError(error.where().empty() ? where : error.where(), error.problem(),
                       error.hint());
    }
  }

  static double positive(const CsvLine& line, const char* column) {
    const auto value = number_in<double>(line.text(column));
    if (!value || !(*value > 0))
      line.fail("'" + line.text(column) + "' in column " + column + " is no positive number");
    return *value;
  }

  static double measured(const CsvLine& line, const Scenario& s) {
    if (!line.text("step_time_s").empty()) return positive(line, "step_time_s");
    if (line.text("tokens_per_s_per_gpu").empty())
      line.fail("says nothing that was measured", "step_time_s or tokens_per_s_per_gpu");
    return static_cast<double>(s.global_batch * s.batch.sequence) /
           (positive(line, "tokens_per_s_per_gpu") * static_cast<double>(s.gpus));
  }

  TomlValue document_of(const CsvLine& line, const std::string& where) const {
    Scenario plain = base_;
    plain.runs.clear();
    TomlValue document = resolved_document(plain);
    document.where = where;
    const auto set = [&](const std::string& key, const std::string& cell) {
      if (!cell.empty()) set_path(document, key, read_setting(cell, where));
    };
    // What follows from degrees and batch, where a row may state others.
    document.find("batch")->erase("micro_batches");
    document.find("plan")->erase("stage_layers");
    if (const std::string& model = line.text("model"); !model.empty()) {
      TomlValue table = toml_table(where);
      table.set("name", toml_text(model, where));
      table.set("sequence", {base_.batch.sequence, where});
      document.set("model", std::move(table));
    }
    if (const std::string& gpus = line.text("gpus"); !gpus.empty()) set_gpus(document, line, where);
    for (const auto& [column, key] : keys_of_columns) set(key, line.text(column));
    if (const std::string& sp = line.text("sp"); !sp.empty()) {
      if (sp != "yes" && sp != "no") line.fail("'" + sp + "' in column sp", "yes or no");
      set_path(document, "plan.sequence_parallel", {sp == "yes", where});
    }
    for (const ScenarioKey& key : scenario_keys())
      if (columns_.contains(key.path)) set(key.path, line.text(key.path));
    return document;
  }

  void set_gpus(TomlValue& document, const CsvLine& line, const std::string& where) const {
    const auto gpus = number_in<std::int64_t>(line.text("gpus"));
    if (!gpus || *gpus < 1 || (*gpus > base_.node.gpus && *gpus % base_.node.gpus != 0))
      line.fail("'" + line.text("gpus") + "' in column gpus fits no nodes of " +
                    std::to_string(base_.node.gpus),
                "whole nodes, or fewer on one");
    set_path(document, "cluster.nodes",
             {std::max<std::int64_t>(1, *gpus / base_.node.gpus), where});
    set_path(document, "cluster.gpus", {*gpus, where});
  }

  const CsvFile& file_;
  const Scenario& base_;
  const Catalogue& catalogue_;
  CsvColumns columns_;
};

}  // namespace

std::vector<OwnRun> read_own_runs(const std::string& path, const Scenario& base,
                                  const Catalogue& catalogue) {
  const CsvFile file = read_csv(path);
  const RunReader reader(file, base, catalogue);
  std::vector<OwnRun> out;
  for (const CsvRow& row : file.rows) out.push_back(reader.read(row));
  if (out.empty()) throw InputError(path, "holds no run", "one row per measured step time");
  return out;
}

}  // namespace stepcast::sim
