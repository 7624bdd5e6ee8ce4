// A node's card as JSON: every row, not the worst alone.
#include "calibrate/report/card.hpp"
#include "sim/files/json_text.hpp"
#include "sim/form/form.hpp"

namespace stepcast::calibrate {
namespace {

using sim::Form;

/// A row, and whether it is below par.
struct JudgedRow {
  const CardRow* row = nullptr;
  bool below = false;
};

std::vector<JudgedRow> judged(const Card& card) {
  std::vector<JudgedRow> out;
  for (const CardRow& row : card.rows) out.push_back({&row, row.is_below(card.par)});
  return out;
}

std::optional<double> seconds_of(const std::optional<Duration>& time) {
  return time ? std::optional(seconds(*time)) : std::nullopt;
}

const Form<JudgedRow>& row_form() {
  using R = const JudgedRow&;
  static const auto form =
      Form<JudgedRow>("row")
          .has("group", "What was timed: a kind of kernel, or a collective on so many ranks.",
               [](R r) { return r.row->group; })
          .has("name", "What of it: its shape or bytes.", [](R r) { return r.row->name; })
          .has("figure", "As it was measured, with its unit.", [](R r) { return r.row->figure; })
          .has("par", "What it is held against, with its unit.", [](R r) { return r.row->par; })
          .has("par_measured",
               "Whether par was measured in this very shape; else it is a forecast.",
               [](R r) { return r.row->measured; })
          .has("ratio", "Its time over par's.", [](R r) { return r.row->ratio; })
          .has("spread", "Of the samples, relative, the wider of both.",
               [](R r) { return r.row->spread; })
          .has("below", "Slower than par by more than the slack and the spread.",
               [](R r) { return r.below; });
  return form;
}

const Form<Unmatched>& unmatched_form() {
  using U = const Unmatched&;
  static const auto form = Form<Unmatched>("unmatched")
                               .has("group", "What was timed.", [](U u) { return u.group; })
                               .has("rows", "How many.", [](U u) { return u.rows; })
                               .has("figure", "Of one of them.", [](U u) { return u.figure; });
  return form;
}

const Form<ForecastChange>& forecast_form() {
  using F = const ForecastChange&;
  static const auto form =
      Form<ForecastChange>("forecast")
          .has("title", "Of the scenario.", [](F f) { return f.title; })
          .has("without_s", "Step or collective without the rows of the card.",
               [](F f) { return seconds_of(f.without); })
          .has("with_s", "The same with them.", [](F f) { return seconds_of(f.with); })
          .has("missing", "Why there is none with them.",
               [](F f) { return f.missing.empty() ? std::nullopt : std::optional(f.missing); });
  return form;
}

const Form<Card>& card_form() {
  using C = const Card&;
  static const auto form =
      Form<Card>()
          .has("gpus", "As the table calls them.", [](C c) { return c.gpus; })
          .has("machines", "What was measured on.", [](C c) { return c.machines; })
          .has("against", "Tables that say what is par.", [](C c) { return c.par.tables; })
          .has("slack", "Slower than par by more than this share is below it.",
               [](C c) { return c.par.slack; })
          .has("below", "Rows below par.", [](C c) { return c.num_below(); })
          .list("rows", "All rows that something is known to hold against.", row_form(),
                [](C c) { return judged(c); })
          .list("unmatched", "Rows that nothing is known to hold against.", unmatched_form(),
                [](C c) { return c.unmatched; })
          .list("forecasts", "What the rows change.", forecast_form(),
                [](C c) { return c.forecasts; });
  return form;
}

}  // namespace

std::string card_json(const Card& card) {
  return sim::json_text(sim::stamped("card", card_form().json(card)), 2) + "\n";
}

nlohmann::ordered_json card_schema() {
  return sim::document_schema("card", "What stepcast calibrate card prints.",
                              card_form().schema_of());
}

}  // namespace stepcast::calibrate
