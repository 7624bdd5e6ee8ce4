// The comparison with published runs as text, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/program/table_view.hpp"
#include "validate/published/score.hpp"

namespace stepcast::validate {

/// Totals, sources as they were asked for, refusals, memory; at most a screen or two.
std::string published_text(const std::string& file, const std::vector<PublishedResult>& results,
                           const sim::TableView& view = {});

/// A row per source: medians and the like as shares.
sim::TextTable published_sources(const std::vector<PublishedResult>& results);

/// Errors by tensor and pipeline degree, micro-batch and GPUs.
/// Errors by kind of row: experts or not, precision.
std::string kinds_text(const std::vector<PublishedResult>& results);
std::string degrees_text(const std::vector<PublishedResult>& results);

/// {"summary": {...}, "sources": [...], "rows": [{"id", "measured_step_time_s",
/// "predicted_step_time_s", "error", "memory_gib_per_gpu", "refused", ...}], "by_degree": [...]}.
/// Times in seconds, errors as shares, memory in GiB.
std::string published_json(const std::string& file, const std::vector<PublishedResult>& results);

/// One line per row, with a header.
std::string published_csv(const std::vector<PublishedResult>& results);

/// A table in Markdown for documents: one line per source, and the totals.
std::string published_markdown(const std::vector<PublishedResult>& results);

}  // namespace stepcast::validate
