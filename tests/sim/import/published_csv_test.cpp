#include "sim/import/published_csv.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/import/calibration_csv.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using Catch::Contains;
using sim::import_csv;
using sim::parse_csv;

namespace {

const std::string header =
    "gpu,kind,shape_or_bytes,ranks,nodes,gpus_per_node,dtype,value,unit,source,url_or_repo_path,"
    "confidence,fabric,inter_node_gbps_per_node,nccl,processes,timing,implementation,data\n";

sim::CalibrationTable import_line(const std::string& line) {
  return import_csv(parse_csv("rows.csv", header + line + "\n"));
}

std::string gemm(const std::string& shape, const std::string& value, const std::string& unit) {
  return "H100,gemm," + shape + ",1,1,1,bf16," + value + "," + unit + ",src,url,high,,,,,,,random";
}

}  // namespace

TEST_CASE("a product comes with its layout, data and rate") {
  const auto table = import_line(gemm("m=8;n=16;k=32;opA=N;opB=T", "1.5", "TFLOP/s"));
  REQUIRE(table.gemm.size() == 1);
  const auto& row = table.gemm[0];
  CHECK((row.m == 8 && row.n == 16 && row.k == 32));
  CHECK(row.layout == "NT");
  CHECK(row.data == "random");
  CHECK(row.rate.value == 1.5e12);
  CHECK(row.source->reference == "url");
}

TEST_CASE("attention takes heads, grouped heads and masks") {
  const auto table = import_line(
      "H200,attention_bwd,b=1;hq=64;hkv=8;s=4096;d=128;causal=1,1,1,1,bf16,474,TFLOP/s,src,url,"
      "high,,,,,,cudnn,");
  REQUIRE(table.attention.size() == 1);
  CHECK(table.attention[0].heads == 64);
  CHECK(table.attention[0].kv_heads == 8);
  CHECK(table.attention[0].mask == "causal");
  CHECK(table.attention[0].pass == "backward");
}

TEST_CASE("bus bandwidth becomes time as nccl-tests defines it, and back") {
  const auto ar = import_line(
      "H100,allreduce,1073741824,8,1,8,fp32,350,GB/s busbw,src,url,high,nvlink,3200,2.20,,wall,,");
  REQUIRE(ar.collectives.size() == 1);
  // 2^30 B x 2 x 7/8 / 350 GB/s = 5.3687 ms
  CHECK(seconds(ar.collectives[0].duration) == Approx(5.36871e-3));
  CHECK(ar.collectives[0].node_bandwidth == 400_GBps);
  const auto ag =
      import_line("H100,allgather,1048576,4,1,8,fp32,100,us,src,url,high,nvlink,,,,wall,,");
  // 2^20 B x 3/4 / 100 us = 7.86 GB/s
  CHECK(ag.collectives[0].busbw.value == Approx(7.86432e9));
  const auto peak =
      import_line("H100,allreduce,max,multi,multi,8,fp32,480,GB/s busbw,src,url,high,,,,,,,");
  CHECK(peak.collectives[0].bytes == 0_B);
  CHECK(peak.collectives[0].ranks == 0);
  CHECK(peak.collectives[0].busbw == 480_GBps);
}

TEST_CASE("what is not understood is told with file and line") {
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16", "1", "TFLOP/s")), Contains("rows.csv:2"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=0", "1", "TFLOP/s")), Contains("\"0\""));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4;q=1", "1", "TFLOP/s")), Contains("\"q\""));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4;k=4", "1", "TFLOP/s")), Contains("twice"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=1.5;k=4", "1", "TFLOP/s")), Contains("1.5"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=99999999999999999999;k=4", "1", "TFLOP/s")),
                    Contains("whole number"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4", "-1", "TFLOP/s")), Contains("\"-1\""));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4", "nan", "TFLOP/s")), Contains("nan"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4", "1e3x", "TFLOP/s")), Contains("1e3x"));
  CHECK_THROWS_WITH(import_line(gemm("m=8;n=16;k=4", "1", "GFLOP/s")), Contains("GFLOP/s"));
  CHECK_THROWS_WITH(import_line("H100,gem,m=8;n=8;k=8,1,1,1,bf16,1,TFLOP/s,s,u,high,,,,,,,"),
                    Contains("did you mean 'gemm'"));
  CHECK_THROWS_WITH(import_line("H100,gemm,m=8;n=8;k=8,1,1,1,bf16,1,TFLOP/s,s,u,sure,,,,,,,"),
                    Contains("sure"));
  CHECK_THROWS_WITH(import_line("H100,gemm,m=8;n=8;k=8,1,1,1,bf16,1,TFLOP/s,,u,high,,,,,,,"),
                    Contains("\"source\" is empty"));
}

TEST_CASE("a header is checked before its rows") {
  CHECK_THROWS_WITH(import_csv(parse_csv("f.csv", "gpu,kind\n")), Contains("f.csv:1: lacks"));
  CHECK_THROWS_WITH(import_csv(parse_csv("f.csv", "gpu,gpu\n")), Contains("twice"));
  CHECK_THROWS_WITH(import_csv(parse_csv("f.csv", "gpu,kinds\n")),
                    Contains("did you mean 'kind'?"));
}

TEST_CASE("a flag, a cache or a unit that is none is an error of its line") {
  const std::string more = "gpu,kind,shape,dtype,value,unit,source,url_or_repo_path,confidence,";
  const auto with = [&](const std::string& column, const std::string& row) {
    return import_csv(parse_csv("rows.csv", more + column + "\n" + row + "\n"));
  };
  CHECK_THROWS_WITH(with("accumulate", "X,gemm,m=1;n=1;k=1,bf16,1,TFLOP/s,s,u,high,yes"),
                    Contains("rows.csv:2") && Contains("accumulate \"yes\" is not 0 or 1"));
  CHECK_THROWS_WITH(with("cache", "X,gemm,m=1;n=1;k=1,bf16,1,TFLOP/s,s,u,high,warm"),
                    Contains("cache \"warm\" is none of cold, hot"));
  CHECK_THROWS_WITH(with("cache", "X,power,idle,n/a,70,us,s,u,high,"), Contains("write W"));
}

TEST_CASE("what was measured beside kernels comes in the columns of its kind") {
  const auto table = import_csv(parse_csv(
      "f.csv",
      "gpu,kind,shape,ranks,nodes,dtype,value,unit,source,url_or_repo_path,confidence,kernel,"
      "collective,kernel_alone,kernel_beside,collective_alone,collective_beside,samples,device\n"
      "X,launch,kernel,,,n/a,2.5,us,s,r,high,,,,,,,120,X\n"
      "X,overlap,67108864,8,1,n/a,260,us,s,r,high,gemm,allreduce,200,260,400,500,50,X\n"
      "X,power,idle,,,n/a,70,W,s,r,high,,,,,,,,X\n"));
  CHECK(table.launches.at(0).duration == 2500_ns);
  CHECK(table.launches.at(0).quality.samples == 120);
  CHECK(table.overlaps.at(0).bytes == 64_MiB);
  CHECK(table.overlaps.at(0).kernel_beside == 260_us);
  CHECK(table.overlaps.at(0).collective_alone == 400_us);
  CHECK(table.powers.at(0).power == Watts(70));
  CHECK(table.powers.at(0).source->on.device == "X");
}

TEST_CASE("columns that a table lacks, or has too many, are named all at once") {
  const auto import_header = [](const std::string& line) {
    import_csv(parse_csv("rows.csv", line + "\n"));
  };
  CHECK_THROWS_WITH(
      import_header("gpu,kind,value,unit,source,shape"),
      "rows.csv:1: lacks the columns \"dtype\", \"confidence\", \"url_or_repo_path\"");
  CHECK_THROWS_WITH(import_header("gpu,kind,dtype,value,unit,source,confidence,url_or_repo_path"),
                    "rows.csv:1: lacks the column \"shape_or_bytes\"");
  CHECK_THROWS_WITH(import_header("gpu,colour,kind,weight"),
                    Contains("unknown columns \"colour\", \"weight\""));
}

TEST_CASE("a collective's fabric, version, timing and processes are words that mean something") {
  const auto with = [](const std::string& words) {
    return import_line("H100,allreduce,1048576,8,1,8,fp32,100,us,src,url,high," + words + ",,");
  };
  CHECK(with("nvlink,,2.20,8 per node,wall").collectives.size() == 1);
  CHECK(with("tcp,,,one per GPU,kernel").collectives.size() == 1);
  CHECK(with(",,,1,").collectives.size() == 1);
  // As publications name them.
  const auto fabric = [&](const std::string& word) {
    return with("\"" + word + "\",,,1,wall").collectives.at(0).fabric;
  };
  CHECK(fabric("NVLink") == "nvlink");
  CHECK(fabric("NVL72") == "nvlink");
  CHECK(fabric("PCIe, no NVLink") == "pcie");
  CHECK(fabric("Slingshot 11") == "slingshot");
  CHECK(fabric("CX7 IB") == "infiniband");
  CHECK_THROWS_WITH(with("-1,,2.20,1,wall"),
                    Contains("rows.csv:2: fabric \"-1\" is none of infiniband, roce"));
  CHECK_THROWS_WITH(with("nvlink,,-1,1,wall"), Contains("nccl \"-1\" is no version"));
  CHECK_THROWS_WITH(with("nvlink,,2.20,1,0"), Contains("timing \"0\" is none of wall, kernel"));
  for (const char* processes : {"-1", "0", "8 per", "many"})
    CHECK_THROWS_WITH(with(std::string("nvlink,,2.20,") + processes + ",wall"),
                      Contains("is no number of processes"));
}
