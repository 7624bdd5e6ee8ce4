// What the words of a row set in the tables of its scenario: one function a group of keys.
#pragma once

#include <string>
#include <vector>

#include "validate/published/defaults.hpp"
#include "validate/published/scenario_table.hpp"
#include "validate/rows/row.hpp"

namespace stepcast::validate {

/// What the row says of experts; the rest is the framework's.
void put_expert_plan(const PublishedRow& row, const FrameworkDefaults& framework,
                     ScenarioTable& plan);
/// Modules that are recomputed, what lies on the host.
void put_memory_plan(const PublishedRow& row, ScenarioTable& plan);
/// Of a row with adapters, into [model]: what it states, then what the framework does unasked.
/// Returns what was taken for what neither says.
std::vector<std::string> put_adapters(const PublishedRow& row, const FrameworkDefaults& framework,
                                      sim::TomlValue& model, const std::string& where);
/// Graphs, connections, the loss, how attention's ranks exchange keys and values.
void put_software(const PublishedRow& row, const FrameworkDefaults& framework,
                  ScenarioTable& software);
sim::TomlValue routing_table(const PublishedRow& row, const std::string& where);

/// Words that are taken for less than they say, as sentences. Throws RefusedRow for what a row
/// states and no key expresses: it is never left out.
std::vector<std::string> told_of_words(const PublishedRow& row);

}  // namespace stepcast::validate
