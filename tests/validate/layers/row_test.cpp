#include "validate/layers/row.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

const std::string header =
    "id,gpu,gpus,hidden,moe_ffn,experts,topk,shared_ffn,ep,tp,seq_len,micro_batch,precision,"
    "fp8_recipe,dispatcher,routing,forward_ms,backward_ms,fwd_bwd_ms,peak_bytes,source,notes\n";

std::string layer_line(const std::string& sum, const std::string& hidden = "7168") {
  return "A-1,H100,8," + hidden + ",2048,32,8,0,8,1,4096,1,bf16,,alltoall,balanced,1.5,2.5," + sum +
         ",1,a source,notes\n";
}

std::vector<LayerRow> layers_in(const std::string& text) {
  return layer_rows(sim::parse_csv("layers.csv", text));
}

}  // namespace

TEST_CASE("a measured layer is read with its sizes and times, groups where the table has them") {
  const auto rows = layers_in(header + layer_line("4.0"));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].ffn == 2048);
  CHECK(rows[0].expert == 8);
  CHECK(rows[0].forward_s == Approx(1.5e-3));
  CHECK(rows[0].both_s() == Approx(4e-3));
  CHECK(rows[0].groups == 1);
  const auto grouped =
      layers_in("router_groups,router_group_limit," + header + "8,4," + layer_line("4.0"));
  CHECK(grouped[0].groups == 8);
  CHECK(grouped[0].group_limit == 4);
}

TEST_CASE("what cannot be read of a layer is refused with its line") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      layers_in(text);
    } catch (const InputError& error) {
      return error.where() + " " + error.problem();
    }
    return "";
  };
  CHECK(message(header + layer_line("4.1")).find("layers.csv:2 fwd_bwd_ms is not the sum") == 0);
  CHECK(message(header + layer_line("4.0", "many")).find("layers.csv:2 'many' in column hidden") ==
        0);
  CHECK(message("what," + header + "x," + layer_line("4.0")).find("layers.csv:1") == 0);
}
