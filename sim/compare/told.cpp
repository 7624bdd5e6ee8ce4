// A comparison, told once: what differs, and what it comes from.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/units_text.hpp"
#include "sim/compare/comparison.hpp"
#include "sim/compare/sides_table.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

constexpr auto left = TextTable::Align::left;

/// "-310 ms"
std::string difference_text(double difference_s) {
  if (difference_s == 0) return "0";
  return (difference_s < 0 ? "-" : "+") + time_text(std::abs(difference_s));
}

double seconds_of(std::int64_t ps) { return seconds(Duration(ps)); }
std::optional<double> seconds_of(const std::optional<std::int64_t>& ps) {
  return ps ? std::optional(seconds_of(*ps)) : std::nullopt;
}

/// A part with what stands inside it.
struct PartRows {
  std::vector<StepPart> parts;
  double largest_s = 0;  // difference to the base
};

/// The largest difference first.
std::vector<PartRows> sorted_parts(const Comparison& c) {
  std::vector<PartRows> out;
  for (const StepPart& part : parts_of(c)) {
    if (part.inside) {
      out.back().parts.push_back(part);
      continue;
    }
    out.push_back({{part}, 0});
    const auto base = part_s(c, c.base(), part);
    for (std::size_t i = 0; i < c.sides.size() && base; ++i)
      if (const auto own = part_s(c, i, part))
        out.back().largest_s = std::max(out.back().largest_s, std::abs(*own - *base));
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &PartRows::largest_s);
  return out;
}

std::vector<std::size_t> answered_in(const Comparison& c) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < c.sides.size(); ++i)
    if (c.sides[i].answered()) out.push_back(i);
  return out;
}

/// Beside more sides than these only the differences have room.
constexpr std::size_t most_with_times = 4;

/// The base's cell and those of all others, or of `differences` alone.
template <class Value, class Cells>
std::vector<std::string> part_cells(const Comparison& c, Value value, Cells cells) {
  const auto base = value(c.base());
  const auto answered = answered_in(c);
  for (const std::size_t i : answered)
    if (i == c.base() || answered.size() <= most_with_times)
      cells.push_back(value(i) ? time_text(*value(i)) : "-");
  for (const std::size_t i : answered)
    if (i != c.base()) cells.push_back(value(i) && base ? difference_text(*value(i) - *base) : "-");
  return cells;
}

bool nowhere(const Comparison& c, const StepPart& part) {
  return std::ranges::all_of(answered_in(c),
                             [&](std::size_t i) { return part_s(c, i, part) == 0.0; });
}

TextTable parts_table(const Comparison& c) {
  const auto answered = answered_in(c);
  const std::string& base = c.sides[c.base()].label;
  TextTable table;
  table.column("mean over ranks", "", left);
  for (const std::size_t i : answered)
    if (i == c.base() || answered.size() <= most_with_times) table.column(c.sides[i].label);
  for (const std::size_t i : answered)
    if (i != c.base()) table.column(c.sides[i].label + " - " + base);
  return table;
}

void tell_parts(ToldSection& out, const Comparison& c) {
  TextTable table = parts_table(c);
  std::string zero;
  const auto add = [&](std::string_view heading, auto value) {
    table.row(part_cells(c, value, std::vector{std::string(heading)}));
  };
  for (const PartRows& rows : sorted_parts(c))
    for (const StepPart& part : rows.parts) {
      if (nowhere(c, part) && part.key.ends_with(".expert"))
        continue;  // dense models have none to speak of
      if (nowhere(c, part))
        zero += (zero.empty() ? "" : ", ") +
                std::string(part.heading.substr(part.heading.find_first_not_of(' ')));
      else
        add(part.heading, [&](std::size_t i) { return part_s(c, i, part); });
    }
  add("step", [&](std::size_t i) { return c.comparable_step_s(i); });
  out.table("", std::move(table));
  if (!zero.empty()) out.say("none in any: " + zero);
}

std::string alone_text(const ChangeEffect& effect) {
  if (!effect.alone_ps) return "not alone";
  const bool moves = *effect.alone_ps != 0;
  const std::string difference = difference_text(seconds_of(*effect.alone_ps));
  if (!effect.fits_alone) return "does not fit" + (moves ? ": " + difference : "");
  return moves ? difference : "no effect";
}

std::string share_text(const ChangeEffect& effect) {
  if (!effect.share_ps) return "-";
  std::string out = difference_text(seconds_of(*effect.share_ps));
  if (effect.error_ps > 0) out += " +- " + time_text(effect.error_ps * 1e-12);
  return out;
}

/// How the shares were found, and what they are.
void say_method(ToldSection& out, const Attribution& a) {
  if (a.orders == 0)
    return out.say(fmt::format(
        "no order of making them one by one is possible ({} tried): no shares", a.asked));
  out.say(
      fmt::format("share: mean over {} {}orders of making them one by one (Shapley), {} runs; to "
                  "the picosecond",
                  grouped(static_cast<std::int64_t>(a.orders)), a.exact ? "" : "random ", a.runs));
  if (a.orders < a.asked)
    out.say(fmt::format("{} of {} orders pass a point that is impossible, and are left out",
                        a.asked - a.orders, a.asked));
  if (a.unfit > 0)
    out.say(
        fmt::format("{} of the points do not fit in memory and are timed all the same", a.unfit));
}

void say_interaction(ToldSection& out, const Attribution& a, About about) {
  if (const auto interaction = a.interaction_ps())
    out.say(fmt::format("all together {}, the sum of each alone {}: {} {}",
                        difference_text(seconds_of(a.to_ps - a.from_ps)),
                        difference_text(seconds_of(a.to_ps - a.from_ps - *interaction)),
                        about == About::ablations ? "their overlap is" : "their interaction is",
                        difference_text(seconds_of(*interaction))));
}

/// "-" for people, nothing for programs.
TableCell unless_empty(const std::string& value) {
  return value.empty() ? TableCell() : TableCell(value);
}

TextTable changes_columns(const std::string& heading, bool with_values) {
  using Align = TextTable::Align;
  TextTable table{{heading, "change", left}};
  for (const char* key : {"from", "to"})
    if (with_values)
      table.column(key, "", left, key);
    else
      table.detail(key, "", left, TextTable::Holds::text);
  table.column("alone", "", Align::right, "alone_s");
  table.detail("fits_alone", "", Align::right, TextTable::Holds::flag);
  table.detail("impossible_alone", "", left, TextTable::Holds::text);
  table.column("share", "", Align::right, "share_s");
  table.detail("share_standard_error_s");
  table.detail("without_effect", "", Align::right, TextTable::Holds::flag);
  return table;
}

/// Programs get the changes as they were asked for, people the largest share first.
TextTable changes_table(const Attribution& a, const std::string& heading, bool with_values,
                        bool in_text) {
  TextTable table = changes_columns(heading, with_values);
  const auto add = [&](const ChangeEffect& e, TextTable::For readers) {
    table.row({e.name,
               unless_empty(e.from),
               unless_empty(e.to),
               {alone_text(e), seconds_of(e.alone_ps)},
               e.fits_alone ? TableCell() : kept(false),
               unless_empty(e.impossible),
               {share_text(e), seconds_of(e.share_ps)},
               e.error_ps > 0 ? kept(e.error_ps * 1e-12) : TableCell(),
               kept(e.without_effect())},
              readers);
  };
  for (const ChangeEffect& effect : a.changes) add(effect, TextTable::For::files);
  if (!in_text) return table;
  std::vector<const ChangeEffect*> sorted;
  for (const ChangeEffect& effect : a.changes) sorted.push_back(&effect);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const ChangeEffect* change) {
    return std::abs(change->share_ps.value_or(change->alone_ps.value_or(0)));
  });
  for (const ChangeEffect* effect : sorted) add(*effect, TextTable::For::people);
  return table;
}

void tell_attribution(ToldSection& out, const Attribution& a, const std::string& heading,
                      About about, bool in_text) {
  out.table("", changes_table(a, heading, about == About::sides, in_text), false);
  if (in_text && a.changes.size() > 1) {
    say_method(out, a);
    say_interaction(out, a, about);
  }
  for (const ChangeEffect& change : a.changes)
    if (in_text && !change.alone_ps)
      out.say(fmt::format("{} alone is impossible: {}", change.name, change.impossible));
}

std::string heading_of(const Comparison& c, const Difference& way) {
  if (c.about == About::what_ifs) return "what if";
  if (c.about == About::ablations) return "without";
  return fmt::format("changed from {} to {}", c.sides[way.from].label, c.sides[way.to].label);
}

ToldSection told_of(const Comparison& c, const Difference& way) {
  ToldSection out;
  const std::string heading = heading_of(c, way);
  const bool sides = c.about == About::sides;
  const bool one_key = sides && c.sides.size() > 2 && way.keys.size() == 1 && way.why_not.empty();
  if (one_key) out.say(heading + ": " + way.keys.front());
  if (way.attribution) tell_attribution(out, *way.attribution, heading, c.about, !one_key);
  if (one_key || way.attribution) return out;
  out.say(heading);
  for (const std::string& key : way.keys) out.say("  " + key);
  if (way.keys.empty() && sides) out.say("  no key");
  if (!way.why_not.empty()) out.say("no shares: " + way.why_not);
  return out;
}

}  // namespace

namespace {

struct Way {
  const Comparison& of;
  const Difference& way;

  const Attribution* attribution() const { return way.attribution ? &*way.attribution : nullptr; }
};

/// What is left out where no shares were found.
template <class Get>
auto of_shares(Get get) {
  return [get](const Way& w) {
    const Attribution* found = w.attribution();
    return found == nullptr ? std::nullopt : std::optional(get(*found));
  };
}

Form<Way> way_form() {
  using W = const Way&;
  using A = const Attribution&;
  return Form<Way>("way")
      .has("from", "The label of a side.", [](W w) { return w.of.sides[w.way.from].label; })
      .has("to", "The label of another.", [](W w) { return w.of.sides[w.way.to].label; })
      .has("keys", "In what they differ.",
           [](W w) { return w.way.keys.empty() ? std::nullopt : std::optional(w.way.keys); })
      .has("no_shares", "Why there are none.",
           [](W w) { return w.way.why_not.empty() ? std::nullopt : std::optional(w.way.why_not); })
      .has("from_s", "The step there.", of_shares([](A a) { return seconds_of(a.from_ps); }))
      .has("to_s", "The step here.", of_shares([](A a) { return seconds_of(a.to_ps); }))
      .table("changes", "Each change, alone and its share of all together.",
             changes_columns("change", false),
             [](W w) {
               const Attribution* found = w.attribution();
               return found == nullptr
                          ? std::nullopt
                          : std::optional(changes_table(*found, "change", false, false));
             })
      .has("interaction_s", "What all bring, less the sum of what each brings alone.",
           of_shares([](A a) { return OrNull<double>{seconds_of(a.interaction_ps())}; }))
      .has("runs", "", of_shares([](A a) { return a.runs; }))
      .has("runs_beyond_memory", "Timed all the same.", of_shares([](A a) { return a.unfit; }))
      .has("orders", "Of making the changes one by one.", of_shares([](A a) { return a.orders; }))
      .has("orders_asked", "Of which some may be impossible.",
           of_shares([](A a) { return a.asked; }))
      .has("every_order", "Rather than random ones.", of_shares([](A a) { return a.exact; }));
}

std::vector<Way> ways_of(const Comparison& c) {
  std::vector<Way> out;
  for (const Difference& way : c.ways) out.push_back({c, way});
  return out;
}

}  // namespace

const Form<Comparison>& comparison_form() {
  using C = const Comparison&;
  static const Form<Comparison> form =
      Form<Comparison>()
          .has("base", "The label of the side that the others are compared with.",
               [](C c) { return c.sides[c.base()].label; })
          .has("same_tokens", "Whether all steps are of as many tokens.",
               [](C c) { return c.same_tokens(); })
          .table("sides", "A row a side; times are of the base's tokens.", sides_columns(),
                 sides_table)
          .list("ways", "From the base to another side, or a what-if.", way_form(), ways_of)
          .has("notes", "What has to be known to read the figures.", notes_on);
  return form;
}

ToldSection told_of(const Comparison& c) {
  ToldSection out;
  out.table("", sides_table(c));
  if (answered_in(c).size() > 1) tell_parts(out, c);
  if (!c.ways.empty()) out.say();
  for (const Difference& way : c.ways)
    for (ToldBlock& block : told_of(c, way).blocks) out.blocks.push_back(std::move(block));
  const auto notes = notes_on(c);
  if (!notes.empty()) out.say();
  for (const std::string& note : notes) out.say(note);
  out.keep(comparison_form(), c);
  return out;
}

nlohmann::ordered_json compare_schema() {
  return document_schema("compare", "What stepcast compare prints.", comparison_form().schema_of());
}

}  // namespace stepcast::sim
