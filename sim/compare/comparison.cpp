#include "sim/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
namespace {

constexpr StepPart parts_of_forecast[] = {
    {"compute_s", "compute"},
    {"interference_s", "  of it slowed by comm.", true},
    {"exposed_communication_s.tensor", "exposed tensor comm."},
    {"exposed_communication_s.pipeline", "exposed pipeline comm."},
    {"exposed_communication_s.data", "exposed data comm."},
    {"exposed_communication_s.expert", "exposed expert comm."},
    {"exposed_communication_s.offload", "exposed offload"},
    {"bubble_s", "bubble"},
    {"wait_s", "wait"},
    {"host_s", "host"},
};

/// A trace does not tell moving bytes from waiting: what has no compute kernel is one part.
constexpr StepPart parts_of_trace[] = {
    {"compute_s", "compute"},
    {"exposed_s", "exposed comm. and waiting"},
    {"idle_s", "no kernel at all"},
};
constexpr const char* waiting_parts[] = {"exposed_communication_s.total", "bubble_s", "wait_s"};

bool any_measured(const Comparison& c) { return std::ranges::any_of(c.sides, &Side::measured); }

std::optional<double> number_of(const Side& side, std::string_view key) {
  if (const auto told = side.row.number(key)) return told;
  if (key == "idle_s") return side.row.number("host_s");
  if (key != "exposed_s") return std::nullopt;
  double sum = 0;
  for (const char* part : waiting_parts) {
    const auto value = side.row.number(part);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum;
}

/// "A, B" of the sides for which it holds.
template <class Holds>
std::string labels_where(const Comparison& c, Holds holds) {
  std::string out;
  for (std::size_t i = 0; i < c.sides.size(); ++i)
    if (holds(i)) out += (out.empty() ? "" : ", ") + c.sides[i].label;
  return out;
}

std::string tokens_note(const Comparison& c) {
  if (c.same_tokens()) return {};
  std::string of;
  for (const Side& side : c.sides)
    if (const auto tokens = side.answered() ? side.tokens() : std::nullopt)
      of += fmt::format("{}{} {}", of.empty() ? "" : ", ", side.label,
                        grouped(static_cast<std::int64_t>(*tokens)));
  return fmt::format("tokens of a step: {}; times and differences are of as many as {} has", of,
                     c.sides[c.base()].label);
}

std::string model_note(const Comparison& c) {
  const auto model = [&](std::size_t i) { return c.sides[i].row.text("model"); };
  const std::string others = labels_where(c, [&](std::size_t i) {
    return model(i) && model(c.base()) && *model(i) != *model(c.base());
  });
  return others.empty() ? "" : "another model: a token is other work in " + others;
}

/// Whether the bar of a forecast holds what was measured.
std::string bar_note(const Side& measured, const Side& forecast) {
  const auto low = forecast.row.number("step_time_low_s"),
             high = forecast.row.number("step_time_high_s"),
             level = forecast.row.number("confidence.level");
  if (!low || !high || !level || !forecast.answered() || forecast.measured) return {};
  const double step = *measured.step_s();
  return fmt::format("{} was measured: it lies {} {}'s error bar, {} to {} ({})", measured.label,
                     *low <= step && step <= *high ? "in" : "outside", forecast.label,
                     to_text(to_duration(*low)), to_text(to_duration(*high)), percent(*level));
}

bool same_cluster(const Side& a, const Side& b) {
  for (const char* key : {"cluster.node", "cluster.fabric", "gpu", "model"})
    if (a.row.text(key) != b.row.text(key)) return false;
  return a.row.number("gpus") == b.row.number("gpus");
}

/// Where P(order) is from, and where it is beyond that.
std::vector<std::string> order_notes(const Comparison& c) {
  const std::size_t base = c.base();
  bool any = false, beyond = c.about == About::what_ifs;
  for (std::size_t i = 0; i < c.sides.size(); ++i) {
    if (!c.order_right(i)) continue;
    any = true;
    beyond = beyond || !same_cluster(c.sides[base], c.sides[i]);
  }
  if (!any) return {};
  std::vector<std::string> out{"P(order): from " + c.order->origin()};
  if (beyond)
    out.emplace_back("P(order): these are of one model, cluster and batch; others are beyond them");
  return out;
}

/// What is warned of in a side, and not in the base.
std::vector<std::string> warnings_of(const Comparison& c, std::size_t side) {
  const std::vector<std::string> known = c.sides[c.base()].row.texts("warnings");
  std::vector<std::string> out;
  for (const std::string& warning : c.sides[side].row.texts("warnings"))
    if (side != c.base() && std::ranges::count(known, warning) == 0)
      out.push_back(c.sides[side].label + ": " + warning);
  return out;
}

}  // namespace

std::size_t Comparison::base() const {
  const auto found = std::ranges::find_if(sides, &Side::answered);
  return found == sides.end() ? 0 : static_cast<std::size_t>(found - sides.begin());
}

double Comparison::tokens_ratio(std::size_t side) const {
  const auto of_base = sides[base()].tokens(), of_side = sides[side].tokens();
  return of_base && of_side ? *of_side / *of_base : 1.0;
}

bool Comparison::same_tokens() const {
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (sides[i].answered() && tokens_ratio(i) != 1.0) return false;
  return true;
}

std::optional<double> Comparison::comparable_step_s(std::size_t side) const {
  const auto step = sides[side].step_s();
  if (!step) return std::nullopt;
  return *step / tokens_ratio(side);
}

std::optional<double> Comparison::order_right(std::size_t side) const {
  const auto a = comparable_step_s(base()), b = comparable_step_s(side);
  if (about == About::ablations || side == base() || !order || !a || !b || sides[base()].measured ||
      sides[side].measured)
    return std::nullopt;
  return order->probability(std::min(*a, *b), std::max(*a, *b));
}

std::vector<StepPart> every_part() {
  std::vector<StepPart> out(std::begin(parts_of_forecast), std::end(parts_of_forecast));
  for (const StepPart& part : parts_of_trace)
    if (std::ranges::find(out, part.key, &StepPart::key) == out.end()) out.push_back(part);
  return out;
}

std::vector<StepPart> parts_of(const Comparison& c) {
  if (any_measured(c)) return {std::begin(parts_of_trace), std::end(parts_of_trace)};
  return {std::begin(parts_of_forecast), std::end(parts_of_forecast)};
}

std::optional<double> part_s(const Comparison& c, std::size_t side, const StepPart& part) {
  const auto value = number_of(c.sides[side], part.key);
  if (!value) return std::nullopt;
  return *value / c.tokens_ratio(side);
}

std::vector<std::string> notes_on(const Comparison& c) {
  std::vector<std::string> out{tokens_note(c), model_note(c)};
  for (const Side& side : c.sides)
    if (side.measured)
      for (const Side& other : c.sides) out.push_back(bar_note(side, other));
  // All together are warned of what each alone is.
  const std::size_t alone = c.about == About::sides || c.sides.size() == 2 ? 0 : 1;
  for (std::size_t i = 0; i + alone < c.sides.size(); ++i)
    for (std::string& warning : warnings_of(c, i)) out.push_back(std::move(warning));
  for (std::string& note : order_notes(c)) out.push_back(std::move(note));
  std::erase_if(out, [](const std::string& note) { return note.empty(); });
  return out;
}

}  // namespace stepcast::sim
