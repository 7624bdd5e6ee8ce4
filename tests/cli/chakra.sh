#!/bin/sh
# stepcast export --chakra, and stepcast replay of what it wrote and of what others write: read by
# protoc, field by field as ASTRA-sim's feeder does, and run again to the same step.
#   chakra.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/protobuf_reader.sh
. "$2/tests/cli/shared/protobuf_reader.sh"

step="--model llama2-7b --gpu h100 --nodes 1 --data zero1 --tensor 2 --pipeline 2 --micro-batch 1
  --global-batch 16 --framework megatron-lm --set model.layers=8"
sharded="--model llama2-7b --gpu h100 --nodes 2 --data zero3 --local-batch 1 --set model.layers=8"
# shellcheck disable=SC2086 # several words
expect 0 "8 files, .* nodes, .* process groups" export $step --chakra "$work/all"
# shellcheck disable=SC2086
expect 0 "2 files, " export $step --chakra "$work/classes" --ranks classes
# shellcheck disable=SC2086
expect 0 "1 files, " export $sharded --chakra "$work/sharded" --ranks classes
# shellcheck disable=SC2086
expect 3 "is there and not empty, nothing is overwritten" export $step --chakra "$work/all"
# shellcheck disable=SC2086
expect 3 "would be about .* (2048 of 2048 ranks), one file for all" \
  export --model llama2-7b --gpu h100 --nodes 256 --data zero2 --local-batch 1 \
  --chakra "$work/large"
# shellcheck disable=SC2086
expect 2 "where shall the trace be written" export $step
# shellcheck disable=SC2086
expect 3 "makes every step another" \
  export $step --chakra "$work/noisy" --set noise.kernel_sigma=0.01
expect 2 "which folder" replay --gpu h100
expect 3 "has no Chakra trace" replay "$2/docs" --gpu h100 --nodes 1
expect 3 "has 16 ranks, the cluster has 8 GPUs" replay "$work/sharded" --gpu h100 --nodes 1
expect 0 "recorded step" replay "$work/all" --gpu h100 --nodes 1
expect 0 "^stepcast,schema,step_s,ranks,files" replay "$work/all" --gpu h100 --nodes 1 --csv -
# As ASTRA-sim runs it: one step from rest.
expect 0 "^step" replay "$work/all" --gpu h100 --nodes 1 --once
# Another network than that of the recording: the same compute, other collectives.
expect 0 "dgx-a100" replay "$work/sharded" --gpu a100 --nodes 2

# A part of a rank alone is refused with the file and what is missing.
mkdir "$work/part" "$work/torn"
cp "$work/all/step.0.et" "$work/all/comm_group.json" "$work/part"
expect 3 "step.0.et: meets rank 1, the trace has 1 ranks" replay "$work/part" --gpu h100 --nodes 1
head -c 20000 "$work/all/step.0.et" >"$work/torn/step.0.et"
expect 3 "torn/step.0.et: ends in the middle of a message, copy it again" \
  replay "$work/torn" --gpu h100 --nodes 1

protoc -I "$2/tests/cli/shared" --python_out="$work" chakra.proto || failures=$((failures + 1))
"$python" - "$program" "$work" "$step" "$sharded" <<'END_OF_SCRIPT' || failures=$((failures + 1))
import collections, glob, json, os, subprocess, sys

program, work, step, sharded = sys.argv[1:]
sys.path.insert(0, work)
import chakra_pb2


def answer(verb, *words):
    out = subprocess.run([program, verb, *words, "--json"], check=True, capture_output=True)
    return json.loads(out.stdout)


def varint(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def messages(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        assert at + length <= len(data)
        yield data[at:at + length]
        at += length


def read(path):
    first, *rest = messages(path)
    head = chakra_pb2.GlobalMetadata.FromString(first)
    return head, [chakra_pb2.Node.FromString(m) for m in rest]


# What the feeder's getters ask for, and of which type (et_feeder_node: int64 for comm_size).
COMP, SEND, RECV, COLL = 4, 5, 6, 7
wanted = {
    COMP: {"is_cpu_op": "bool_val", "num_ops": "int64_val", "tensor_size": "uint64_val"},
    SEND: {"is_cpu_op": "bool_val", "comm_size": "int64_val", "comm_src": "int32_val",
           "comm_dst": "int32_val", "comm_tag": "int32_val"},
    COLL: {"is_cpu_op": "bool_val", "comm_size": "int64_val", "comm_type": "int64_val",
           "pg_name": "string_val"},
}
wanted[RECV] = wanted[SEND]

with open(f"{work}/all/comm_group.json") as file:
    groups = json.load(file)
assert all(int(name) > 0 and len(ranks) > 1 for name, ranks in groups.items()), groups

seen = collections.Counter()
messages_sent = collections.Counter()
calls = collections.defaultdict(list)
for path in sorted(glob.glob(f"{work}/all/step.*.et")):
    rank = int(path.split(".")[-2])
    head, nodes = read(path)
    facts = {a.name: a.string_val for a in head.attr}
    assert head.version and facts["stands_for"] == str(rank), facts
    known = set()
    for n in nodes:
        assert n.id not in known and n.name
        assert all(d in known for d in n.data_deps), "what is awaited stands before it"
        assert not n.ctrl_deps and len(set(n.data_deps)) == len(n.data_deps)
        known.add(n.id)
        attr = {a.name: a for a in n.attr}
        for name, kind in wanted[n.type].items():
            assert attr[name].WhichOneof("value") == kind, (n.name, name)
        seen[n.type, attr["is_cpu_op"].bool_val] += 1
        if n.type == COMP:
            assert attr["num_ops"].int64_val > 0 and attr["tensor_size"].uint64_val > 0
        elif n.type == COLL:
            group = attr["pg_name"].string_val
            assert rank in groups[group] and attr["comm_size"].int64_val > 0
            calls[group, rank].append((attr["comm_type"].int64_val, attr["comm_size"].int64_val))
        else:
            ends = attr["comm_src"].int32_val, attr["comm_dst"].int32_val
            assert ends[0 if n.type == SEND else 1] == rank and ends[0] != ends[1]
            key = (*ends, attr["comm_tag"].int32_val, attr["comm_size"].int64_val)
            messages_sent[key] += 1 if n.type == SEND else -1
assert set(seen) == {(COMP, False), (COMP, True), (COLL, False), (SEND, False), (RECV, False)}, seen
assert not any(messages_sent.values()), "all that is sent is received"
for name, ranks in groups.items():
    for rank in ranks:
        assert calls[name, rank] == calls[name, ranks[0]], (name, rank)

# FLOPs are those of the step; AllGather says its share.
_, nodes = read(f"{work}/sharded/step.0.et")
run = answer("run", *sharded.split())
flops = sum(a.int64_val for n in nodes for a in n.attr if a.name == "num_ops")
gather = next(n for n in nodes if n.name == "layer.gather")
size = next(a.int64_val for a in gather.attr if a.name == "comm_size")
assert 0.5 < flops / (run["model_tflops_per_gpu"] * 1e12 * run["step_time_s"]) < 2, flops
assert abs(size * 16 / (2 * 202383360) - 1) < 1e-3, size  # a layer of llama2-7b in bf16

# Read back to the same step; one file for those alike is as all files.
for folders, words in ((("all", "classes"), step), (("sharded",), sharded)):
    run = answer("run", *words.split())
    nodes = str(run["nodes"])
    steps = []
    for folder in folders:
        back = answer("replay", f"{work}/{folder}", "--gpu", "h100", "--nodes", nodes)
        assert back["recorded_step_s"] == run["step_time_s"], (back, run["step_time_s"])
        assert abs(back["step_s"] / run["step_time_s"] - 1) < 0.005, (folder, back)
        assert abs(back["compute_s"] / run["compute_s"] - 1) < 0.005, (folder, back)
        parts = sum(value for key, value in back.items() if key.endswith("_s") and key not in
                    ("step_s", "recorded_step_s", "most_compute_s"))
        assert abs(parts / back["step_s"] - 1) < 1e-9, back
        steps.append(back["step_s"])
    assert len(set(steps)) == 1, steps

# Rings, experts, interleaved stages: the same, whichever way.
for words in (
    "--model llama2-7b --gpu h100 --nodes 2 --data zero1 --tensor 2 --context 2 --micro-batch 1"
    " --global-batch 16 --framework megatron-lm",
    "--model mixtral-8x7b --gpu h100 --nodes 2 --framework megatron-core --data zero1 --expert 8"
    " --global-batch 16 --sequence 4096 --ignore-memory",
    "--model llama2-7b --gpu h100 --nodes 1 --data zero1 --tensor 2 --pipeline 2"
    " --virtual-stages 2 --micro-batch 1 --global-batch 16 --framework megatron-lm",
):
    run = answer("run", *words.split())
    steps = set()
    for ranks in ("all", "classes"):
        folder = f"{work}/{ranks}{len(words)}"
        answer("export", *words.split(), "--chakra", folder, "--ranks", ranks)
        back = answer("replay", folder, "--gpu", "h100", "--nodes", str(run["nodes"]))
        assert abs(back["step_s"] / run["step_time_s"] - 1) < 0.005, (words, back)
        steps.add(back["step_s"])
    assert len(steps) == 1, (words, steps)

# Traces as others write them: protobuf's own encoder, no streams, groups by their names.
def write(folder, rank, nodes):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/x.{rank}.et", "wb") as file:
        for message in (chakra_pb2.GlobalMetadata(version="0.0.4"), *nodes):
            data = message.SerializeToString()
            length = len(data)
            while length >= 128:
                file.write(bytes([length & 127 | 128]))
                length >>= 7
            file.write(bytes([length]) + data)


def node(number, kind, us=0, deps=(), **attributes):
    out = chakra_pb2.Node(id=number, name=f"n{number}", type=kind, duration_micros=us,
                          data_deps=deps)
    for name, value in attributes.items():
        text = isinstance(value, str)
        out.attr.add(name=name, **{"string_val" if text else "uint64_val": value})
    return out


for rank in range(2):
    write(f"{work}/others", rank, [
        node(10, COMP, 100), node(11, COLL, 0, [10], comm_type=0, comm_size=1 << 20, pg_name="g"),
        node(12, COMP, 400, [10]), node(13, COMP, 50, [11, 12])])
with open(f"{work}/others/comm_group.json", "w") as file:
    json.dump({"g": [0, 1]}, file)
words = (f"{work}/others", "--gpu", "h100", "--nodes", "1", "--once")
back = answer("replay", *words)
assert abs(back["step_s"] - 550e-6) < 1e-12, back  # the collective runs beside 400 us of compute
assert abs(back["compute_s"] - 550e-6) < 1e-12, back

def refused(nodes, words):
    write(f"{work}/bad", 0, nodes)
    run = subprocess.run([program, "replay", f"{work}/bad", "--gpu", "h100", "--nodes", "1"],
                         capture_output=True, text=True)
    assert run.returncode == 3 and "bad/x.0.et: " in run.stderr, run
    assert words in run.stderr, run.stderr

refused([node(1, 9)], "is of type 9, which is not read")
refused([node(1, COMP, 5, [2]), node(2, COMP, 5, [1])], "a cycle of 2 nodes")
refused([node(1, COMP, 5, [7])], "waits for node 7, which is not there")
refused([node(1, COLL, 5, comm_type=3, comm_size=8)], "NCCL has no such collective")
END_OF_SCRIPT
exit $((failures > 0))
