"""Within the process: the program's answers to the last digit, other threads run meanwhile, and an
interrupt ends it."""
import os
import signal
import subprocess
import sys
import threading

import stepcast
from stepcast._call import _ask
from stepcast._program import module, program

assert stepcast.engine() == "module" and module() is not None
step = ["--model=llama2-7b", "--gpu=h100", "--nodes=2", "--data=zero2", "--local-batch=1"]
small = ["--model=llama2-7b", "--gpu=h100", "--nodes=1", "--global-batch=16", "--framework=torchtitan",
         "--fix=plan.pipeline=[1, 2]", "--fix=plan.context=1"]
calls = [
    ["run", *step],
    ["run", *step, "--set=plan.tensor=2", "--nccl-env=NCCL_ALGO=Ring"],
    ["run", *step, "--set=sweep.cluster.nodes=[1, 2, 4]", "--threads=2"],
    ["sweep", *step, '--set=sweep.plan.data=["ddp", "zero3"]'],
    ["run", "--model=llama2-70b", "--gpu=h100", "--nodes=1", "--data=ddp", "--local-batch=1"],
    ["run", *step[:-2], "--set=plan.tensor=\"best\"", "--global-batch=32"],
    ["collective", "all_reduce", "--gpu=h100", "--nodes=4", "--bytes=1 GiB"],
    ["compare", *step[:1], *step[2:], "--gpu=a100,h100"],
    ["compare", *step, "--what-if=node.nic x2", "--what-if=plan.data=zero3", "--threads=2"],
    ["compare", *step, "--without=all"],
    ["search", *small],
    ["search", *small, "--set=plan.tensor=2", "--top=3", "--tokens=1T", "--price=2.5",
     "--objective=dollars-per-token"],
    ["search", *small, "--all", "--fix=plan.data=zero2", "--fix=plan.prefetch=1",
     "--objective=joules-per-token"],
]
# To the program: mistakes, and what writes files or prints more.
calls_left = [
    ["run", *step, "--set=plan.tensr=2"],
    ["collective", "all_reduce", "--gpu=h100", "--nodes=4", "--bytes=1 GiB", "--explain"],
    ["sweep", *step],
    ["compare", *step],
    ["search", *small, "--set=plan.tensor=3"],
    ["search", *small, "--time=1us"],
    ["search", *small, "--objective=dollars-per-token"],
]
session = module().Session(program())
for call in calls + calls_left:
    said = subprocess.run([program(), *call, "--json"], capture_output=True, text=True)
    mine = session.answer([*call, "--json"])
    left = call in calls_left
    assert (mine is None) == left, call
    if left:
        assert _ask([*call, "--json"])[:2] == (said.returncode, said.stdout), call
    else:
        assert mine.strip() == said.stdout.strip(), call

# Threads of Python share a session, and get the answers that each gets alone.
alone = [stepcast.run(model="llama2-7b", gpu="h100", nodes=n, data="zero3", local_batch=1)
         for n in (1, 2, 4, 8)]
stepcast.forget()
together = [None] * 4


def work(i):
    together[i] = stepcast.run(model="llama2-7b", gpu="h100", nodes=2**i, data="zero3",
                               local_batch=1)


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert together == alone

# An interrupt stops a long sweep after the points that run, long before its end; so a comparison
# and a search. Undisturbed each takes seven seconds or more.
signal.signal(signal.SIGINT, signal.default_int_handler)  # behind a shell's & it is ignored
many = [f"gpu.memory_bandwidth={3000 + i} GB/s" for i in range(60)]
for ask in (lambda: stepcast.sweep(model="llama2-7b", gpu="h100", nodes=2, data="zero2",
                                   local_batch=1, sweep={"run.seed": range(1, 200_001)}),
            lambda: stepcast.compare(model="llama2-70b", gpu="h100", nodes=256, data="zero3",
                                     recompute="full", local_batch=1, what_if=many),
            lambda: stepcast.search(model="llama2-70b", gpu="h100", nodes=512, global_batch=4096,
                                    all=True)):
    try:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        ask()
        sys.exit("what takes seconds was not interrupted")
    except KeyboardInterrupt:
        pass
