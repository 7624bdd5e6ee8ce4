"""What is trained and forecast here: as small as it gets."""

tiny = """
[model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
node = "host"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
"""

points = """
[model]
name = "llama3-8b"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero3"
[batch]
local = 1
[sweep]
"model.layers" = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]
"batch.local" = [1, 2]
"""

two_plans = """
[sweep]
"plan.data" = ["ddp", "zero3"]
"""

# Searches end in a moment.
few_plans = ["--framework", "pytorch-fsdp2"] + [
    word for value in ("reduce=software", "prefetch=1", "recompute_every=1", "data=zero3")
    for word in ("--fix", f"plan.{value}")]


def few_machines(goal):
    """Of the text of a goal's file."""
    return goal.replace('"dgx-h100", ', "").replace("[64, 128]", "[64]")


# A cluster in a box, of what tiny trains.
nodes = tiny.replace('node = "host"', '''nodes = 2
[cluster.node]
name = "host"
gpus = 1
nic = "1 Gbit/s"
[cluster.fabric]
name = "fat-tree"''')
