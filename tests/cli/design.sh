#!/bin/sh
# stepcast design as a user calls it: three answers, bills, limits, refusals; a bill read by Python.
#   design.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

# goal LINES: [design] with these lines, a small model, few plans
goal() {
  printf '[design]\n%s\n' "$1" >"$work/goal.toml"
  cat >>"$work/goal.toml" <<END
[model]
name = "llama2-1b"
sequence = 2048
[batch]
global = 64
[software]
framework = "megatron-core"
[run_goal]
tokens = "20B"
today = "2026-11-23"
[space]
"plan.tensor" = [1, 2]
"plan.context" = [1]
"plan.pipeline" = [1, 2]
"plan.virtual_stages" = [1]
"plan.recompute" = ["none"]
"batch.micro_batch" = [1, 2]
END
}
two='nodes = ["dgx-h100", "dgx-b200"]
sizes = [2, 4]
fabrics = ["rail-optimized", "rail-only"]
oversubscription = [1, 2]'

# Three answers, the bill, what a little more or less changes, what was ruled out, what is assumed.
goal "days = 3
budget = \"2000 USD\"
$two"
expect 0 '^20.0B tokens of llama2-1b in 3.00 days, budget 2.00 thousand USD' design "$work/goal.toml"
whole=$output
for line in 'cheapest.* x dgx-' 'leaf switch of 64 ports' 'cable, node to leaf' '^.* capital ' \
  '^  deadline 2.85 days' '^  budget   2.10 thousand USD' '^  rent  *+20 %' 'rent or own' \
  'offers on .* machines' 'are answers' 'nodes are packed.*the fabric is the job.s own' \
  'dgx-b200: derived 2026-11'; do
  printf '%s\n' "$whole" | grep -q -e "$line" || {
    echo "design: no line \"$line\" in:"
    printf '%s\n' "$whole" | head -20
    failures=$((failures + 1))
  }
done

# A budget counts what is paid: a bought machine whole, a contract to its end; or the run's share.
goal "budget = \"10000 USD\"
budget_counts = \"payback\"
quotes = \"example\"
storage = \"100 USD\"
$two"
expect 0 '^contract of 1 year (quote spring) .* thousand USD .* USD' design "$work/goal.toml"
expect 0 '^cheapest.*, contract of 1 year (quote spring)' design "$work/goal.toml"
expect 0 '^own, above the budget ' design "$work/goal.toml" --set design.budget_counts=cash
expect 0 '"budget_counts": "payback"' design "$work/goal.toml" --json
expect 0 'range of a price holds it in 80 %' design "$work/goal.toml"
expect 3 "'cosh' in 'budget_counts'" design "$work/goal.toml" --set design.budget_counts=cosh
expect 3 "'nobody'" design "$work/goal.toml" --set design.quotes=nobody

# A budget of nothing: exit 4, and the cheapest without it.
goal "budget = \"0 USD\"
$two"
expect 4 '^the cheapest without its budget' design "$work/goal.toml"
expect 4 '"met": false' design "$work/goal.toml" --json
goal "days = 0.0001
$two"
expect 4 '^the cheapest without its deadline' design "$work/goal.toml"
goal "racks = 0
$two"
expect 4 'need more racks than there are' design "$work/goal.toml"
# Ended before it knew: nobody says that nothing meets the goal.
goal "$two"
expect 4 '^nothing was found so far that meets this goal' design "$work/goal.toml" --time 1us
expect 4 '^ *[0-9]* are open$' design "$work/goal.toml" --time 1us

# A random place in a larger fabric is said, and simulated.
goal "$two"
expect 0 'random places of the fabric (seed 7); other jobs take 30 %' design "$work/goal.toml" \
  --set cluster.placement=random cluster.placement_seed=7 cluster.fabric_nodes=128 \
  cluster.other_jobs=0.3
expect 0 'answers' design "$work/goal.toml" --out "$work/out"
expect 3 'is there already' design "$work/goal.toml" --out "$work/out"
# Every "value (low to high)" of the tables is in this order.
grep -oE '[0-9.]+ \([0-9.]+ to [0-9.]+\)' "$work/out/design.txt" | tr -d '()' | awk '
  $2 > $1 || $1 > $4 { wrong = 1; print } END { exit wrong || NR < 2 }' || {
  echo "a value beyond its band"
  failures=$((failures + 1))
}
# What was found runs as a scenario of its own.
expect 0 'step time' run "$work/out/cheapest.toml"

# The goal's own keys are set as any.
goal "$two"
expect 0 'in 99.0 days' design "$work/goal.toml" --set design.days=99
expect 3 "--set design.dasy: .*did you mean 'days'" design "$work/goal.toml" --set design.dasy=9

# Mistakes have a line and a hint.
expect 2 'which' design
goal 'nodes = ["dgx-h1000"]'
expect 3 "goal.toml:2: unknown node 'dgx-h1000'" design "$work/goal.toml"
goal "nodse = 3
$two"
expect 3 "did you mean 'nodes'" design "$work/goal.toml"

# A page to hand on: the answers that are printed, and every picture as a file.
goal "days = 3
budget = \"2000 USD\"
$two"
sed -i '1i title = "<script>hacked=1</script>"' "$work/goal.toml"
"$program" design "$work/goal.toml" --report "$work/d.html" --svg "$work/charts" --json \
  >"$work/d.json" || failures=$((failures + 1))
"$python" "$2/tests/cli/shared/read_page.py" html "$work/d.html" ||
  failures=$((failures + 1))
"$python" - "$work/d.html" "$work/d.json" "$work/charts" <<'END' || failures=$((failures + 1))
import html, json, os, re, sys
import xml.dom.minidom
page = open(sys.argv[1], encoding="utf-8").read()
answer = json.load(open(sys.argv[2], encoding="utf-8"))
text = html.unescape(re.sub(r"<[^>]*>", "|", page))
for aim in ("cheapest", "fastest", "greenest"):  # the first screen
    one = answer[aim]
    assert f"|{aim}|" in text, aim
    place = page.index("The answers</h3>")
    table = page[place:page.index("</table>", place)]
    sure = f"{100 * one['p_goal']:#.3g}".rstrip(".")  # 91.0 and 100
    for figure in (one["racks"], f"{sure} %"):
        assert str(figure) in table, (aim, figure)
for sentence in ("What limits it: ", "Confidence: 80 %", "Proof: ", "nodes are packed",
                 "Resolved scenario: ", "Goal (TOML)", "stepcast design ", "parts/",
                 "deadline||2.85 days", "leaf switch of 64 ports (", "The cheapest of each way, USD",
                 "own, above the budget"):
    assert sentence in text, sentence
for line in answer["cheapest"]["bill"]["lines"]:  # the source and the date of every price
    if line["usd"] is not None:
        assert line["source"] in text and line["date"] in text, line
for row in answer["ruled_out"]:  # counts
    assert f"|{row['offers']:,}|" in text and row["they"] in text, row
for one in answer["limits_moved"]:
    assert one["limit"] in text
pictures = re.findall(r'<figure id="(\w+)">', page)
assert {"bill", "prices", "days_dollars", "ruled_out", "step_parts", "slopes"} <= set(pictures)
assert sorted(os.listdir(sys.argv[3])) == sorted(name + ".svg" for name in pictures)
# The points of the picture are the rows of its table.
svg = xml.dom.minidom.parse(sys.argv[3] + "/days_dollars.svg")
points = [p for p in svg.getElementsByTagName("path")
          if p.getAttribute("class") in ("point", "front") and p.getElementsByTagName("title")]
told = {p.getElementsByTagName("title")[0].firstChild.data.rsplit(": ", 1)[0] for p in points}
figure = page[page.index('<figure id="days_dollars">'):]
table = figure[figure.index("<tbody>"):figure.index("</tbody>")]
rows = {html.unescape(r) for r in re.findall(r'<tr><td class="left">([^<]*)', table)}
assert rows and rows == {t for t in told if "dgx" in t}, (rows, told)
assert "hacked=1" in text and "<script>hacked" not in page
END
[ "$(wc -c <"$work/d.html")" -lt 300000 ] || {
  echo "the page has $(wc -c <"$work/d.html") bytes"
  failures=$((failures + 1))
}
echo mine >"$work/mine.html"
expect 3 'is no report of stepcast' design "$work/goal.toml" --report "$work/mine.html"
expect 7 'nowhere' design "$work/goal.toml" --report "$work/nowhere/d.html"
goal "racks = 0
$two"
expect 4 'need more racks' design "$work/goal.toml" --report "$work/unmet.html"
grep -q 'Nothing meets this goal' "$work/unmet.html" || {
  echo "the page of a goal that nothing meets does not say so"
  failures=$((failures + 1))
}

# Bills add up, by a reader that is not ours.
goal "$two"
"$program" design "$work/goal.toml" --csv "$work/bill.csv" --json >"$work/d.json" 2>/dev/null
"$python" - "$work/bill.csv" "$work/d.json" <<'END' || failures=$((failures + 1))
import csv, json, sys
bills = {}
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    bills.setdefault(row["answer"], []).append(row)
assert bills, "no bill"
for name, rows in bills.items():
    lines = [r for r in rows if r["item"] != "capital"]
    total = next(r for r in rows if r["item"] == "capital")
    for column in ("usd", "watts"):
        said, summed = float(total[column]), sum(float(r[column] or 0) for r in lines)
        assert abs(said - summed) < 1e-6 * said, (name, column, said, summed)
    assert all(r["source"] for r in lines if r["usd"]), name
answer = json.load(open(sys.argv[2], encoding="utf-8"))
assert answer["met"] and answer["cheapest"]["proven"]
assert answer["cheapest"]["usd"]["value"] <= answer["fastest"]["usd"]["value"]
assert answer["fastest"]["days"]["value"] <= answer["cheapest"]["days"]["value"]
assert answer["greenest"]["mwh"] <= answer["cheapest"]["mwh"]
END

# Placement by itself: the same job, elsewhere in the fabric.
job="run --model llama2-7b --gpu h100 --nodes 128 --local-batch 1 --data zero3 --json"
step() { "$program" $job "$@" 2>/dev/null | sed -n 's/^ *"step_time_s": \([0-9.e+-]*\),.*/\1/p'; }
packed=$(step --fabric rail-optimized --set cluster.fabric.oversubscription=4)
random=$(step --fabric rail-optimized --set cluster.fabric.oversubscription=4 cluster.placement=random)
awk "BEGIN { exit !($random > 1.05 * $packed) }" || {
  echo "random places under 4:1 took $random s, packed ones $packed s"
  failures=$((failures + 1))
}
expect 0 'cluster.placement_seed has no effect here: places are not drawn at random' run --model \
  llama2-1b --sequence 512 --gpu h100 --nodes 64 --local-batch 1 --set cluster.placement_seed=3
expect 3 'rail_only needs NVSwitches' run --model llama2-1b --sequence 512 --gpu a100-pcie-80gb \
  --nodes 2 --local-batch 1 --fabric rail-only
expect 0 'rail-only: no switch joins two rails' show cluster --node dgx-h100 --nodes 64 \
  --fabric rail-only

[ $failures -eq 0 ] && echo "a design is found, billed and bounded"
exit $((failures > 0))
