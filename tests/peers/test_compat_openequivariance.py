"""clebsch.compat.openequivariance beside e3nn, by whose products OpenEquivariance documents its own (it has no CPU path)."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import clebsch
import numpy as np
import pytest
import torch
from clebsch.compat import openequivariance as oeq
from e3nn import o3

DEFAULT_DTYPE = torch.float64


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


UVU = (
    "4x0e+3x1o",
    "1x0e+1x1o",
    "4x0e+3x0e+3x1o+4x1o",
    [(0, 0, 0, "uvu", True), (1, 1, 1, "uvu", True), (1, 0, 2, "uvu", True, 0.5), (0, 1, 3, "uvu", True)],
)
UVW = ("4x0e+3x1o", "2x0e+2x1o", "5x0e+4x1o", [(0, 0, 0, "uvw", True), (1, 1, 0, "uvw", True), (0, 1, 1, "uvw", True)])
LARGE = ("40x1o", "1x1o", "40x2e+40x1e", [(0, 0, 0, "uvu", True), (0, 0, 1, "uvu", True)])
PROBLEMS: dict[str, tuple[Any, ...]] = {"uvu": UVU, "uvw": UVW, "more than 32 channels": LARGE}


def flipped(tensor: torch.Tensor, irreps: str, to: str) -> torch.Tensor:
    """Rows in the other layout."""
    parts, begin = [], 0
    for mul, ir in o3.Irreps(irreps):
        part = tensor[:, begin : begin + mul * ir.dim]
        shape = (mul, ir.dim) if to == "ir_mul" else (ir.dim, mul)
        parts.append(part.reshape(-1, *shape).transpose(1, 2).reshape(-1, mul * ir.dim))
        begin += mul * ir.dim
    return torch.cat(parts, dim=1)


def both(name: str, shared: bool, layout: str, **options: Any) -> tuple[oeq.TPProblem, Any, list[torch.Tensor]]:
    """The problem, e3nn's function of inputs in the problem's layout, and inputs for 7 rows."""
    in1, in2, out, instructions = PROBLEMS[name]
    problem = oeq.TPProblem(*PROBLEMS[name], shared_weights=shared, internal_weights=False, layout=layout, **options)
    theirs = o3.TensorProduct(in1, in2, out, instructions, shared_weights=shared, internal_weights=False, **options)
    assert theirs.weight_numel == problem.weight_numel

    def function(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        if layout == "ir_mul":
            x, y = flipped(x, in1, "mul_ir"), flipped(y, in2, "mul_ir")
        result = theirs(x, y, weights)
        return flipped(result, out, "ir_mul") if layout == "ir_mul" else result

    weight_shape = (problem.weight_numel,) if shared else (7, problem.weight_numel)
    shapes = [(7, problem.irreps_in1.dim), (7, problem.irreps_in2.dim), weight_shape]
    return problem, function, [torch.randn(shape, requires_grad=True) for shape in shapes]


def same_with_derivatives(ours: Any, theirs: Any, inputs: list[torch.Tensor]) -> None:
    """Values, gradients and gradients of those."""
    results = []
    for function in (ours, theirs):
        value = function(*inputs)
        cotangent = torch.linspace(-1, 1, value.numel()).reshape(value.shape)
        first = torch.autograd.grad(value, inputs, cotangent, create_graph=True)
        second = torch.autograd.grad(sum((gradient**2).sum() for gradient in first), inputs)
        results.append([value, *first, *second])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", ["mul_ir", "ir_mul"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_products(name: str, shared: bool, layout: str) -> None:
    problem, theirs, inputs = both(name, shared, layout)
    same_with_derivatives(oeq.TensorProduct(problem), theirs, inputs)


def test_normalizations() -> None:
    options = {"irrep_normalization": "norm", "path_normalization": "path", "in1_var": [2.0, 3.0], "out_var": [1.0, 2.0, 3.0, 4.0]}
    problem, theirs, inputs = both("uvu", False, "mul_ir", **options)
    same_with_derivatives(oeq.TensorProduct(problem), theirs, inputs)


@pytest.mark.parametrize("options", [{}, {"deterministic": True}, {"deterministic": True, "kahan": True}])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["uvu", "uvw"])
def test_convolutions(name: str, shared: bool, options: dict[str, bool]) -> None:
    problem, theirs, (_, y, weights) = both(name, shared, "ir_mul")
    x = torch.randn(5, problem.irreps_in1.dim, requires_grad=True)
    rows, cols = torch.tensor([0, 0, 1, 3, 3, 3, 4]), torch.tensor([1, 2, 0, 4, 4, 1, 3])
    convolution = oeq.TensorProductConv(problem, **options)
    if not options:  # any order
        order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
        rows, cols = rows[order], cols[order]

    def expected(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return torch.zeros(5, problem.irreps_out.dim).index_add(0, rows, theirs(x[cols], y, weights))

    permutation = torch.argsort(cols * 5 + rows)
    same_with_derivatives(lambda *inputs: convolution(*inputs, rows, cols, permutation), expected, [x, y, weights])


def test_float32_sums_in_float64() -> None:
    """Large contributions that cancel: a sum in float32 loses what is between them."""
    problem = oeq.TPProblem(*UVU, shared_weights=False)
    x, y = torch.randn(2, 13).float(), torch.randn(1, 4).float().expand(3, 4).contiguous()
    rows, cols = torch.tensor([0, 0, 0]), torch.tensor([1, 0, 1])
    weights = torch.randn(2, problem.weight_numel).float()
    weights = torch.stack([1e8 * weights[0], weights[1], -1e8 * weights[0]])
    exact = oeq.TensorProductConv(problem, deterministic=True)(x.double(), y.double(), weights.double(), rows, cols)
    out = oeq.TensorProductConv(problem, deterministic=True, kahan=True)(x, y, weights, rows, cols)
    assert out.dtype is torch.float32
    torch.testing.assert_close(out, exact.float(), rtol=1e-6, atol=1e-6)
    lost = oeq.TensorProductConv(problem, deterministic=True)(x, y, weights, rows, cols)
    assert (lost - out).abs().max() > 0.1


def test_deterministic_wants_ascending_rows() -> None:
    problem, _, (_, y, weights) = both("uvu", False, "mul_ir")
    rows = torch.tensor([3, 0, 1, 2, 2, 1, 0])
    with pytest.raises(clebsch.ClebschError, match="receiver.*sorted"):
        oeq.TensorProductConv(problem, deterministic=True)(torch.randn(5, 13), y, weights, rows, rows)


def test_problems() -> None:
    problem = oeq.TPProblem(*UVU, label="mine", irrep_dtype=np.float64)
    assert problem.shared_weights
    assert problem.weight_range_and_shape_for_instruction(2) == (7, 10, (3, 1))
    assert problem.clone().instructions == problem.instructions
    assert str(problem.irreps_out) == "4x0e+3x0e+3x1o+4x1o"
    product = oeq.TensorProduct(problem)
    weights = torch.randn(problem.weight_numel)
    assert product.reorder_weights_from_e3nn(weights) is weights
    assert not product.state_dict()
    x, y = torch.randn(3, 13), torch.randn(3, 4)
    for other in (copy.deepcopy(product), pickle.loads(pickle.dumps(product))):
        torch.testing.assert_close(other(x, y, weights), product(x, y, weights))
    for bad, message in [
        ({"layout": "ir-mul"}, "layout: expected mul_ir or ir_mul"),
        ({"internal_weights": True}, "internal_weights"),
    ]:
        with pytest.raises(clebsch.ClebschError, match=message):
            oeq.TPProblem(*UVU, **bad)
    with pytest.raises(clebsch.ClebschError, match="instructions: expected a mode"):
        oeq.TPProblem("1x0e", "1x0e", "1x0e", [(0, 0, 0, "uvx", True)])


def test_the_page() -> None:
    torch.set_default_dtype(torch.float32)
    page = (Path(__file__).resolve().parents[2] / "docs/from-openequivariance.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "from-openequivariance.md", "exec"), {})  # noqa: S102
