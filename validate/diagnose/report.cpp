#include "validate/diagnose/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/units_text.hpp"
#include "sim/pictures/heat_picture.hpp"
#include "sim/pictures/waterfall_picture.hpp"
#include "sim/program/command_line.hpp"
#include "validate/diagnose/logs.hpp"

namespace stepcast::validate {
namespace {

std::string time_text(double seconds) { return stepcast::to_text(to_duration(seconds)); }

std::pair<double, double> band_of(const Diagnosis& d) {
  const auto& bar = d.expected.step_bar;
  return bar ? std::pair(bar->low * d.found.expected, bar->high * d.found.expected)
             : std::pair(d.found.expected, d.found.expected);
}

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most = 6;
  if (ranks.empty()) return "all";
  const std::vector<std::int64_t> first(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranks.size())));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     ranks.size() > most ? fmt::format(" and {} more", ranks.size() - most) : "");
}

using Holds = sim::TextTable::Holds;

sim::TextTable cause_columns() {
  return {{"cause", "", sim::TextTable::Align::left},
          {"ms", "seconds"},
          {"of the gap", "share"},
          {"sure", "surety", sim::TextTable::Align::left},
          {"ranks", "", sim::TextTable::Align::left},
          sim::filed("cause", Holds::text),
          sim::filed("ranks", Holds::texts),
          sim::filed("evidence", Holds::text),
          sim::filed("try", Holds::text),
          sim::filed("setting", Holds::text),
          sim::filed("check", Holds::text)};
}

sim::TextTable cause_table(const Diagnosis& d) {
  sim::TextTable table = cause_columns();
  const double gap = d.found.measured - d.found.expected;
  for (const Cause& cause : d.found.causes) {
    const bool open = cause.kind == CauseKind::not_explained;
    const CauseWords& words = words_of(cause.kind);
    std::vector<std::string> ranks;
    for (const std::int64_t rank : cause.ranks) ranks.push_back(fmt::format("{}", rank));
    table.row({std::string(words.title),
               {fmt::format("{:.1f}", 1e3 * cause.seconds), cause.seconds},
               gap > 0 ? sim::TableCell(fmt::format("{:.0f} %", 100 * cause.seconds / gap),
                                        cause.seconds / gap)
                       : sim::TableCell(),
               open ? sim::TableCell() : sim::TableCell(std::string(word_of(cause.surety))),
               open ? sim::TableCell() : sim::TableCell(ranks_text(cause.ranks)),
               sim::kept(std::string(words.key)),
               sim::kept(ranks),
               sim::kept(cause.evidence),
               sim::kept(std::string(words.what_to_try)),
               sim::kept(setting_of(cause.kind, d.expected.scenario.software.framework)),
               sim::kept(std::string(words.how_to_check))});
  }
  return table;
}

/// What there is to say of each cause, below their table.
void say_causes(const Diagnosis& d, sim::ToldSection& out) {
  for (const Cause& cause : d.found.causes) {
    if (cause.kind == CauseKind::not_explained) continue;
    const CauseWords& words = words_of(cause.kind);
    out.say();
    out.say(fmt::format("{}, {}:", words.title, milliseconds(cause.seconds)));
    const auto item = [&](const char* name, const std::string& text) {
      say_item(out, name, 9, text);
    };
    item("seen", cause.evidence);
    const std::string setting = setting_of(cause.kind, d.expected.scenario.software.framework);
    item("try", std::string(words.what_to_try) + (setting.empty() ? "" : ": " + setting));
    if (!cause.how.empty()) item("here", cause.how);
    item("brings", milliseconds(cause.seconds) + " a step if it is gone altogether");
    item("check", std::string(words.how_to_check));
  }
}

struct HeatColumn {
  const char *heading, *key;
  double RankExcess::*part;
};
constexpr HeatColumn heat_columns[] = {
    {"more kernels", "more_kernels_s", &RankExcess::kernels},
    {"slower kernels", "slower_kernels_s", &RankExcess::slower},
    {"transfers", "transfers_s", &RankExcess::transfer},
    {"waiting", "waiting_s", &RankExcess::wait},
    {"between steps", "between_steps_s", &RankExcess::boundary},
    {"pauses", "pauses_s", &RankExcess::pauses},
    {"launch gaps", "launch_gaps_s", &RankExcess::gaps},
};

/// Those that lie furthest from the others come first: those that wait least, so are waited for.
std::vector<RankExcess> ranks_in_order(const Diagnosis& d) {
  std::vector<RankExcess> out = d.found.ranks;
  std::ranges::stable_sort(out, {}, &RankExcess::wait);
  return out;
}

constexpr std::size_t most_ranks = 16;  // of a table or picture for people

sim::TextTable rank_columns() {
  sim::TextTable table{sim::TextTable::Column{"rank", "rank"}.of(Holds::count)};
  for (const auto& [heading, key, part] : heat_columns)
    table.column(heading, "ms", sim::TextTable::Align::right, key);
  return table;
}

sim::TextTable rank_table(const Diagnosis& d) {
  sim::TextTable table = rank_columns();
  std::size_t shown = 0;
  for (const RankExcess& rank : ranks_in_order(d)) {
    sim::TableCells cells{sim::counted(rank.rank)};
    for (const auto& [heading, key, part] : heat_columns)
      cells.push_back({fmt::format("{:+.1f}", 1e3 * rank.*part), rank.*part});
    table.row(std::move(cells),
              shown++ < most_ranks ? sim::TextTable::For::all : sim::TextTable::For::files);
  }
  return table;
}

sim::Chart heat_map(const Diagnosis& d) {
  sim::HeatPicture picture{"More than expected, by rank and part of the step", "rank", "ms"};
  for (const auto& [heading, key, part] : heat_columns) picture.columns.emplace_back(heading);
  std::size_t shown = 0;
  for (const RankExcess& rank : ranks_in_order(d)) {
    if (shown++ == most_ranks) break;
    picture.rows.push_back(fmt::format("{}", rank.rank));
    auto& values = picture.values.emplace_back();
    auto& texts = picture.texts.emplace_back();
    for (const auto& [heading, key, part] : heat_columns) {
      values.emplace_back(std::max(0.0, 1e3 * rank.*part));
      texts.push_back(fmt::format("{:+.1f}", 1e3 * rank.*part));
    }
  }
  return {"ranks", "Milliseconds beyond the expected step", sim::heat_picture(picture),
          rank_table(d), "Ranks that wait least come first: the others wait for them."};
}

sim::Chart waterfall(const Diagnosis& d) {
  std::vector<sim::WaterfallBar> bars;
  for (const Cause& cause : d.found.causes)
    bars.push_back({std::string(words_of(cause.kind).title), cause.seconds, cause.evidence});
  return {"causes", "From the expected to the measured step",
          sim::waterfall_picture("expected", d.found.expected, bars, "measured", d.found.measured,
                                 "From the expected to the measured step"),
          cause_table(d), "Causes add up to the gap."};
}

sim::TextTable faster_columns() {
  return {{"what else would be faster", "what", sim::TextTable::Align::left},
          {"step", "step_s"},
          {"how", "how", sim::TextTable::Align::left}};
}

sim::TextTable faster_table(const Diagnosis& d) {
  sim::TextTable table = faster_columns();
  for (const Faster& one : d.faster)
    table.row({one.what, {time_text(one.step), one.step}, one.how});
  return table;
}

/// "93.1 GiB of memory a GPU where 79.6 GiB are: it does not fit"
std::string memory_text(const Diagnosis& d) {
  const std::string needed = stepcast::to_text(d.expected.memory.total()),
                    card = stepcast::to_text(d.expected.scenario.node.gpu.memory);
  if (!d.fits())
    return fmt::format("{} of memory a GPU where {} are there: it does not fit", needed, card);
  return fmt::format("{} of memory a GPU of {}: it fits{}", needed, card,
                     d.expected.p_fits ? " with " + sim::percent(*d.expected.p_fits) : "");
}

/// How the run stands beside others, no surer than the error bar.
std::string standing_of(const Diagnosis& d) {
  if (is_slower(d))
    return d.slower_than ? fmt::format("Slower than {:.0f} % of such runs", 100 * *d.slower_than)
                         : "Slower than expected";
  return d.found.measured < band_of(d).first * 0.9999 ? "Faster than expected" : "As expected";
}

}  // namespace

bool is_slower(const Diagnosis& d) {
  if (!d.mismatch.empty() || d.without_steps()) return false;
  if (d.found.measured > band_of(d).second * 1.0001) return true;
  constexpr double clearly = 0.05;  // of the step, by causes that need no forecast
  double seen = 0;
  for (const Cause& cause : d.found.causes)
    if (cause.surety == Surety::sure) seen += cause.seconds;
  return seen > clearly * d.found.expected;
}

std::string verdict_text(const Diagnosis& d) {
  if (!d.mismatch.empty()) return "No verdict: " + d.mismatch + ".";
  const auto [low, high] = band_of(d);
  const std::string expected =
      time_text(d.found.expected) +
      (d.expected.step_bar ? fmt::format(" ({} to {})", time_text(low), time_text(high)) : "");
  if (d.without_steps())
    return fmt::format("No step is in the files: {} a step is expected; {}.", expected,
                       memory_text(d));
  const std::string out = fmt::format("{}: {} a step where {} is expected", standing_of(d),
                                      time_text(d.found.measured), expected);
  const bool counted = d.measured.flops_per_second_per_gpu && d.measured.step;
  // As the log counts them, where it does.
  const double own =
      counted ? *d.measured.flops_per_second_per_gpu
              : d.expected.model_flops_per_gpu.value * d.found.expected / d.found.measured;
  return out + fmt::format("; normal would be {:.0f} TFLOP/s per GPU, you have {:.0f}.",
                           own * d.found.measured / d.found.expected / 1e12, own / 1e12);
}

const sim::Form<Diagnosis>& diagnosis_form() {
  using D = const Diagnosis&;
  // None where the files are of another run than the scenario.
  const auto where_found = [](auto table, auto there) {
    return [=](D d) {
      return d.mismatch.empty() && there(d) ? std::optional(table(d)) : std::nullopt;
    };
  };
  static const sim::Form<Diagnosis> form =
      sim::Form<Diagnosis>()
          .has("verdict", "In a sentence.", verdict_text)
          .has("slower", "Whether the run is slower than expected.",
               [](D d) { return is_slower(d); })
          .has("files", "That were read.", [](D d) { return d.files; })
          .has("scenario", "Where it is, or what it was read from.", [](D d) { return d.scenario; })
          .has("measured_s", "A step; left out where the files show none.",
               [](D d) {
                 return d.without_steps() ? std::nullopt : std::optional(d.found.measured);
               })
          .has("slower_than",
               "Share of such runs that are no slower, by the errors of published forecasts.",
               [](D d) { return d.slower_than; })
          .has("memory_bytes", "That a GPU is expected to need.",
               [](D d) { return d.expected.memory.total().value; })
          .has("p_fits", "How likely it fits into memory.", [](D d) { return d.expected.p_fits; })
          .has(
              "expected_s/mean", "", [](D d) { return d.found.expected; }, "s")
          .has(
              "expected_s/low", "", [](D d) { return band_of(d).first; }, "s")
          .has(
              "expected_s/high", "", [](D d) { return band_of(d).second; }, "s")
          .table("causes", "They add up to the gap.", cause_columns(),
                 where_found(cause_table, [](D d) { return !d.without_steps(); }))
          .table("ranks", "Seconds of the step beyond the expected ones.", rank_columns(),
                 where_found(rank_table, [](D d) { return d.found.ranks.size() > 1; }))
          .table("faster", "Other plans and settings.", faster_columns(),
                 where_found(faster_table, [](D d) { return !d.faster.empty(); }))
          .has("contradictions", "Between the files and the scenario.",
               [](D d) { return d.contradictions; })
          .has("notes", "What to know before trusting the causes.", [](D d) { return d.notes; });
  return form;
}

nlohmann::ordered_json diagnosis_schema() {
  return sim::document_schema("diagnose",
                              "What stepcast diagnose prints of files, and of several logs.",
                              sim::any_of({diagnosis_form().schema_of(), logs_form().schema_of()}));
}

void say_item(sim::ToldSection& out, const char* name, std::size_t width, const std::string& text) {
  std::string lines = sim::list_item(name, width, text);
  lines.pop_back();
  out.say(std::move(lines));
}

sim::ToldSection told_of(const Diagnosis& d) {
  sim::ToldSection out;
  const std::string verdict = verdict_text(d);
  const std::size_t half = verdict.find("; ");
  out.say(verdict.substr(0, half == std::string::npos ? half : half + 1));
  if (half != std::string::npos) out.say(verdict.substr(half + 2));
  if (d.mismatch.empty()) {
    if (!d.without_steps()) out.table("", cause_table(d));
    say_causes(d, out);
    if (d.found.ranks.size() > 1) {
      out.say();
      out.say("ms of the step beyond the expected ones; ranks that wait least come first");
      out.table("", rank_table(d), false);
    }
    if (d.without_steps() && !d.faster.empty()) out.say();
    if (!d.faster.empty()) out.table("", faster_table(d));
  }
  if (!d.contradictions.empty() || !d.notes.empty()) out.say();
  for (const auto* all : {&d.contradictions, &d.notes})
    for (const std::string& one : *all) say_item(out, "", 3, one);
  out.keep(diagnosis_form(), d);
  return out;
}

sim::Told diagnosis_page(const Diagnosis& d, const sim::Origin& origin) {
  const sim::Scenario& s = d.expected.scenario;
  sim::ToldSection glance{"At a glance", {}};
  glance.say(verdict_text(d));
  const auto [low, high] = band_of(d);
  sim::KeyFigures figures{{"expected", time_text(d.found.expected),
                           fmt::format("{} to {}", time_text(low), time_text(high))}};
  if (!d.without_steps())
    figures.insert(figures.begin(), {"measured", time_text(d.found.measured), "a step"});
  glance.blocks.emplace_back(std::move(figures));
  if (d.mismatch.empty()) {
    if (!d.without_steps()) glance.blocks.emplace_back(waterfall(d));
    say_causes(d, glance);
    if (d.found.ranks.size() > 1) glance.blocks.emplace_back(heat_map(d));
    if (!d.faster.empty())
      glance.blocks.emplace_back(
          sim::ToldTable{"What else would be faster", faster_table(d), false});
  }
  for (const std::string& one : d.contradictions) glance.say(one);
  for (const std::string& one : d.notes) glance.say(one);
  return {fmt::format("{} on {} x {}", s.model.name, s.gpus, s.node.gpu.name),
          "Why a run takes as long as it does.",
          {std::move(glance), sim::origin_section(origin, &s)}};
}

}  // namespace stepcast::validate
