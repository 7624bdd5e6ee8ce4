#include "sim/command/program.hpp"

#include <catch2/catch.hpp>

#include "sim/command/completion.hpp"
#include "sim/command/manual.hpp"

using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

constexpr Option options[] = {
    {"gpu", "NAME", "", "the GPU"},
    {"recompute", "KIND", "plan.recompute", "a key with words"},
    {"leave-out", "source|shape", "", "a choice"},
    {"for", "FILE ...", "", "files"},
    {"set", "KEY=VALUE", "", "any key"},
    {"json", "", "", "a switch"},
};
constexpr Verb bake{"stepcast bake", "[FILE]", 1, "Bakes.", options, "stepcast bake x.toml"};
constexpr Verb look{"stepcast look",     "gpus|keys [NAME]", 2, "Looks 'back\\.", {}, "",
                    "\n.notes:\n  one\n"};

int nothing(const Arguments&, const Catalogue&) { return 0; }

const Command commands[] = {{bake, nothing}, {look, nothing}};
const Program program{"stepcast", "bakes - and looks", commands};
const Verb alone_verb{"stepcast-alone", "FILE", 1, "Alone.", options, ""};
const Command alone_command[] = {{alone_verb, nothing}};
const Program alone{"stepcast-alone", "is alone", alone_command};

Words completed(const Words& typed, const Program& of = program) {
  return completions(of, typed, Catalogue::standard());
}

bool has(const Words& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("the usage lists the verbs, that of a program without verbs its options") {
  CHECK_THAT(usage_of(program), Contains("  bake  Bakes.\n"));
  CHECK_THAT(usage_of(program), Contains("stepcast bakes - and looks.\n"));
  CHECK(usage_of(program).ends_with(exit_codes_text()));
  CHECK_THAT(usage_of(alone), Contains("usage: stepcast-alone FILE [options]\n"));
  CHECK(command_of(program, "look") == &commands[1]);
  CHECK(command_of(program, "loo") == nullptr);
}

TEST_CASE("alone at a terminal a program names its first steps, else its usage") {
  Program welcoming = program;
  welcoming.first_steps = "  stepcast bake x.toml\n";
  const std::string first = opening_of(welcoming, true);
  CHECK_THAT(first, Contains("Try:\n\n  stepcast bake x.toml\n\nstepcast --help"));
  CHECK(opening_of(welcoming, false) == usage_of(program));
  CHECK(opening_of(program, true) == usage_of(program));
}

TEST_CASE("verbs, options and known values are completed") {
  CHECK(completed({"b"}) == Words{"bake"});
  CHECK(completed({"bake", "--j"}) == Words{"--json"});
  CHECK(has(completed({"bake", "--gpu", ""}), "h100"));
  CHECK(completed({"bake", "--leave-out", ""}) == Words{"source", "shape"});
  CHECK(completed({"bake", "--recompute", "s"}) == Words{"selective"});
  CHECK(completed({"bake", "--set", "plan.recom"}) ==
        Words{"plan.recompute=", "plan.recompute_every=", "plan.recompute_modules="});
  CHECK(completed({"look", ""}) == Words{"gpus", "keys"});
  CHECK(completed({"look", "gpus", "v100-sxm2-3"}) == Words{"v100-sxm2-32gb"});
  CHECK(completed({"--s"}, alone).size() == 1);
}

TEST_CASE("where a file is meant, nothing is completed") {
  CHECK(completed({"bake", ""}).empty());
  CHECK(completed({"bake", "--for", ""}).empty());
  CHECK(completed({"bake", "--json", ""}).empty());
  CHECK(completed({"broil", ""}).empty());
}

TEST_CASE("a value behind an equals sign, as one word or as bash's three") {
  CHECK(completed({"bake", "--recompute=s"}) == Words{"--recompute=selective"});
  CHECK(completed({"bake", "--recompute", "=", "s"}) == Words{"selective"});
  CHECK(completed({"bake", "--recompute", "="}) ==
        Words{"none", "selective", "ops", "full", "best"});
  CHECK(completed({"bake", "--set", "plan.recompute", "=", "f"}) == Words{"full"});
  CHECK(completed({"bake", "--set", "plan.recompute=f"}) == Words{"plan.recompute=full"});
}

TEST_CASE("the manual page says everything, as text and not as troff's requests") {
  const std::string page = manual_text(program);
  CHECK(page.starts_with(".TH STEPCAST 1 "));
  for (const Option& option : options)
    CHECK_THAT(page, Contains(option.name == std::string("leave-out")
                                  ? std::string("\\-\\-leave\\-out")
                                  : "\\-\\-" + std::string(option.name)));
  CHECK_THAT(page, Contains("bakes \\- and looks"));
  CHECK_THAT(page, Contains("Looks 'back\\e.\n"));
  CHECK_THAT(page, Contains("\n\\&.notes:\n"));
  CHECK_THAT(page, Contains(".SH LOOK\n") && Contains(".SH EXIT STATUS\n"));
  CHECK_THAT(page, Contains(".B 143\n"));
}
