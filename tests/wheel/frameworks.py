"""The installed wheel beside what else an environment has.

usage: frameworks.py [torch] [jax] [e3nn]: what must be there; the other frameworks must not.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import clebsch
import numpy as np

IN, EDGE, OUT = "8x0e+8x1o", "0e+1o+2e", "8x0e+8x1o"


def check(condition: bool, what: str) -> None:
    """Unlike assert, also under python -O."""
    if not condition:
        raise SystemExit(f"frameworks: {what}")


class Graph:
    """A convolution's operands, and what the reference evaluator makes of them."""

    def __init__(self) -> None:
        rng, nodes, edges = np.random.default_rng(0), 5, 14
        operation = clebsch.build("convolution", in_=IN, edge=EDGE, out="0e+1o")
        self.arrays = {
            operand.name: rng.standard_normal(({"node": nodes, "edge": edges}[operand.space], operand.row_size))
            for operand in operation.inputs
        }
        self.index = {"sender": rng.integers(0, nodes, edges), "receiver": np.sort(rng.integers(0, nodes, edges))}
        rows = {"node": nodes, "edge": edges}
        self.out = operation.reference(rows, **self.arrays, **self.index)
        gradient = operation.vjp("x")
        known = {operand.name: self.arrays[operand.name] for operand in gradient.inputs if operand.name in self.arrays}
        self.gradient = gradient.reference(rows, **known, **self.index, out_cotangent=2 * self.out)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-11, atol=1e-11)


def in_torch(graph: Graph) -> None:
    import clebsch.torch
    import torch

    convolution = clebsch.torch.Convolution(IN, EDGE, "0e+1o")
    x, y, weights = (torch.from_numpy(graph.arrays[name]) for name in ("x", "y", "weights"))
    sender, receiver = (torch.from_numpy(graph.index[name]) for name in ("sender", "receiver"))
    x.requires_grad_()
    out = convolution(x, y, weights, sender, receiver)
    near(out.detach(), graph.out)
    out.square().sum().backward()
    near(x.grad, graph.gradient)


def in_jax(graph: Graph) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    import clebsch.jax

    convolution = clebsch.jax.Convolution(IN, EDGE, "0e+1o")
    rest = (graph.arrays["y"], graph.arrays["weights"], graph.index["sender"], graph.index["receiver"])
    x = graph.arrays["x"]
    near(jax.jit(convolution)(x, *rest), graph.out)
    near(jax.jit(jax.grad(lambda x: (convolution(x, *rest) ** 2).sum()))(x), graph.gradient)


def layer_of(o3: ModuleType, nn: ModuleType) -> Any:
    """A model's layer as people write it with e3nn; only where `o3` and `nn` come from changes."""
    import torch

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.harmonics = o3.SphericalHarmonics(o3.Irreps.spherical_harmonics(2), True, normalization="component")
            self.gate = nn.Gate("8x0e", [torch.nn.functional.silu], "8x0e", [torch.sigmoid], "8x1o")
            self.first = o3.Linear(IN, IN)
            self.product = o3.FullyConnectedTensorProduct(IN, self.harmonics.irreps_out, self.gate.irreps_in, shared_weights=False)
            self.radial = nn.FullyConnectedNet([4, 16, self.product.weight_numel], torch.nn.functional.silu)

        def forward(self, x: Any, vectors: Any, sender: Any, receiver: Any) -> Any:
            lengths = vectors.norm(dim=1, keepdim=True)
            weights = self.radial(torch.exp(-((lengths - torch.arange(4.0, dtype=x.dtype)) ** 2)))
            messages = self.product(self.first(x)[sender], self.harmonics(vectors), weights)
            return self.gate(torch.zeros(len(x), messages.shape[1], dtype=x.dtype).index_add(0, receiver, messages))

    return Layer()


def moved_from_e3nn(graph: Graph) -> None:
    import e3nn.nn
    import e3nn.o3
    import torch
    from clebsch.compat.e3nn import nn, o3

    torch.set_default_dtype(torch.float64)
    theirs, ours = layer_of(e3nn.o3, e3nn.nn), layer_of(o3, nn)
    ours.load_state_dict(theirs.state_dict())
    x, sender, receiver = (torch.from_numpy(a) for a in (graph.arrays["x"], graph.index["sender"], graph.index["receiver"]))
    vectors = torch.randn(len(sender), 3, generator=torch.Generator().manual_seed(0))
    results = []
    for layer in (theirs, ours):
        along = vectors.clone().requires_grad_()
        out = layer(x, along, sender, receiver)
        (forces,) = torch.autograd.grad(out.square().sum(), along, create_graph=True)
        forces.square().sum().backward()  # a loss of forces
        results.append([out.detach(), forces.detach(), *(parameter.grad for parameter in layer.parameters())])
    check(len(results[0]) == len(results[1]), "other parameters than e3nn's model")
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))
    converted = clebsch.torch.accelerate(theirs)
    torch.testing.assert_close(theirs(x, vectors, sender, receiver), results[0][0], rtol=1e-9, atol=1e-9)
    converted.undo()


def absent(framework: str) -> None:
    """An error that says what to install."""
    try:
        import_module(f"clebsch.{framework}")
    except ImportError as error:
        check("pip install" in str(error), f"no way to install {framework} in: {error}")
    else:
        raise SystemExit(f"frameworks: clebsch.{framework} without {framework}")


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    check(Path(clebsch.__file__).is_relative_to(sys.prefix), f"clebsch is {clebsch.__file__}, outside {sys.prefix}")
    check(not {"torch", "jax"} & set(sys.modules), "import clebsch loaded a framework")
    graph = Graph()
    for framework, uses in (("torch", in_torch), ("jax", in_jax)):
        check((find_spec(framework) is not None) == (framework in wanted), f"{framework} is not as expected")
        if framework in wanted:
            uses(graph)
        else:
            absent(framework)
    if "e3nn" in wanted:
        moved_from_e3nn(graph)
    print(f"frameworks: {', '.join(sorted(wanted)) or 'none'}: Python {sys.version.split()[0]}")
