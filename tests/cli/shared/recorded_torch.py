"""A torch that computes nothing: modules know their parameters' shapes, and what is asked of
torch.distributed is kept. For train_fsdp2.py, which stepcast launch writes."""
import math
import sys
import types
from unittest.mock import MagicMock

sharded, wrapped, cut, synced, ahead = [], [], [], [], []  # calls, in their order
mesh_sizes = {}


class Parameter:
    def __init__(self, *shape):
        self.shape = shape
        self.device_mesh = "mesh"

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)


class Module:
    def register_buffer(self, name, value, persistent):
        setattr(self, name, value)

    def parts(self):
        children = enumerate(self) if isinstance(self, list) else vars(self).items()
        return ((str(name), child) for name, child in children)

    def named_parameters(self, seen=None):
        seen = set() if seen is None else seen
        for name, child in self.parts():
            if isinstance(child, Parameter) and id(child) not in seen:
                seen.add(id(child))
                yield name, child
            elif isinstance(child, Module):
                yield from ((f"{name}.{inner}", one) for inner, one in child.named_parameters(seen))

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]

    def get_submodule(self, path):
        found = self
        for name in path.split("."):
            found = getattr(found, name)
        return found

    def to_empty(self, device):
        assert self in [call["module"] for call in sharded], "moved before it is sharded"

    def compile(self):
        self.compiled = True

    def set_requires_gradient_sync(self, on):
        synced.append(on)

    def set_modules_to_forward_prefetch(self, modules):
        ahead.append(len(modules))

    def set_modules_to_backward_prefetch(self, modules):
        pass


class ModuleList(list, Module):
    def __hash__(self):
        return id(self)


class Linear(Module):
    def __init__(self, wide, high, bias=True):
        self.weight = Parameter(high, wide)
        if bias:
            self.bias = Parameter(high)


class Embedding(Module):
    def __init__(self, rows, width):
        self.weight = Parameter(rows, width)


class RMSNorm(Module):
    def __init__(self, width):
        self.weight = Parameter(width)


class LayerNorm(RMSNorm):
    def __init__(self, width):
        super().__init__(width)
        self.bias = Parameter(width)


class Wrapped(Module):
    def __init__(self, inner, **how):
        self.inner = inner
        wrapped.append(how)


class Mesh:
    def __init__(self, names):
        self.names = names

    def __getitem__(self, names):
        return Mesh(names if isinstance(names, tuple) else (names,))

    def _flatten(self, name):
        mesh_sizes[name] = math.prod(mesh_sizes[one] for one in self.names)


def init_device_mesh(device, sizes, mesh_dim_names):
    mesh_sizes.update(zip(mesh_dim_names, sizes))
    return Mesh(mesh_dim_names)


def fully_shard(module, mesh, mp_policy, reshard_after_forward):
    sharded.append({"module": module, "mesh": mesh.names, "reshard": reshard_after_forward})


def parallelize_module(module, mesh, how):
    cut.append(set(how))


def install():
    """Puts it where `import torch` looks."""
    everything = MagicMock()
    nn = types.SimpleNamespace(
        Module=Module, ModuleList=ModuleList, Linear=Linear, Embedding=Embedding, RMSNorm=RMSNorm,
        LayerNorm=LayerNorm, init=MagicMock())
    everything.nn = nn
    modules = {"torch": everything, "torch.nn": nn, "torch.nn.functional": MagicMock()}
    for name in ("distributed", "distributed.fsdp", "distributed.device_mesh", "distributed.tensor",
                 "distributed.tensor.parallel", "distributed.algorithms",
                 "distributed.algorithms._checkpoint",
                 "distributed.algorithms._checkpoint.checkpoint_wrapper", "utils",
                 "utils.checkpoint"):
        modules["torch." + name] = MagicMock()
    nn.functional = modules["torch.nn.functional"]
    modules["torch.distributed.fsdp"].fully_shard = fully_shard
    modules["torch.distributed.device_mesh"].init_device_mesh = init_device_mesh
    modules["torch.distributed.tensor.parallel"].parallelize_module = parallelize_module
    modules["torch.distributed.algorithms._checkpoint.checkpoint_wrapper"].checkpoint_wrapper = Wrapped
    sys.modules.update(modules)
