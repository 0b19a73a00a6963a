"""The drop-ins on irreps that hypothesis makes up, beside e3nn 0.6.0 and cuequivariance-torch 0.13: values and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cuequivariance as cue
import cuequivariance_torch
import e3nn
import torch
from clebsch.compat import cuequivariance_torch as cuet
from clebsch.compat import openequivariance as oeq
from clebsch.compat.e3nn import o3
from e3nn import o3 as their_o3
from hypothesis import assume, given, settings
from hypothesis import strategies as st

e3nn.set_optimization_defaults(jit_mode="eager")
warnings.simplefilter("ignore")  # cuequivariance-torch has no CUDA kernels here


DEFAULT_DTYPE = torch.float64
few = settings(max_examples=25, deadline=None, derandomize=True)


def irreps(blocks: int = 3, lmax: int = 3, mul: int = 4) -> st.SearchStrategy[str]:
    block = st.builds("{}x{}{}".format, st.integers(1, mul), st.integers(0, lmax), st.sampled_from("eo"))
    return st.lists(block, min_size=1, max_size=blocks).map("+".join)


layouts = st.sampled_from(["mul_ir", "ir_mul"])


def same(ours: Callable[..., torch.Tensor], theirs: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
    """Values, and gradients by all inputs."""
    results = []
    for function in (ours, theirs):
        value = function(*inputs)
        along = torch.linspace(-1, 1, value.numel()).reshape(value.shape)
        results.append([value.detach(), *torch.autograd.grad(value, inputs, along)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def normal(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(shape, generator=generator, requires_grad=True)


def dim(text: str) -> int:
    return their_o3.Irreps(text).dim


def uvu(in1: str, in2: str) -> tuple[str, list[tuple[Any, ...]]]:
    """Every path of a convolution, each to a block of its own."""
    blocks, instructions = [], []
    for i, (mul, ir1) in enumerate(their_o3.Irreps(in1)):
        for j, (_, ir2) in enumerate(their_o3.Irreps(in2)):
            for ir in ir1 * ir2:
                instructions.append((i, j, len(blocks), "uvu", True))
                blocks.append(f"{mul}x{ir}")
    return "+".join(blocks), instructions


@few
@given(irreps(), irreps(2), irreps())
def test_fully_connected_of_e3nn(in1: str, in2: str, out: str) -> None:
    theirs = their_o3.FullyConnectedTensorProduct(in1, in2, out)
    assume(theirs.weight_numel > 0)
    ours = o3.FullyConnectedTensorProduct(in1, in2, out)
    ours.load_state_dict(theirs.state_dict())
    same(ours, theirs, normal(5, dim(in1)), normal(5, dim(in2)))


@few
@given(irreps(4, 1), irreps(4, 1))
def test_linear_of_e3nn(irreps_in: str, irreps_out: str) -> None:
    theirs, ours = their_o3.Linear(irreps_in, irreps_out), o3.Linear(irreps_in, irreps_out)
    assume(theirs.weight_numel > 0)
    ours.load_state_dict(theirs.state_dict())
    same(ours, theirs, normal(5, dim(irreps_in)))


@few
@given(irreps(), irreps(2, 2, 1), st.booleans())
def test_convolution_of_openequivariance(in1: str, in2: str, deterministic: bool) -> None:
    out, instructions = uvu(in1, in2)
    theirs = their_o3.TensorProduct(in1, in2, out, instructions, shared_weights=False, internal_weights=False)
    problem = oeq.TPProblem(in1, in2, out, instructions, shared_weights=False, internal_weights=False)
    convolution = oeq.TensorProductConv(problem, deterministic=deterministic)
    rows, columns = torch.tensor([0, 0, 1, 3, 3, 3, 3]), torch.tensor([1, 2, 0, 3, 3, 1, 2])

    def expected(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return torch.zeros(4, dim(out)).index_add(0, rows, theirs(x[columns], y, weights))

    permutation = torch.argsort(columns * 4 + rows)
    inputs = normal(4, dim(in1)), normal(7, dim(in2)), normal(7, problem.weight_numel)
    same(lambda *arrays: convolution(*arrays, rows, columns, permutation), expected, *inputs)


def beside_cuequivariance(name: str, in1: str, in2: str, out: str, layout: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The product of this name here and there, which compute the same."""
    arguments = cue.Irreps("O3", in1), cue.Irreps("O3", in2), cue.Irreps("O3", out)
    options = {"layout": getattr(cue, layout), "shared_weights": False, "internal_weights": False}
    ours = getattr(cuet, name)(*arguments, **options)
    assume(ours.weight_numel > 0)
    theirs = getattr(cuequivariance_torch, name)(*arguments, **options)
    same(ours, theirs, normal(5, dim(in1)), normal(5, dim(in2)), normal(5, ours.weight_numel))
    return ours, theirs


@few
@given(irreps(), irreps(2, 2, 2), irreps(), layouts)
def test_channel_wise_of_cuequivariance(in1: str, in2: str, out: str, layout: str) -> None:
    ours, theirs = beside_cuequivariance("ChannelWiseTensorProduct", in1, in2, out, layout)
    assert ours.irreps_out == theirs.irreps_out


@few
@given(irreps(), irreps(2), irreps(), layouts)
def test_fully_connected_of_cuequivariance(in1: str, in2: str, out: str, layout: str) -> None:
    beside_cuequivariance("FullyConnectedTensorProduct", in1, in2, out, layout)


@few
@given(irreps(4, 2), irreps(4, 2), layouts)
def test_linear_of_cuequivariance(irreps_in: str, irreps_out: str, layout: str) -> None:
    arguments = cue.Irreps("O3", irreps_in), cue.Irreps("O3", irreps_out)
    options = {"layout": getattr(cue, layout), "shared_weights": False, "internal_weights": False}
    ours = cuet.Linear(*arguments, **options)
    assume(ours.weight_numel > 0)
    theirs = cuequivariance_torch.Linear(*arguments, **options)
    same(ours, theirs, normal(5, dim(irreps_in)), normal(5, ours.weight_numel))
