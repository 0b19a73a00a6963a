"""clebsch.compat.openequivariance on the problems that OpenEquivariance 0.7 is measured by, read from its own source, beside e3nn.

CLEBSCH_OPENEQUIVARIANCE names the unpacked source; building it needs CUDA, reading its lists does not.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import e3nn
import pytest
import torch
from clebsch.compat import openequivariance as oeq
from e3nn import o3

SOURCE = os.environ.get("CLEBSCH_OPENEQUIVARIANCE")
if not SOURCE:
    pytest.skip("CLEBSCH_OPENEQUIVARIANCE does not name OpenEquivariance's source", allow_module_level=True)
os.environ["OEQ_NOTORCH"] = "1"
sys.path.insert(0, SOURCE)
from openequivariance.benchmark import problems  # noqa: E402 - now it can be found

DEFAULT_DTYPE = torch.float64
LISTS = [name for name in dir(problems) if name.endswith("_problems")]
PROBLEMS = {f"{name}: {problem.label}": problem for name in LISTS for problem in getattr(problems, name)()}


def test_there_are_problems() -> None:
    assert len(PROBLEMS) >= 20


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem(name: str) -> None:
    """Values and gradients of 5 rows, and a convolution of them where weights are per row."""
    torch.manual_seed(0)
    e3nn.set_optimization_defaults(jit_mode="eager")
    given: Any = PROBLEMS[name]
    irreps = tuple(str(part) for part in (given.irreps_in1, given.irreps_in2, given.irreps_out))
    shared = {"shared_weights": given.shared_weights, "internal_weights": False}
    normal = {"irrep_normalization": "component", "path_normalization": "element"}
    instructions = [(ins.i_in1, ins.i_in2, ins.i_out, ins.connection_mode, ins.has_weight) for ins in given.instructions]
    problem = oeq.TPProblem(*irreps, instructions, **shared, **normal)
    theirs = o3.TensorProduct(*irreps, instructions, **shared, **normal)
    assert problem.weight_numel == given.weight_numel == theirs.weight_numel
    for mine, its in zip(problem.instructions, given.instructions, strict=True):
        assert mine.path_shape == its.path_shape
        assert mine.path_weight == pytest.approx(its.path_weight)
    rows, nodes = 5, 3
    weight_shape = (problem.weight_numel,) if given.shared_weights else (rows, problem.weight_numel)
    inputs = [torch.randn(rows, problem.irreps_in1.dim), torch.randn(rows, problem.irreps_in2.dim), torch.randn(weight_shape)]
    for tensor in inputs:
        tensor.requires_grad_()
    to, of = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([2, 1, 0, 3, 4])
    functions = [(oeq.TensorProduct(problem), theirs)]
    if not given.shared_weights:
        convolution = oeq.TensorProductConv(problem, deterministic=True)
        functions.append(
            (
                lambda x, y, weights: convolution(x, y, weights, to, of)[:nodes],
                lambda x, y, weights: torch.zeros(nodes, problem.irreps_out.dim).index_add(0, to, theirs(x[of], y, weights)),
            )
        )
    for ours, expected in functions:
        results = []
        for function in (ours, expected):
            value = function(*inputs)
            along = torch.linspace(-1, 1, value.numel()).reshape(value.shape)
            results.append([value.detach(), *torch.autograd.grad(value, inputs, along)])
        for found, right in zip(*results, strict=True):
            torch.testing.assert_close(found, right, rtol=1e-9, atol=1e-9 * float(right.abs().max()))
