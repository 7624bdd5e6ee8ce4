// Results as JSON: keys with units in their names, numbers in full precision. The keys are an
// interface that others script against.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/study/results.hpp"
#include "sim/told/answer_form.hpp"

namespace stepcast::sim {

/// One run or collective as text, indented.
std::string to_json(const Answer& answer);

/// The object of one point on one line, as it is kept (point_row.hpp). In a sweep it names what the
/// point sets.
std::string point_json(const Answer& answer, const SweepPoint& point);
/// The same for a point without an answer: {"refused": reason, ...} or {"failed": reason, ...}.
std::string unanswered_json(const char* word, const std::string& reason, const SweepPoint& point);

/// What write_json() writes.
nlohmann::ordered_json study_schema();

/// A single run as one object, a sweep as {"points": [...]}, one object per finished point. Piece
/// by piece: a long sweep is never held as a whole.
void write_json(const Results& results, const std::function<void(std::string_view)>& write);
std::string to_json(const Results& results);

/// Beside every other: what a program that fails with --json writes.
nlohmann::ordered_json error_schema();
/// {"error": {"code": 3, "where": ..., "message": ..., "hint": ...}}
std::string error_json(int exit_code, const std::string& where, const std::string& message,
                       const std::string& hint);

}  // namespace stepcast::sim
