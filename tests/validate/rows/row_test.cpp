#include "validate/rows/row.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/check.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

const std::string header =
    "id,source,url_or_repo_path,gpu,gpus,gpus_per_node,intra_node,inter_node_gbps_per_node,model,"
    "params_b,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_len,global_batch_seqs,"
    "micro_batch_seqs,grad_accum,dp_mode,tp,sp,pp,virtual_pp,cp,ep,activation_checkpointing,"
    "precision,attention_kernel,framework,step_time_s,tokens_per_s_per_gpu,tflops_per_gpu,mfu_pct,"
    "hfu_pct,mem_gib_per_gpu,power_w,confidence,notes,scorable\n";

std::string row(const std::string& id, const std::string& gpus, const std::string& time) {
  return id + ",s,u,A100," + gpus +
         ",8,,1600,GPT,1.5,24,2048,16,16,8192,51200,2048,64,4,,ddp,1,,1,,"
         ",,full,bf16,,Megatron-LM," +
         time + ",,,,,,,high,\"a, b\",yes\n";
}

std::vector<PublishedRow> read(const std::string& text) {
  return published_rows(sim::parse_csv("rows.csv", text));
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.where() + ": " + error.problem();
  }
  return "";
}

}  // namespace

TEST_CASE("a blank cell stays a blank") {
  const auto rows = read(header + row("ABCD-1", "16", "1.25"));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].source_key() == "ABCD");
  CHECK(*rows[0].gpus == 16);
  CHECK(*rows[0].step_time_s == 1.25);
  CHECK(*rows[0].inter_node_gbps_per_node == 1600);
  CHECK_FALSE(rows[0].grad_accum);
  CHECK_FALSE(rows[0].tokens_per_s_per_gpu);
  CHECK(rows[0].notes == "a, b");
  CHECK(rows[0].scorable);
}

TEST_CASE("an unreadable row says where and why") {
  CHECK(error_of(header + row("ABCD-1", "many", "1")) ==
        "rows.csv:2: 'many' in column gpus is unreadable");
  CHECK(error_of(header + row("ABCD-1", "8.5", "1")) ==
        "rows.csv:2: '8.5' in column gpus is unreadable");
  CHECK(error_of(header + row("ABCD-1", "8.0", "1")).empty());
  CHECK(error_of(header + row("ABCD-1", "-8", "1")) ==
        "rows.csv:2: '-8' in column gpus is unreadable");
  CHECK(error_of(header + row("ABCD-1", "8", "nan")) ==
        "rows.csv:2: 'nan' in column step_time_s is unreadable");
  CHECK(error_of(header + row("ABCD-1", "8", "1") + row("ABCD-1", "8", "1")) ==
        "rows.csv:3: id ABCD-1 stands twice");
  CHECK(error_of(header + row("", "8", "1")) == "rows.csv:2: a row without an id");
}

TEST_CASE("exactly the documented columns are read") {
  std::string more = header;
  more.insert(more.size() - 1, ",colour");
  CHECK(error_of(more) == "rows.csv:1: unknown column 'colour'");
  std::string fewer = header;
  fewer.erase(fewer.find(",power_w"), 8);
  CHECK(error_of(fewer) == "rows.csv:1: column power_w is missing");
}

TEST_CASE("columns of some tables alone may be missing, and say nothing where they are blank") {
  const auto with = [](const std::string& columns, const std::string& cells) {
    std::string head = header, line = row("ABCD-1", "16", "1.25");
    head.insert(head.size() - 1, columns);
    line.insert(line.size() - 1, cells);
    return read(head + line)[0];
  };
  CHECK_FALSE(with(",experts,mla,head_dim,shard_degree", ",,,,").has_experts());
  CHECK_FALSE(with(",head_dim,shard_degree", ",,").shard_degree);
  CHECK(*with(",head_dim,shard_degree", ",96,8").shard_degree == 8);
  CHECK(*with(",head_dim,shard_degree", ",96,8").head_dim == 96);
  CHECK(with(",experts,mla", ",8,q192").has_experts());
  CHECK(with(",experts,mla", ",8,q192").mla == "q192");
  CHECK(*with(",shared_experts", ",2").shared_experts == 2);
  CHECK(*with(",shared_experts", ",1x1024").shared_width == 1024);
}

namespace {

const std::string ran_header =
    "id,date,source,framework,framework_version,model,layers,hidden,heads,kv_heads,ffn_hidden,"
    "vocab,experts,topk,moe_ffn,gpu,gpus,gpus_per_node,network,tp,sp,cp,pp,vpp,ep,etp,dp_mode,"
    "micro_batch_seqs,global_batch_seqs,seq_len,packing,precision,recipe,recompute,offload,"
    "loss_kernel,attention_kernel,optimizer,lora_rank,compile,other_flags,outcome,mem_gib,"
    "mem_figure,step_time_s,tokens_per_s_per_gpu,tflops_per_gpu,flop_convention,confidence,note,"
    "tags\n";

std::string ran_row(const std::string& id, const std::string& outcome, const std::string& gib,
                    const std::string& figure) {
  return id + ",2025-06,s,trl,,Llama-3-8B,,,,,,,,,,H100,8,8,,2,,,,3,,,fsdp,1,8,4096,packed,bf16,," +
         "full,,,,,16,no,SFT," + outcome + "," + gib + "," + figure +
         ",1.5,,,,high,a note,HF;LoRA\n";
}

PublishedRow with_figure(const std::string& gib, const std::string& figure) {
  return read(ran_header + ran_row("ABCD-1", "ran", gib, figure)).at(0);
}

}  // namespace

TEST_CASE("the header tells which columns a table has") {
  const PublishedRow ran = read(ran_header + ran_row("ABCD-1", "ran", "60.5", "allocated")).at(0);
  CHECK(ran.columns == ColumnSet::what_ran);
  CHECK(*ran.virtual_pp == 3);
  CHECK(ran.activation_checkpointing == "full");
  CHECK(*ran.mem_gib_per_gpu == 60.5);
  CHECK(ran.notes == "a note");
  CHECK(ran.lora_rank == "16");
  CHECK(ran.tags == "HF;LoRA");
  CHECK(ran.scorable);
  CHECK_FALSE(ran.ran_out_of_memory);
  CHECK(read(ran_header + ran_row("ABCD-1", "oom", "", "")).at(0).ran_out_of_memory);
  CHECK(read(header + row("ABCD-1", "16", "1.25")).at(0).columns == ColumnSet::measured);
}

TEST_CASE("mistakes in a table of what ran say where and why") {
  CHECK(error_of(ran_header + ran_row("ABCD-1", "out of memory", "", "")) ==
        "rows.csv:2: 'out of memory' in column outcome is unreadable");
  CHECK(error_of(ran_header + ran_row("ABCD-1", "", "", "")) ==
        "rows.csv:2: '' in column outcome is unreadable");
  CHECK(error_of(ran_header + ran_row("ABCD-1", "ran", "much", "")) ==
        "rows.csv:2: 'much' in column mem_gib is unreadable");
  CHECK(error_of(ran_header + ran_row("ABCD-1", "ran", "1", "") +
                 ran_row("ABCD-1", "ran", "1", "")) == "rows.csv:3: id ABCD-1 stands twice");
  std::string head = ran_header;
  head.insert(head.size() - 1, ",power_w");  // of the other set
  CHECK(error_of(head) == "rows.csv:1: unknown column 'power_w'");
  head = ran_header;
  head.erase(head.find(",vpp"), 4);
  CHECK(error_of(head) == "rows.csv:1: column vpp is missing");
  head = ran_header;
  head.insert(head.size() - 1, ",note");
  CHECK(error_of(head) == "rows.csv:1: column note stands twice");
}

TEST_CASE("words of a peak say which figure it is, and whether its base is known") {
  CHECK(with_figure("1", "max reserved").mem_figure == "reserved");
  CHECK(with_figure("1", "peak active").mem_figure == "allocated");
  CHECK(with_figure("1", "\"nvidia-smi, rounded\"").mem_figure == "process");
  CHECK(with_figure("1", "\"peak (README table, GiB)\"").mem_figure.empty());
  CHECK(with_figure("1", "not stated").mem_figure.empty());
  const PublishedRow two = with_figure("65.2", "peak allocated (reserved 72.356)");
  CHECK(two.mem_figure == "allocated");
  CHECK(two.further_figure == "reserved");
  CHECK(*two.further_gib == 72.356);
  CHECK_FALSE(two.mem_base_open);
  CHECK(*with_figure("65", "peak allocated (nvidia-smi 75.87)").further_gib == 75.87);
  CHECK_FALSE(with_figure("65", "\"allocated (max active, as logged)\"").further_gib);
  const PublishedRow open = with_figure("47.2", "allocated (GB as stated)");
  CHECK(open.mem_figure == "allocated");
  CHECK(open.mem_base_open);
  CHECK_FALSE(open.mem_gb_as_stated);
  CHECK(*with_figure("52.3", "56.2 GB as stated").mem_gb_as_stated == 56.2);
}
