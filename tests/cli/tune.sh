# stepcast collective --tune: the file for NCCL's example tuner plugin, read here by the rules of that
# plugin (ext-tuner/example/plugin.c of NCCL 2.28), and what it promises.
#   tune.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

fail() {
  echo "$1"
  failures=$((failures + 1))
}

# plugin.py FILE TABLE LEAST: fails where a line is not as the plugin wants it, a size is left out,
# or a row of the table is not what the plugin would take.
cat >"$work/plugin.py" <<'PY'
import collections, csv, sys

collectives = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}
algorithms = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
protocols = {"ll", "ll128", "simple"}
# updateCollCostTable() of NCCL 2.28: these run Simple alone, and these collectives alone.
simple = {"collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
serves = {"tree": {"allreduce"}, "nvls_tree": {"allreduce"}, "collnet_chain": {"allreduce"},
          "nvls": {"allreduce", "allgather", "reducescatter"},
          "collnet_direct": {"allreduce", "allgather", "reducescatter"},
          "pat": {"allgather", "reducescatter"}, "ring": collectives}

lines = []
for line in open(sys.argv[1]):
    assert len(line) < 256, "longer than MAX_LINE_LENGTH: " + line
    if line[0] in "#\n":
        continue
    fields = [field.strip(" \t") for field in line.rstrip("\n").split(",")]
    assert 8 <= len(fields) <= 10, line
    kind, algorithm, protocol = fields[0], fields[3], fields[4]
    # The plugin takes a word that it does not know for another one, silently.
    assert kind in collectives and algorithm in algorithms and protocol in protocols, line
    assert kind in serves[algorithm] and (protocol == "simple" or algorithm not in simple), line
    least, most, channels, nodes, ranks = map(int, [fields[1], fields[2]] + fields[5:8])
    assert 1 <= channels <= 64 and 1 <= nodes <= ranks, line
    lines.append((kind, nodes, ranks, least, most, algorithm, protocol, channels))
assert lines

ranges = collections.defaultdict(list)
for line in lines:
    ranges[line[:3]].append(line[3:5])
for group, spans in ranges.items():
    assert spans[0][0] == 0 and spans[-1][1] == 2**63 - 1, group
    assert all(a[1] + 1 == b[0] for a, b in zip(spans, spans[1:])), group

def lookup(kind, nodes, ranks, size):
    return next(line[5:] for line in lines
                if line[:3] == (kind, nodes, ranks) and line[3] <= size <= line[4])

rows = list(csv.DictReader(open(sys.argv[2])))
for row in rows:
    found = lookup(row["collective"].replace("_", ""), int(row["nodes"]), int(row["ranks"]),
                   int(row["bytes"]))
    assert " ".join(found[:2]) == row["fastest"] != row["usual"], row
    assert found[2] == int(row["channels"]), row
    assert float(row["gain"]) >= 1 + float(sys.argv[3]) / 100, row
    told = float(row["usual_us"]) / float(row["fastest_us"])
    assert abs(told / float(row["gain"]) - 1) < 1e-6, row
print(len(lines), "lines", len(ranges), "groups", len(rows), "choices",
      " ".join(sorted({line[0] for line in lines})))
PY

# tuned LEAST OPTION...: writes and reads back; prints what the reader counted.
tuned() {
  least=$1
  shift
  "$program" collective "$@" --least-gain "$least" --tune "$work/tuner.csv" \
    --csv "$work/table.csv" >"$work/text" || return 1
  "$python" "$work/plugin.py" "$work/tuner.csv" "$work/table.csv" "$least"
}

counted=$(tuned 10 --gpu h100 --nodes 4) || fail 'the tuner file of 4 nodes'
case $counted in
  *' 55 groups '*'allgather allreduce broadcast reduce reducescatter') ;;
  *) fail "not 5 collectives of 11 groups: $counted" ;;
esac
grep -q 'of 1,265 sizes and groups .* are faster by 10 % or more' "$work/text" || fail 'no summary'
tuned 0 all_reduce --gpu a100 --nodes 2 >"$work/few" || fail 'the tuner file without a least gain'
grep -q ' allreduce$' "$work/few" || fail 'more than the collective that was asked for'
tuned 10 --gpu v100 >/dev/null || fail 'the tuner file of a V100'
tuned 10 --node gb200-nvl72 >/dev/null || fail 'the tuner file of a rack'

# Who pins Ring and Simple leaves nothing to choose.
pinned="--nccl-env NCCL_ALGO=Ring --nccl-env NCCL_PROTO=Simple"
# shellcheck disable=SC2086
tuned 0 --gpu h100 $pinned >"$work/none" || fail 'the tuner file under NCCL_ALGO'
grep -q ' 0 choices ' "$work/none" || fail 'a choice where NCCL has none'
expect 0 'of [0-9,]* sizes and groups 0 are faster' collective --gpu h100 $pinned --tune "$work/t"

# A choice is as fast as when NCCL's own variables force it.
"$program" collective all_reduce --gpu h100 --tune "$work/t" --csv "$work/t.csv" >/dev/null
awk -F, '$3 == 8 && $4 == 262144 { print $7, $8 }' "$work/t.csv" >"$work/choice"
read -r algorithm protocol promised <"$work/choice" || fail 'no gain at 256 KiB on 8 H100'
forced=$("$program" collective all_reduce --gpu h100 --bytes 256KiB --json \
  --nccl-env "NCCL_ALGO=$algorithm" --nccl-env "NCCL_PROTO=$protocol" |
  awk -F'[:,]' '$1 ~ /"time_us"/ { print $2; exit }')
awk "BEGIN { exit !(${forced:-0} > 0 && $forced / $promised < 1.001 && $forced / $promised > 0.999) }" ||
  fail "promised $promised us, forced $forced us"

expect 0 '^# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks' \
  collective all_gather --gpu h100 --tune -
expect 0 'NCCL.s .* fastest ' collective --gpu h100 --tune "$work/t" --sort gain --top 3
expect 2 'NCCL chooses no algorithm for' collective all_to_all --gpu h100 --tune "$work/t"
expect 2 'bytes beside --tune' collective --gpu h100 --bytes 1MiB --tune "$work/t"
expect 2 'json beside --tune' collective --gpu h100 --json --tune "$work/t"
expect 2 'is for --tune' collective all_reduce --gpu h100 --bytes 1MiB --least-gain 5
expect 2 'is no percentage' collective --gpu h100 --tune "$work/t" --least-gain much
expect 7 'cannot be' collective --gpu h100 --tune "$work/none/t"
expect 2 'which collective' collective --gpu h100 --bytes 1MiB
exit $((failures > 0))
