// The script that trains by fsdp.json. Names of torch are those of its release 2.6 and later
// (recalled, 2026-11): torch.distributed.fsdp (fully_shard, MixedPrecisionPolicy), .device_mesh,
// .tensor.parallel, .pipelining.schedules, .tensor.experimental (context_parallel),
// torch.utils.checkpoint (create_selective_checkpoint_contexts).
#include "sim/launch/fsdp_script.hpp"

#include <fmt/format.h>

#include "workloads/plan/transformer.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* script =
    R"py("""Trains a model of Llama's or GPT's layers by the plan of fsdp.json, on tokens drawn at random.

Arguments: fsdp.json [STEPS]; each rank is one process of torchrun. Your data go into batches();
learning rate and checkpoints are yours as well. Needs torch 2.6 or later. It prints a line a step,
as Megatron-LM does: stepcast validate trace reads it.
"""
import contextlib
import functools
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.head_dim = shape["head_dim"]
        self.rotates = shape["rope"]
        linear = functools.partial(nn.Linear, bias=shape["biases"])
        self.q = linear(shape["hidden"], shape["heads"] * self.head_dim)
        self.k = linear(shape["hidden"], shape["kv_heads"] * self.head_dim)
        self.v = linear(shape["hidden"], shape["kv_heads"] * self.head_dim)
        self.out = linear(shape["heads"] * self.head_dim, shape["hidden"])
        self.core = Core()

    def forward(self, x, positions):
        # Between tensor ranks each has some of the heads: their number follows from the width.
        q, k, v = (p(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
                   for p in (self.q, self.k, self.v))
        if self.rotates:
            q, k = rotated(q, positions), rotated(k, positions)
        return self.out(self.core(q, k, v).transpose(1, 2).flatten(-2))


class Core(nn.Module):
    def forward(self, q, k, v):
        groups = q.shape[1] // k.shape[1]
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def rotated(x, positions):
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = positions[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        linear = functools.partial(nn.Linear, bias=shape["biases"])
        self.gate = linear(shape["hidden"], shape["ffn_hidden"]) if gated(shape) else None
        self.up = linear(shape["hidden"], shape["ffn_hidden"])
        self.down = linear(shape["ffn_hidden"], shape["hidden"])

    def forward(self, x):
        if self.gate is None:
            return self.down(F.gelu(self.up(x)))
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.attention_norm, self.mlp_norm = norm(shape), norm(shape)
        self.attention, self.mlp = Attention(shape), Mlp(shape)

    def forward(self, x, positions):
        x = x + self.attention(self.attention_norm(x), positions)
        return x + self.mlp(self.mlp_norm(x))


class Part(nn.Module):
    """The layers of one part of the model; the first has the embedding, the last the head."""

    def __init__(self, shape, layers, first, last, sequence):
        super().__init__()
        hidden, vocab = shape["hidden"], shape["vocab"]
        self.register_buffer("positions", torch.arange(sequence), persistent=False)
        self.tokens = nn.Embedding(vocab, hidden) if first else None
        learned = first and not shape["rope"]
        self.places = nn.Embedding(shape["max_positions"], hidden) if learned else None
        self.layers = nn.ModuleList(Block(shape) for _ in range(layers))
        self.norm = norm(shape) if last else None
        self.head = nn.Linear(hidden, vocab, bias=False) if last else None
        self.tied = shape["tied_embeddings"]
        self.tie()

    def tie(self):
        if self.tied and self.tokens is not None and self.head is not None:
            self.head.weight = self.tokens.weight

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x)
            if self.places is not None:
                x = x + self.places(self.positions[None])
        for layer in self.layers:
            x = layer(x, self.positions)
        return x if self.head is None else self.head(self.norm(x))


def gated(shape):
    return shape["activation"] == "swiglu"


def norm(shape):
    return (nn.RMSNorm if shape["norm"] == "rmsnorm" else nn.LayerNorm)(shape["hidden"])


def parts_of(plan, rank):
    """Numbers of the model's parts on this stage: in turn, or there and back again."""
    stages = plan["init_device_mesh"]["pp"]
    count = len(plan["pipelining"]["layers_per_part"]) if stages > 1 else 1
    if stages > 1 and plan["pipelining"]["schedule"] in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV"):
        return [rank, count - 1 - rank]
    return list(range(rank, count, stages))


def part(plan, number):
    pipelining = plan.get("pipelining")
    layers = pipelining["layers_per_part"] if pipelining else [plan["model"]["layers"]]
    last = len(layers) - 1
    if last > 0 and plan["model"]["tied_embeddings"]:
        sys.exit("fsdp.json: embedding and head share weights, and lie on different stages")
    with torch.device("meta"):
        return Part(plan["model"], layers[number], number == 0, number == last,
                    plan["training"]["sequence_length"])


def cut_between_tensor_ranks(module, mesh, sequence_parallel):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)
    between = Shard(1) if sequence_parallel else Replicate()
    whole = {"input_layouts": (between, None), "desired_input_layouts": (Replicate(), None)}
    block = {
        "attention": PrepareModuleInput(**whole),
        "mlp": PrepareModuleInput(input_layouts=between, desired_input_layouts=Replicate()),
        "attention.out": RowwiseParallel(output_layouts=between),
        "mlp.down": RowwiseParallel(output_layouts=between),
    }
    for name in ("attention.q", "attention.k", "attention.v", "mlp.gate", "mlp.up"):
        block[name] = ColwiseParallel()
    if sequence_parallel:
        block["attention_norm"] = block["mlp_norm"] = SequenceParallel()
    for layer in module.layers:
        has = {name: how for name, how in block.items() if layer.get_submodule(name) is not None}
        parallelize_module(layer, mesh, has)
    ends = {
        "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "places": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "head": ColwiseParallel(input_layouts=between, output_layouts=Shard(-1),
                                use_local_output=False),
    }
    if sequence_parallel:
        ends["norm"] = SequenceParallel()
    parallelize_module(module, mesh, {
        name: how for name, how in ends.items() if getattr(module, name) is not None})
    module.tie()


def kept_operators():
    """Saves attention, exchanges and every second product; all else runs again in backward."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
    ops = torch.ops
    always = {ops.aten._scaled_dot_product_flash_attention.default,
              ops.aten._scaled_dot_product_efficient_attention.default,
              ops._c10d_functional.reduce_scatter_tensor.default}
    products = {False: 0, True: 0}

    def policy(context, op, *arguments, **named):
        if op is ops.aten.mm.default:
            products[context.is_recompute] += 1
            keep = products[context.is_recompute] % 2 == 1
        else:
            keep = op in always
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def run_again(module, mode, every):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    wrap = functools.partial(checkpoint_wrapper, preserve_rng_state=False)
    for number, layer in enumerate(module.layers):
        if mode == "full" and number % every == 0:
            module.layers[number] = wrap(layer)
        elif mode == "ops":
            module.layers[number] = wrap(layer, context_fn=kept_operators)
        elif mode == "selective":
            layer.attention.core = wrap(layer.attention.core)


def shard(module, mesh, plan):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    said = plan.get("fully_shard") or plan["replicate"]
    types = {role: getattr(torch, name) for role, name in said["mp_policy"].items()}
    call = functools.partial(fully_shard, mesh=mesh, mp_policy=MixedPrecisionPolicy(**types),
                             reshard_after_forward=said.get("reshard_after_forward", False))
    layers = list(module.layers)
    for layer in layers:
        call(layer)
    call(module)
    ahead = said.get("set_modules_to_forward_prefetch", 1)
    if ahead != 1:
        for number, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(layers[number + 1:number + 1 + ahead])
            layer.set_modules_to_backward_prefetch(
                layers[max(0, number - ahead):number][::-1])


def mesh_of(plan, device):
    """The mesh, and the part of it that parameters are sharded over."""
    from torch.distributed.device_mesh import init_device_mesh
    sizes = plan["init_device_mesh"]
    mesh = init_device_mesh(device, tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    shards = "dp_shard"
    if sizes["cp"] > 1:
        shards = "dp_shard_cp"
        mesh["dp_shard", "cp"]._flatten(shards)
    copies = sizes["dp_replicate"] > 1
    return mesh, mesh["dp_replicate", shards] if copies else mesh[shards]


def made(plan, mesh, sharded, number, device):
    module = part(plan, number)
    if plan["init_device_mesh"]["tp"] > 1:
        cut_between_tensor_ranks(module, mesh["tp"],
                                 plan["parallelize_module"]["sequence_parallel"])
    recompute = plan["checkpoint_wrapper"]
    run_again(module, recompute["mode"], recompute["every"])
    if plan["training"]["compile"]:
        for layer in module.layers:
            layer.compile()
    shard(module, sharded, plan)
    module.to_empty(device=device)
    module.positions.copy_(torch.arange(len(module.positions), device=device))
    for name, tensor in module.named_parameters():
        if tensor.dim() > 1:
            nn.init.normal_(tensor, std=0.02)
        else:
            nn.init.constant_(tensor, 0.0 if name.endswith("bias") else 1.0)
    return module


def by_mesh(modules):
    """A fused optimizer takes tensors of one mesh at once."""
    groups = {}
    for module in modules:
        for tensor in module.parameters():
            groups.setdefault(tensor.device_mesh, []).append(tensor)
    return [{"params": tensors} for tensors in groups.values()]


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


def batches(plan, ranks, device):
    """Tokens and labels of this rank's share of a global batch: yours go here."""
    training = plan["training"]
    size = (training["global_batch_size"] // ranks, training["sequence_length"] + 1)
    while True:
        drawn = torch.randint(plan["model"]["vocab"], size, device=device)
        yield drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


class OneStage:
    def __init__(self, plan, module):
        self.training, self.module = plan["training"], module

    def step(self, tokens, labels):
        turns = self.training["num_micro_batches"]
        each = self.training["set_requires_gradient_sync"] == "each"
        for turn, (x, y) in enumerate(zip(tokens.chunk(turns), labels.chunk(turns))):
            self.module.set_requires_gradient_sync(each or turn == turns - 1)
            (loss_of(self.module(x), y) / turns).backward()


class Stages:
    def __init__(self, plan, modules, mesh, device):
        from torch.distributed.pipelining import PipelineStage
        from torch.distributed.pipelining import schedules
        how = plan["pipelining"]
        count = len(how["layers_per_part"])
        self.first, self.last = 0 in modules, count - 1 in modules
        stages = [PipelineStage(module, number, count, device, group=mesh["pp"].get_group())
                  for number, module in modules.items()]
        listed = how["schedule"].endswith(".csv")
        kind = schedules._PipelineScheduleRuntime if listed else getattr(schedules, how["schedule"])
        single = issubclass(kind, schedules.PipelineScheduleSingle)
        self.schedule = kind(stages[0] if single else stages, how["n_microbatches"],
                             loss_fn=loss_of)
        if listed:
            self.schedule._load_csv(how["schedule"])

    def step(self, tokens, labels):
        self.schedule.step(*([tokens] if self.first else []),
                           target=labels if self.last else None)


def main():
    plan = json.load(open(sys.argv[1]))
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    mesh, sharded = mesh_of(plan, "cuda")
    sizes = plan["init_device_mesh"]
    modules = {number: made(plan, mesh, sharded, number, device)
               for number in parts_of(plan, mesh["pp"].get_local_rank())}
    runner = (Stages(plan, modules, mesh, device) if sizes["pp"] > 1
              else OneStage(plan, modules[0]))
    optimizer = torch.optim.AdamW(by_mesh(modules.values()), fused=True)
    ranks = sizes["dp_replicate"] * sizes["dp_shard"]
    data = batches(plan, ranks, device)
    for step in range(1, steps + 1):
        tokens, labels = next(data)
        began = time.perf_counter()
        with contextlib.ExitStack() as around:
            if sizes["tp"] > 1:
                from torch.distributed.tensor.parallel import loss_parallel
                around.enter_context(loss_parallel())
            if sizes["cp"] > 1:
                from torch.distributed.tensor.experimental import context_parallel
                places = [module.positions for module in modules.values()]
                around.enter_context(context_parallel(
                    mesh["cp"], buffers=[tokens, labels, *places],
                    buffer_seq_dims=[1, 1] + [0] * len(places), no_restore_buffers={tokens, labels}))
            runner.step(tokens, labels)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        if dist.get_rank() == 0:
            print(f" iteration {step}/ {steps} | elapsed time per iteration (ms): "
                  f"{1000 * (time.perf_counter() - began):.1f} | global batch size: "
                  f"{plan['training']['global_batch_size']} |", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
)py";

constexpr Refusal script_refusals[] = {
    {[](const Scenario& s) { return s.model.alibi; },
     [](const Scenario&) { return std::string("ALiBi"); }},
    {[](const Scenario& s) { return workloads::masked(s.model); },
     [](const Scenario&) { return std::string("masked positions"); }},
    {[](const Scenario& s) { return s.model.dropout; },
     [](const Scenario&) { return std::string("dropout"); }},
    {[](const Scenario& s) { return s.model.tied_embeddings && s.plan.pipeline > 1; },
     [](const Scenario&) { return std::string("weights that two stages share"); }},
    {[](const Scenario& s) { return s.precision.compute == workloads::Dtype::fp16; },
     [](const Scenario&) { return std::string("the loss scaling of fp16"); }},
    {[](const Scenario& s) { return s.precision.recipe != workloads::Recipe::none; },
     [](const Scenario&) { return std::string("products of 8 bits and fewer"); }},
};

}  // namespace

std::string fsdp_script_lacks(const Scenario& s) { return refused(s, script_refusals); }

std::string fsdp_script() { return script; }

}  // namespace stepcast::sim
