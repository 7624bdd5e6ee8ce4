#include "sim/scripts/shell_text.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/scripts/shell_condition.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

/// The words of the last command.
Words last(const std::string& text) {
  const ShellText shell = read_shell(text, "a.sh");
  return shell.commands.empty() ? Words{} : shell.commands.back().words;
}

}  // namespace

TEST_CASE("variables, defaults and sums of literals are put in") {
  CHECK(last("A=8\nB=$((A * 2 + (1 + 1)))\nrun --a $A --b ${B} --c ${C:-7} --d \"x $A\"") ==
        Words{"run", "--a", "8", "--b", "18", "--c", "7", "--d", "x 8"});
  CHECK(last("N=${NNODES:-\"4\"}\nrun $N") == Words{"run", "4"});
  CHECK(last("export TP=2; run --tp=$TP") == Words{"run", "--tp=2"});
  CHECK(last("A=1\nA+=2\nrun '$A' $A") == Words{"run", "$A", "12"});
}

TEST_CASE("regression: a NUL between words ends nothing, and holds nothing up") {
  const std::string text("run --a 1 \\\n\0\0 --b 2\nrun \0 c", 28);
  CHECK(last(text) == Words{"run", "c"});
  CHECK(last(text.substr(0, 21)) == Words{"run", "--a", "1", "--b", "2"});
}

TEST_CASE("arrays are words of their own, texts are cut at blanks where nothing quotes them") {
  CHECK(last("ARGS=(\n  --a 1  # one\n  --b \"2 3\"\n)\nARGS+=(--c)\nrun \"${ARGS[@]}\" ${#X}") ==
        Words{"run", "--a", "1", "--b", "2 3", "--c", "${#X}"});
  CHECK(last("A=\"--a 1 \\\n  --b 2\"\nrun $A \\\n  --c") ==
        Words{"run", "--a", "1", "--b", "2", "--c"});
  CHECK(last("A=(a b c)\nrun ${A[1]}") == Words{"run", "b"});
}

TEST_CASE("read takes a text apart where IFS says, the last variable has the rest") {
  CHECK(last("C=2,4,8\nIFS=',' read -r TP PP EP <<< \"$C\"\nrun $TP $PP $EP") ==
        Words{"run", "2", "4", "8"});
  CHECK(last("IFS=, read A B <<< 1,2,3\nrun $A $B") == Words{"run", "1", "2,3"});
  CHECK(last("IFS=, read A B C <<< 1,,3\nrun [$A] [$B] [$C]") == Words{"run", "[1]", "[]", "[3]"});
  CHECK(last("read -r A B C <<< \" 1   2 \"\nrun [$A] [$B] [$C]") ==
        Words{"run", "[1]", "[2]", "[]"});
  CHECK(last("IFS=';'\nread -r -d '' A B <<< '1;2'\nrun $A $B") == Words{"run", "1", "2"});
  CHECK(last("IFS=x read -ra A <<< 1x2x3\nrun ${A[2]} ${A[0]}") == Words{"run", "3", "1"});
  CHECK(last("A=0\nread -r A\nrun $A") == Words{"run", "0"});  // of whoever types
}

TEST_CASE("variables that are set before it begins are its own") {
  const ShellText shell = read_shell("run $NODES $((NODES * 2))", "a.sh", {{"NODES", {"4"}}});
  CHECK(shell.commands.back().words == Words{"run", "4", "8"});
}

TEST_CASE("what only a shell knows stays as it is written") {
  CHECK(last("run --data $1 --node $(hostname -s) `date`") ==
        Words{"run", "--data", "$1", "--node", "$(hostname -s)", "$(date)"});
  CHECK(last("run \"$@\"").size() == 1);  // the arguments of whoever calls it
}

TEST_CASE("branches whose condition is of literals are taken, others are named") {
  const std::string choice =
      "if [ \"$KIND\" = big ]; then S=70\nelif [[ $KIND == s* && 1 -lt 2 ]]; then S=8\n"
      "else S=1\nfi\nrun $S\n";
  CHECK(last("KIND=big\n" + choice) == Words{"run", "70"});
  CHECK(last("KIND=small\n" + choice) == Words{"run", "8"});
  CHECK(last("KIND=other\n" + choice) == Words{"run", "1"});
  CHECK(last("A=1\n[ -n \"$KEY\" ] && A=2\n[ -z \"$KEY\" ] && B=3\nrun $A $B") ==
        Words{"run", "1", "3"});
  const ShellText shell = read_shell("A=1\nif [ -f x ]; then A=2; fi\nrun $A", "a.sh");
  CHECK(shell.commands.back().words == Words{"run", "1"});
  REQUIRE(shell.notes.size() == 1);
  CHECK_THAT(shell.notes[0], Contains("line 2") && Contains("for a machine to say"));
}

TEST_CASE("case takes the branch that fits, loops over arguments are left out") {
  CHECK(last("M=7B\ncase $M in\n  70B|65B) L=80;;\n  7B)\n    L=32\n    ;;\n  *) L=1;;\nesac\n"
             "run $L") == Words{"run", "32"});
  CHECK(last("A=1\nwhile [[ $# -gt 0 ]]; do\n case $1 in\n --a) A=$2; shift;;\n esac\ndone\n"
             "run $A") == Words{"run", "1"});
  CHECK(last("for t in 1 2 4; do\n run $t\ndone") == Words{"run", "1"});
}

TEST_CASE("a here-document is the input of its command") {
  const ShellText shell = read_shell(
      "S=3\ncat <<EOF > ds.json\n{\"stage\": $S}\nEOF\nsbatch <<'END'\nrun $S\nEND\n", "a.sh");
  REQUIRE(shell.commands.size() == 2);
  CHECK(shell.commands[0].input == "{\"stage\": 3}\n");
  CHECK(shell.commands[0].output == "ds.json");
  CHECK(shell.commands[1].input == "run $S\n");
}

TEST_CASE("a text that grows or nests beyond reason is refused with its line") {
  CHECK_THROWS_WITH(read_shell("A='x\n", "a.sh"), Contains("a.sh:") && Contains("never closed"));
  std::string doubling = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  CHECK_THROWS_AS(read_shell(doubling, "a.sh"), InputError);
  std::string deep = "A=";
  for (int i = 0; i < 200; ++i) deep += "${A:-";
  CHECK_THROWS_AS(read_shell(deep + std::string(200, '}'), "a.sh"), InputError);
}

TEST_CASE("arithmetic is of whole numbers, and none where it overflows") {
  CHECK(arithmetic("8 * 2048") == 16384);
  CHECK(arithmetic("-(2 + 3) * 4 / 2 % 7") == -3);
  CHECK(arithmetic("1_000") == 1000);
  CHECK_FALSE(arithmetic("2 +"));
  CHECK_FALSE(arithmetic("1 / 0"));
  CHECK_FALSE(arithmetic("9999999999999 * 9999999999999"));
  CHECK_FALSE(arithmetic("2048 tokens"));
}
