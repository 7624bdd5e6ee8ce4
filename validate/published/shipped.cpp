#include "validate/published/shipped.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/files/csv.hpp"

namespace stepcast::validate {
namespace {

constexpr ShippedTable shipped[] = {
    {"training", "training.csv", "the shipped table", Bucket::dense},
    {"sweep", "sweep.csv", "sweep: plans of one 3.6B model on 8 to 512 H100", Bucket::dense},
    {"modern", "modern.csv", "modern: experts, fp8, fp4, Blackwell", Bucket::none},
    {"mlgv", "mlgv.csv", "mlgv: tiny models of Megatron-LM's own tests, bound by the host",
     Bucket::none},
    {"what_ran", "what_ran.csv", "what_ran: what fitted, what died, how fast", Bucket::none},
};

}  // namespace

std::span<const ShippedTable> shipped_tables() { return shipped; }

const ShippedTable* shipped_table(const std::string& name) {
  const auto at =
      std::ranges::find_if(shipped, [&](const ShippedTable& table) { return table.name == name; });
  return at == std::end(shipped) ? nullptr : &*at;
}

std::string path_of(const ShippedTable& table, const sim::Catalogue& catalogue) {
  const std::filesystem::path folder = catalogue.directory();
  return (folder.parent_path() / "validate" / "published" / table.file).string();
}

std::vector<PublishedRow> rows_of(const ShippedTable& table, const sim::Catalogue& catalogue) {
  std::vector<PublishedRow> rows = published_rows(sim::read_csv(path_of(table, catalogue)));
  if (table.name != std::string_view("modern")) return rows;
  std::set<std::string> known;
  for (const PublishedRow& row : rows) known.insert(row.id);
  for (PublishedRow& row : published_rows(sim::read_csv(path_of(shipped[0], catalogue)))) {
    const bool low =
        scope_of(row).kind.starts_with("dense ") && scope_of(row).kind != "dense 16 bit";
    if (low && row.scorable && !known.contains(row.id)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepcast::validate
