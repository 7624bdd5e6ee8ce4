#include "sim/told/shared_sentences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "sim/files/text_table.hpp"
#include "sim/told/labelled_line.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* out_of_memory = "out of memory";

/// A reason without its place, its hint and its numbers: what many points have in common.
std::string common_part(const PointRow& row, const std::string& reason) {
  if (row.number("memory_over_gib")) return out_of_memory;
  const std::size_t place = reason.find(": ");
  const std::size_t from = place == std::string::npos ? 0 : place + 2;
  return reason.substr(from, reason.find_first_of(",;", from) - from);
}

struct Refusals {
  std::string example;  // the first one's words
  std::size_t count = 0;
  std::optional<double> nearest_gib;  // of those out of memory
};

std::string without_numbers(std::string_view text) {
  std::string out;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    const bool divides = in_number && (text[i] == '.' || text[i] == ',') && is_digit(i + 1);
    in_number = is_digit(i) || divides;
    if (!in_number) out += text[i];
  }
  return out;
}

/// Most frequent first.
std::vector<Refusals> refusals_of(const Results& results) {
  std::map<std::string, Refusals> groups;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (results.rows.state(i) != PointRows::State::refused) continue;
    const PointRow row = results.rows.row(i);
    const std::string words = common_part(row, row.text("refused").value_or(""));
    Refusals& group = groups[without_numbers(words)];
    if (group.count++ == 0) group.example = words;
    if (const auto over = row.number("memory_over_gib"))
      group.nearest_gib = std::min(*over, group.nearest_gib.value_or(*over));
  }
  std::vector<Refusals> out;
  for (auto& [words, group] : groups) out.push_back(std::move(group));
  std::ranges::stable_sort(out, std::greater(), &Refusals::count);
  return out;
}

/// The first of each sentence, with how many points say it.
std::string folded_warnings(const Results& results) {
  struct Folded {
    std::string pattern, first;
    int points = 0;
    bool alike = true;  // to the last digit
  };
  std::vector<Folded> all;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (results.rows.state(i) != PointRows::State::answered) continue;
    for (const std::string& warning : results.rows.row(i).texts("warnings")) {
      const std::string pattern = without_numbers(warning);
      auto found = std::ranges::find(all, pattern, &Folded::pattern);
      if (found == all.end()) found = all.insert(all.end(), {pattern, warning});
      ++found->points;
      found->alike = found->alike && found->first == warning;
    }
  }
  std::string out;
  for (const Folded& one : all)
    out += fmt::format("warning: {}{}\n", one.first,
                       one.points == 1 ? ""
                                       : fmt::format(" ({} points{})", one.points,
                                                     one.alike ? "" : ", with other numbers"));
  return out;
}

}  // namespace

std::string refused_line(const Results& results, const TableView& view) {
  constexpr std::size_t most_told = 3;
  const std::size_t refused = results.rows.count(PointRows::State::refused);
  if (refused == 0 || view.folded() == TextTable::Folded::shown) return {};
  const auto number = [](std::size_t n) { return grouped(static_cast<std::int64_t>(n)); };
  std::string reasons;
  std::size_t told = 0;
  const auto groups = refusals_of(results);
  for (std::size_t i = 0; i < std::min(most_told, groups.size()); ++i) {
    reasons += (i > 0 ? ", " : "") + number(groups[i].count) +
               (groups[i].example == out_of_memory ? " " : " as ") + groups[i].example;
    if (groups[i].nearest_gib)
      reasons += fmt::format(" (nearest {} GiB over)", three_digits(*groups[i].nearest_gib));
    told += groups[i].count;
  }
  if (told < refused) reasons += fmt::format(", {} otherwise", number(refused - told));
  return fmt::format("{} of {} points refused: {}; --refused shows them\n", number(refused),
                     number(results.rows.size()), reasons);
}

std::string warnings_text(const Results& results) {
  if (results.study.is_sweep) return folded_warnings(results);
  std::string out;
  if (!results.single) return out;
  if (const auto* step = std::get_if<StepReport>(&*results.single))
    for (const std::string& warning : step->warnings) out += labelled_line("warning", warning);
  if (const auto* one = std::get_if<CollectiveReport>(&*results.single))
    for (const std::string& warning : one->warnings) out += labelled_line("warning", warning);
  return out;
}

}  // namespace stepcast::sim
