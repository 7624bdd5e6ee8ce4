// Results as text: a readable page for one run, a table for a sweep, known figures beside the
// simulated ones. Three significant digits, units everywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/files/text_table.hpp"
#include "sim/program/table_view.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

std::string report_text(const Answer& answer);
/// Of a sweep the table as it was asked for.
std::string report_text(const Results& results, const TableView& view = {});

/// The points of a sweep as rows; one without an answer is a sentence. A view that needs them gets
/// every member of the rows as details.
TextTable results_table(const Results& results, const TableView& view);
/// The same as CSV, in pieces.
void write_csv(const Results& results, const TableView& view,
               const std::function<void(std::string_view)>& write);

/// The [[reference]] figures beside the simulated ones; empty when no point matches.
std::string references_text(const Results& results);

/// A swept key and value in a table: "nodes", "2,048".
std::string swept_heading(const std::string& path);
std::string swept_cell(const TomlValue& value);

// The phrases of a step's report that more than one form of it says: the cluster, the plan, what an
// error bar is and rests on.

/// "2,048 x H100 SXM (256 x DGX H100, rail-optimised, NCCL 2.20)"
std::string cluster_text(const Scenario& scenario);
/// "llama3-8b"; with adapters their rank and what is trained.
std::string model_text(const workloads::TransformerShape& model);
/// "zero2 64 x tensor 4 x pipeline 8 (1f1b); 1,024 sequences of 4,096 tokens in ..."
std::string plan_text(const Scenario& scenario);
std::string software_text(const Scenario& scenario);
/// "80 %"
std::string level_text(const ErrorBar& bar);
/// "errors of 12 sources (nodes), widened 1.4 x beyond them"
std::string origin_text(const ErrorBar& bar);

}  // namespace stepcast::sim
