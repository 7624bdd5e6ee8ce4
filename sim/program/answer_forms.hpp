// An answer as people, scripts and tables take it: text, --json, and --csv of the rows in the JSON.
//   the verb's options   answer_form_options, beside its own
//   printing             return print_answer(arguments, {text, json, {"sides"}}) ? exit_ok : ...
// Knows no answer.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/command_line.hpp"

namespace stepcast::sim {

inline constexpr Option json_option{"json", "", "", "print JSON"};
inline constexpr Option rows_option{
    "csv", "FILE", "", "also write the rows of the JSON, all columns in full; -: print only that"};

struct AnswerForms {
  std::function<std::string()> text, json;
  // Names of the JSON's arrays; empty: it is one itself, or the object of the only row.
  std::vector<std::string_view> rows;
};

/// The objects of these arrays as CSV: a column a number or text at any depth
/// ("parts_s.compute_s"), what is a list in one cell. Of several arrays the first column, `table`,
/// says which.
std::string rows_csv(std::string_view json, const std::vector<std::string_view>& arrays);

/// Throws UsageError for --json with --csv -: before long work begins.
void check_forms(const Arguments& arguments);

/// What was asked for on standard output, --csv FILE beside it. False after a message where that
/// cannot be written.
bool print_answer(const Arguments& arguments, const AnswerForms& forms);

}  // namespace stepcast::sim
