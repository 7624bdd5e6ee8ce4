#include "sim/program/command_line.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

constexpr Option options[] = {
    {"nodes", "N", "cluster.nodes", "number of nodes"},
    {"node", "NAME", "cluster.node", "the node"},
    {"sequence-parallel", "", "plan.sequence_parallel", "a switch with a key"},
    {"json", "", "", "a switch"},
    {"nccl-env", "NAME=VALUE", "", "a variable of NCCL"},
    {"set", "KEY=VALUE", "", "any key"},
};
const Verb verb{"stepcast run", "[FILE]", 1, "Runs.", options, "stepcast run x.toml"};

}  // namespace

TEST_CASE("options and what stands without a dash are told apart") {
  const Arguments a =
      parse_arguments(verb, {"x.toml", "--nodes", "4", "--json", "--node=dgx-h100"});
  CHECK(a.positional() == std::vector<std::string>{"x.toml"});
  CHECK(a.get("nodes") == "4");
  CHECK(a.get("node") == "dgx-h100");
  CHECK(a.has("json"));
  CHECK_FALSE(a.has("set"));
}

TEST_CASE("an option is never guessed from its first letters") {
  CHECK_THROWS_WITH(parse_arguments(verb, {"--nod", "4"}),
                    Contains("unknown option '--nod', did you mean '--node'?"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"--sequence"}), Contains("unknown option '--sequence'"));
}

TEST_CASE("what means nothing is a usage error with its reason") {
  CHECK_THROWS_WITH(parse_arguments(verb, {"--ndoes", "4"}), Contains("did you mean '--nodes'?"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"--frobnicate"}), Contains("see stepcast run --help"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"--nodes"}), Contains("'--nodes' needs a value"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"--json=1"}), Contains("'--json' takes no value"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"--nodes", "1", "--nodes", "2"}),
                    Contains("given twice"));
  CHECK_THROWS_WITH(parse_arguments(verb, {"a", "b"}), Contains("'b' is one argument too many"));
  CHECK_THROWS_WITH(settings_of(verb, parse_arguments(verb, {"--set", "nodes"})),
                    Contains("is no setting"));
}

TEST_CASE("options and --set become keys of the scenario, --set last") {
  const auto settings =
      settings_of(verb, parse_arguments(verb, {"--set", "cluster.nodes=8", "--nodes", "4", "--set",
                                               "plan.data=zero3", "--sequence-parallel"}));
  REQUIRE(settings.size() == 4);
  CHECK(settings[0].first == "cluster.nodes");
  CHECK(std::get<std::int64_t>(settings[0].second.data) == 4);
  CHECK(settings[0].second.where == "--nodes");
  CHECK(std::get<bool>(settings[1].second.data));
  CHECK(std::get<std::int64_t>(settings[2].second.data) == 8);
  CHECK(settings[2].second.where == "--set cluster.nodes");
  CHECK(*settings[3].second.text() == "zero3");
}

TEST_CASE("the help names every option") {
  const std::string help = help_text(verb);
  CHECK(help.ends_with("143  ended by SIGTERM, what was finished is kept\n"));
  for (const Option& option : options) CHECK_THAT(help, Contains("--" + std::string(option.name)));
  CHECK_THAT(help, Contains("stepcast run x.toml"));
}

TEST_CASE("a version on the command line stays a word: 2.20 is not 2.2") {
  const auto settings =
      settings_of(verb, parse_arguments(verb, {"--set", "cluster.nccl=2.20", "--set",
                                               "sweep.cluster.nccl=[\"2.18\", \"2.20\"]"}));
  CHECK(*settings[0].second.text() == "2.20");
}

TEST_CASE("one --set takes several settings, and leaves the file alone") {
  const Arguments arguments =
      parse_arguments(verb, {"--set", "cluster.nodes=8", "plan.data=zero3", "x.toml"});
  CHECK(settings_of(verb, arguments).size() == 2);
  REQUIRE(arguments.positional().size() == 1);
  CHECK(arguments.positional()[0] == "x.toml");
}

TEST_CASE("--nccl-env may be repeated, and each sets a key of [nccl] as it is written") {
  const auto settings = settings_of(verb, parse_arguments(verb, {"--nccl-env", "NCCL_ALGO=Ring",
                                                                 "--nccl-env", "NCCL_MAX_CTAS=8"}));
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].first == "nccl.NCCL_ALGO");
  CHECK(*settings[0].second.text() == "Ring");
  CHECK(*settings[1].second.text() == "8");
  CHECK_THROWS_AS(settings_of(verb, parse_arguments(verb, {"--nccl-env", "NCCL_ALGO"})),
                  UsageError);
}

namespace {

constexpr Option typed_options[] = {
    {"steps", "N", "", "a count"},
    {"fail-above", "PERCENT", "", "a share"},
    {"threads", "N", "", "threads"},
    {"seed", "N", "", "a seed"},
    {"leave-out", "source|shape", "", "a choice"},
    {"for", "FILE ...", "", "several words"},
    {"title", "TEXT", "", "what follows --for"},
};
const Verb typed{"stepcast validate kernels", "FILE", 1, "Typed.", typed_options, "an example"};

}  // namespace

TEST_CASE("a value is read as what it is, or refused") {
  const auto given = [](const char* option, const char* value) {
    return parse_arguments(typed, {std::string("--") + option, value});
  };
  CHECK(given("steps", "12").count("steps", 7) == 12);
  CHECK(parse_arguments(typed, {}).count("steps", 7) == 7);
  CHECK(given("steps", "0").count("steps", 7, 0) == 0);
  for (const char* none : {"0", "-1", "x", "1.5", "12x", "99999999999999999999", "1000000000"})
    CHECK_THROWS_WITH(given("steps", none).count("steps", 7),
                      Contains("is no such number") || Contains("unknown option"));
  CHECK(*given("fail-above", "20").share("fail-above") == Approx(0.2));
  CHECK_FALSE(parse_arguments(typed, {}).share("fail-above"));
  for (const char* none : {"much", "nan", "5x", "inf"})
    CHECK_THROWS_WITH(given("fail-above", none).share("fail-above"), Contains("is no percentage"));
  CHECK(given("threads", "3").threads() == 3);
  CHECK(parse_arguments(typed, {}).threads() >= 1);
  CHECK_THROWS_AS(given("threads", "0").threads(), UsageError);
  CHECK(given("seed", "18446744073709551615").seed() == ~std::uint64_t{0});
  CHECK(parse_arguments(typed, {}).seed() == 1);
  CHECK_THROWS_WITH(given("seed", "x").seed(), Contains("is no whole number"));
  CHECK(given("leave-out", "shape").choice("leave-out") == "shape");
  CHECK(parse_arguments(typed, {}).choice("leave-out") == "source");
  CHECK_THROWS_WITH(given("leave-out", "row").choice("leave-out"),
                    "'--leave-out row' is none of source, shape");
}

TEST_CASE("an option of several words takes them up to the next option, again and again") {
  const Arguments a =
      parse_arguments(typed, {"--for", "a.toml", "b.toml", "--title=t", "--for=c.toml"});
  CHECK(a.all("for") == std::vector<std::string>{"a.toml", "b.toml", "c.toml"});
  CHECK(a.positional().empty());
}

TEST_CASE("what a verb is about is asked for with its example") {
  CHECK_THROWS_WITH(parse_arguments(typed, {}).first("which file?"), "which file?, an example");
  CHECK(typed.word() == "kernels");
  CHECK(choices_in("gpus|models [NAME]") == std::vector<std::string>{"gpus", "models"});
  CHECK(choices_in("N").empty());
}

TEST_CASE("lines of the help are broken below themselves") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word ";
  const std::string item = list_item("name", 10, text);
  CHECK(item.starts_with("  name    word word"));
  CHECK_THAT(item, Contains("\n          word"));
  for (std::size_t at = 0, end = 0; (end = item.find('\n', at)) != item.npos; at = end + 1)
    CHECK(end - at <= 100);
}
