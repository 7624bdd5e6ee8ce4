#!/bin/sh
# stepcast run and why --timeline: the same step as JSON, packed, and for Perfetto, which protoc
# reads; ranks to show; a size that is said before it is written.
#   timeline.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/protobuf_reader.sh
. "$2/tests/cli/shared/protobuf_reader.sh"

step="--model llama2-7b --gpu h100 --nodes 1 --data zero1 --tensor 2 --pipeline 2 --micro-batch 1
  --global-batch 16 --framework megatron-lm"
for verb in run why; do
  for ending in json json.gz pftrace pftrace.gz; do
    # shellcheck disable=SC2086 # several words
    expect 0 "^step" $verb $step --timeline "$work/$verb.$ending"
  done
done
# shellcheck disable=SC2086
expect 0 "^step" run $step --timeline "$work/ranks.json" --timeline-ranks 1,4-5
# shellcheck disable=SC2086
expect 0 "^step" run $step --timeline "$work/all.json" --timeline-ranks all
# shellcheck disable=SC2086
expect 0 "^step" run $step --no-fold --timeline "$work/unfolded.json"
# shellcheck disable=SC2086
expect 2 "no rank 'x'" run $step --timeline "$work/no.json" --timeline-ranks x
# shellcheck disable=SC2086
expect 2 "is of --timeline FILE" run $step --timeline-ranks all
# shellcheck disable=SC2086
expect 2 "is of --timeline FILE" why $step --timeline-limit 1GB

# Said before it is written: about 900 MB.
large="--model llama2-7b --gpu h100 --nodes 256 --data zero2 --local-batch 1"
for verb in run why; do
  # shellcheck disable=SC2086
  expect 0 "^step" $verb $step --timeline "$work/small.json" --timeline-limit 100MB
  # shellcheck disable=SC2086
  expect 3 "would be about .* ranks), ask for fewer ranks" \
    $verb $step --timeline "$work/no.json" --timeline-limit 100kB
done
# shellcheck disable=SC2086
expect 3 "would be about .* of 2048 of 2048 ranks" \
  run $large --timeline "$work/no.json" --timeline-ranks all
# shellcheck disable=SC2086
expect 3 "there is no rank 8, the last one is 7" \
  run $step --timeline "$work/no.json" --timeline-ranks 8
[ -e "$work/no.json" ] && { echo "a refused timeline is there"; failures=$((failures + 1)); }

protoc -I "$2/tests/cli/shared" --python_out="$work" perfetto.proto || failures=$((failures + 1))
"$python" - "$work" <<'END_OF_SCRIPT' || failures=$((failures + 1))
import collections, gzip, json, sys

folder = sys.argv[1]
sys.path.insert(0, folder)
import perfetto_pb2


def chrome(name):
    """Slices, counters and arrows by process, as JSON has them; times in ns."""
    with open(f"{folder}/{name}") as file:
        events = json.load(file)["traceEvents"]
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    track = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [
        (process[e["pid"]], track[e["pid"], e["tid"]], e["name"], e["cat"], e["ts"] * 1e3,
         (e["ts"] + e["dur"]) * 1e3, e["args"])
        for e in events if e["ph"] == "X"
    ]
    values = [(process[e["pid"]], e["name"], *e["args"], e["ts"] * 1e3, *e["args"].values())
              for e in events if e["ph"] == "C"]
    arrows = {end: [e for e in events if e["ph"] == end] for end in "sf"}
    return process, slices, values, arrows


def perfetto(data):
    """The same of Perfetto's packets, names looked up as a viewer does."""
    trace = perfetto_pb2.Trace()
    assert trace.ParseFromString(data) == len(data)
    assert trace.packet[0].sequence_flags == 3
    names = collections.defaultdict(dict)
    tracks, open_slices, slices, values, flows = {}, {}, [], [], collections.defaultdict(list)
    last = collections.defaultdict(int)
    for p in trace.packet:
        assert p.trusted_packet_sequence_id == 1
        for kind in ("event_categories", "event_names", "debug_annotation_names"):
            for entry in getattr(p.interned_data, kind):
                assert entry.iid not in names[kind]
                names[kind][entry.iid] = entry.name
        if p.HasField("track_descriptor"):
            assert p.track_descriptor.uuid not in tracks
            tracks[p.track_descriptor.uuid] = p.track_descriptor
        if not p.HasField("track_event"):
            continue
        e = p.track_event
        track = tracks[e.track_uuid]
        process = tracks[track.parent_uuid].process.process_name
        assert p.timestamp >= last[e.track_uuid], "time goes on, on every track"
        last[e.track_uuid] = p.timestamp
        if e.type == 4:
            values.append((process, track.name, track.counter.unit_name, p.timestamp,
                           e.double_counter_value))
        elif e.type == 1:
            assert e.track_uuid not in open_slices, "a lane does one thing at a time"
            args = {}
            for a in e.debug_annotations:
                value = [getattr(a, f.name) for f, _ in a.ListFields() if f.name != "name_iid"]
                args[names["debug_annotation_names"][a.name_iid]] = value[0]
            open_slices[e.track_uuid] = (process, track.name, names["event_names"][e.name_iid],
                                         names["event_categories"][e.category_iids[0]],
                                         p.timestamp, args)
            for flow in e.flow_ids:
                flows[flow].append(("from", process, track.name, p.timestamp))
            for flow in e.terminating_flow_ids:
                flows[flow].append(("to", process, track.name, p.timestamp))
        else:
            assert e.type == 2
            *begin, args = open_slices.pop(e.track_uuid)
            slices.append((*begin, p.timestamp, args))
    assert not open_slices
    return tracks, slices, values, flows


for verb in ("run", "why"):
    with open(f"{folder}/{verb}.json") as plain, gzip.open(f"{folder}/{verb}.json.gz") as packed:
        assert plain.read().encode() == packed.read()
    with open(f"{folder}/{verb}.pftrace", "rb") as plain:
        data = plain.read()
    with gzip.open(f"{folder}/{verb}.pftrace.gz") as packed:
        assert packed.read() == data
    process, slices, values, arrows = chrome(f"{verb}.json")
    tracks, other_slices, other_values, flows = perfetto(data)
    assert len(process) == (2 if verb == "run" else 3), process  # two stages, the path
    assert any(" alike)" in name for name in process.values()), process

    key = lambda s: (s[0], s[1], s[4], s[5], s[2])
    rounded = [(*s[:4], round(s[4]), round(s[5]), s[6]) for s in slices]
    assert len(rounded) == len(other_slices) > 1000
    for ours, theirs in zip(sorted(rounded, key=key), sorted(other_slices, key=key)):
        assert ours[:4] == theirs[:4], (ours, theirs)
        assert abs(ours[4] - theirs[4]) <= 1 and abs(ours[5] - theirs[5]) <= 1, (ours, theirs)
        assert ours[6].keys() == theirs[6].keys(), (ours, theirs)
        for name, value in ours[6].items():
            same = theirs[6][name]
            assert value == same or abs(value - same) < 1e-6 * abs(value), (name, value, same)

    assert {v[1:3] for v in values} == {("power", "W"), ("memory allocated", "GiB"),
                                        ("bytes in flight", "MB")}
    assert len(values) == len(other_values)
    for ours, theirs in zip(values, other_values):
        assert ours[:3] == theirs[:3] and ours[4] == theirs[4] and abs(ours[3] - theirs[3]) <= 1

    numbers = [e["id"] for e in arrows["s"]]
    assert numbers == [e["id"] for e in arrows["f"]] and len(set(numbers)) == len(numbers)
    kinds = collections.Counter(e["cat"] for e in arrows["s"])
    assert kinds["message"] > 0 and (kinds["path"] > 0) == (verb == "why"), kinds
    for start, end in zip(arrows["s"], arrows["f"]):
        assert end["ts"] >= start["ts"]
        if start["cat"] == "message":
            assert start["pid"] != end["pid"]
    # Every arrow has both ends on slices of Perfetto, first where it leaves.
    assert set(flows) == set(numbers)
    for ends in flows.values():
        assert sorted(e[0] for e in ends) == ["from", "to"], ends

# The slices of a rank are those of the one that stands for it.
ranks = {}
for name in ("ranks.json", "all.json", "unfolded.json", "run.json"):
    process, slices, _, _ = chrome(name)
    found = collections.defaultdict(list)
    for s in slices:
        found[int(s[0].split("rank ")[1].split()[0])].append(s[1:])
    ranks[name] = found
assert sorted(ranks["ranks.json"]) == [1, 4, 5], sorted(ranks["ranks.json"])
assert sorted(ranks["all.json"]) == list(range(8))
assert sorted(ranks["unfolded.json"]) == sorted(ranks["run.json"]) == [0, 4]
for name, found in ranks.items():
    for rank, slices in found.items():
        assert slices == ranks["all.json"][rank], (name, rank)
END_OF_SCRIPT
exit $((failures > 0))
