# Exports of Nsight Systems, written here by Python's sqlite3: the same facts as from Kineto's JSON.
# Usage: nsight.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-validate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
if ! python_with sqlite3; then
  echo "skipped: no python3 with sqlite3"
  exit 77
fi

cat >"$work/run.toml" <<'TOML'
[model]
name = "llama2-1b"
[cluster]
node = "dgx-h100"
nodes = 1
[plan]
data = "ddp"
[batch]
local = 1
TOML

# Four steps of two ranks, as Kineto has them and as Nsight Systems does. Tables and columns are
# those of "SQLite Export Schema Reference", docs.nvidia.com/nsight-systems/2021.5.
cat >"$work/write.py" <<'PY'
import json, sqlite3, sys

folder = sys.argv[1]

def events(rank):
    out, correlation = [], 0
    def gpu(category, name, begin, length, stream=7):
        nonlocal correlation
        correlation += 1
        out.append(("cuda_runtime", "cudaLaunchKernel", begin - 50, 5, 0, correlation, rank))
        out.append((category, name, begin, length, stream, correlation, rank))
    for step in range(4):
        at = 1000 + 100000 * step
        out.append(("user_annotation", "ProfilerStep#%d" % step, at - 100, 95000, 0, -1, rank))
        for call in range(465):
            gpu("kernel", "nvjet_hsh<float, \"x\">", at + call * 60, 50)
        for call in range(22):
            gpu("kernel", "flash_fwd_kernel", at + 28000 + call * 10, 9)
        late = 10000 * rank
        gpu("kernel", "ncclDevKernel_AllReduce_Sum_bf16", at + 30000 + late, 40000 - late, 20)
        for call in range(87):
            gpu("kernel", "ncclDevKernel_AllReduce_Sum_bf16", at + 70000 + call * 9, 3, 20)
        gpu("gpu_memcpy", "Memcpy HtoD", at + 80000, 100, 8)
        gpu("gpu_memset", "Memset (Device)", at + 81000, 100)
    return out

def kineto(rank):
    text = []
    for category, name, begin, length, stream, correlation, _ in events(rank):
        args = {"correlation": correlation}
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            args.update(device=rank, stream=stream)
        text.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 1, "ts": begin,
                     "dur": length, "args": args})
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3"}
    json.dump({"deviceProperties": [device], "traceEvents": text},
              open("%s/rank%d.json" % (folder, rank), "w"))

def nsight(path, ranks, change=""):
    db = sqlite3.connect(path)
    db.executescript("""
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
      CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, busLocation TEXT, totalMemory INT);
      CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT, uuid TEXT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT,
        contextId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT,
        shortName INT, gridX INT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT,
        contextId INT, streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT,
        contextId INT, streamId INT, correlationId INT, globalPid INT, value INT, bytes INT);
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT,
        globalTid INT, correlationId INT, nameId INT, returnValue INT);
      CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, rangeId INT, text TEXT,
        globalTid INT, textId INT, domainId INT);
    """)
    ids = {}
    def string(text):
        if text not in ids:
            ids[text] = len(ids) + 1
            db.execute("INSERT INTO StringIds VALUES (?, ?)", (ids[text], text))
        return ids[text]
    for rank in ranks:
        pid = 4000 + rank
        process = (0x0101 << 48) | (pid << 24)
        db.execute("INSERT INTO TARGET_INFO_GPU VALUES (?, 'NVIDIA H100 80GB HBM3', '', 0)", (rank,))
        db.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, 0, ?, '')", (rank, pid))
        for category, name, begin, length, stream, correlation, _ in events(rank):
            span = (begin * 1000, (begin + length) * 1000)
            gpu = span + (rank, 1, stream, correlation, process)
            if category == "kernel":
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?,?,1)",
                           gpu + (string(name), string(name.split("<")[0])))
            elif category == "gpu_memcpy":
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,64,1)", gpu)
            elif category == "gpu_memset":
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?,?,?,?,?,?,?,0,64)", gpu)
            elif category == "cuda_runtime":
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,?,0)",
                           span + (process | 77, correlation, string("cudaLaunchKernel_v7000")))
            else:
                step = name.split("#")[1]
                range_name = "iteration %s" % step if rank else name
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,0,?,?,?,0)",
                           span + (None if rank else range_name, process | 77, string(range_name)))
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?,NULL,34,0,'step 999',?,NULL,0)",
                           (span[0], process | 77))
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,0,'layer 3',?,NULL,0)",
                           span + (process | 77,))
    if change:
        db.executescript(change)
    db.commit()
    db.close()

for rank in (0, 1):
    kineto(rank)
    nsight("%s/rank%d.sqlite" % (folder, rank), [rank])
nsight(folder + "/both.sqlite", [0, 1])
nsight(folder + "/graphs.sqlite", [0],
       "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT);"
       "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2)")
nsight(folder + "/host.sqlite", [0], "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
nsight(folder + "/bare.sqlite", [0], "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;"
       "DROP TABLE NVTX_EVENTS; DROP TABLE TARGET_INFO_CUDA_DEVICE; DROP TABLE TARGET_INFO_GPU")
nsight(folder + "/back.sqlite", [0], "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 5")
sqlite3.connect(folder + "/other.sqlite").executescript("CREATE TABLE t (a INT)")
PY
"$python" "$work/write.py" "$work" || exit 1

# measured FILES: the measured half of what is printed as JSON, and how the steps were told.
cat >"$work/measured.py" <<'PY'
import json, sys

def measured(value):
    if isinstance(value, dict):
        return {k: measured(v) for k, v in sorted(value.items())
                if k not in ("files", "scenario") and not k.startswith("simulated")}
    return [measured(v) for v in value] if isinstance(value, list) else value
print(json.dumps(measured(json.load(sys.stdin)), indent=1))
PY
measured() {
  "$program" trace "$@" --scenario "$work/run.toml" --json | "$python" "$work/measured.py"
}
measured "$work/rank0.json" "$work/rank1.json" >"$work/kineto.txt"
grep -q '"measured_step_time_s": 0.\(1,\|1000\|0999\)' "$work/kineto.txt" || {
  echo "no step of 100 ms in Kineto's"
  failures=1
}
measured "$work/rank0.sqlite" "$work/rank1.sqlite" >"$work/each.txt"
measured "$work/both.sqlite" >"$work/both.txt"
for other in each both; do
  if ! cmp "$work/kineto.txt" "$work/$other.txt"; then
    diff "$work/kineto.txt" "$work/$other.txt" | head
    failures=$((failures + 1))
  fi
done

run="--scenario $work/run.toml"
# shellcheck disable=SC2086  # two words
{
  expect 0 'Traces of 2 ranks, 2 steps each, told by ProfilerStep' trace "$work/both.sqlite" $run
  expect 0 'gemm  *465 ' trace "$work/rank0.sqlite" $run
  expect 0 'of it waiting for peers *ms *5.00' trace "$work/both.sqlite" $run
  expect 3 'neither ProfilerStep marks nor' trace "$work/bare.sqlite" $run
  expect 3 'holds CUDA graphs as a whole.*cuda-graph-trace=node' trace "$work/graphs.sqlite" $run
  expect 3 'holds no GPU kernel.*nsys profile' trace "$work/host.sqlite" $run
  expect 3 'no export of Nsight' trace "$work/other.sqlite" $run
  expect 3 'KERNEL\[0\]: a kernel of negative duration' trace "$work/back.sqlite" $run
  head -c 20000 "$work/rank0.sqlite" >"$work/short.sqlite"
  expect 3 'short.sqlite: SQLite: ' trace "$work/short.sqlite" $run
  gzip -k "$work/rank0.sqlite"
  expect 3 'is packed.*gunzip' trace "$work/rank0.sqlite.gz" $run
  echo x >"$work/a.nsys-rep"
  expect 3 'nsys export --type sqlite' trace "$work/a.nsys-rep" $run
}
expect 3 'nobody says model.name' trace "$work/both.sqlite"
exit $((failures > 0))
