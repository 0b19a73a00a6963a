"""An operation and a torch function on the same float64 numbers: values, first gradients, and the gradients of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import clebsch
import numpy as np
import torch

#: Rows of every space; different, so that no two can be mistaken for each other.
ROWS = {"row": 5, "edge": 11, "node": 4, "element": 3}
BOUND = 1e-13  #: norm-wise


@dataclass(frozen=True)
class Pair:
    """`function` takes tensors by the names of the operation's inputs and indices; its result is flattened to rows."""

    function: Callable[..., torch.Tensor]
    operation: clebsch.Operation
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)  #: what is not to be standard normal


def compare(pair: Pair, bound: float = BOUND, seed: int = 0) -> None:
    """Raises where they differ, naming the order of the derivative and the operand."""
    operation = pair.operation
    (output,) = operation.outputs
    generator = np.random.default_rng(seed)
    rows = {space: ROWS[space] for space in operation.spaces}

    def normal(operand: Any) -> np.ndarray:
        return generator.standard_normal((1 if operand.space is None else rows[operand.space], operand.row_size))

    arrays = {operand.name: pair.inputs.get(operand.name, normal(operand)) for operand in operation.inputs}
    index = {index.name: generator.integers(0, rows[index.target], rows[index.source]) for index in operation.indices}
    index = {name: np.sort(values) if name == "receiver" else values for name, values in index.items()}
    names = [operand.name for operand in operation.inputs if operand.row_size]
    leaves = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    values = pair.function(**leaves, **{name: torch.from_numpy(values) for name, values in index.items()})
    values = values.reshape(arrays_rows(output, rows), output.row_size)
    require_close("values", run(operation, rows, arrays, index)[output.name], values, bound)

    # First order: the gradients of <cotangent, values>.
    cotangent = f"{output.name}_cotangent"
    arrays[cotangent] = normal(output)
    leaves[cotangent] = torch.from_numpy(arrays[cotangent].copy()).requires_grad_()
    gradient = operation.vjp(*names)
    first = derivatives(values, [leaves[name] for name in names], leaves[cotangent])
    found = run(gradient, rows, arrays, index)
    for name, expected in zip(names, first, strict=True):
        require_close(f"gradient of {name}", found[f"{name}_gradient"], expected, bound)

    # Second order: the gradients of <tangents, those gradients>, to the inputs and to the cotangent.
    total = torch.zeros(())
    for name, expected in zip(names, first, strict=True):
        tangent = f"{name}_gradient_cotangent"
        arrays[tangent] = generator.standard_normal(arrays[name].shape)
        total = total + (torch.from_numpy(arrays[tangent]) * expected).sum()
    known = {operand.name for operand in gradient.inputs}
    wanted = [name for name in [*names, cotangent] if arrays[name].size]
    second = derivatives(total, [leaves[name] for name in wanted])
    kept = [name for name in wanted if name in known]
    found = run(gradient.vjp(*kept), rows, arrays, index) if kept else {}
    for name, expected in zip(wanted, second, strict=True):
        value = found[f"{name}_gradient"] if name in kept else np.zeros(arrays[name].shape)  # the gradients do not depend on it
        require_close(f"second derivative, {name}", value, expected, bound)


def arrays_rows(operand: Any, rows: Mapping[str, int]) -> int:
    return 1 if operand.space is None else rows[operand.space]


def derivatives(value: torch.Tensor, leaves: list[torch.Tensor], cotangent: torch.Tensor | None = None) -> list[torch.Tensor]:
    """Gradients that can be differentiated again; zeros where a leaf has no part in the value."""
    if not value.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(value, leaves, cotangent, create_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, found, strict=True)]


def run(
    operation: clebsch.Operation, rows: Mapping[str, int], arrays: Mapping[str, np.ndarray], index: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Results by name, from what of the arrays the operation reads."""
    given = {operand.name: arrays[operand.name] for operand in operation.inputs}
    given |= {each.name: index[each.name] for each in operation.indices}
    result = operation.plan("float64")({space: rows[space] for space in operation.spaces}, **given)
    return result if isinstance(result, dict) else {operation.outputs[0].name: result}


def require_close(what: str, value: np.ndarray, expected: torch.Tensor, bound: float) -> None:
    wanted = expected.detach().numpy()
    assert value.shape == wanted.shape, f"{what}: shape {value.shape}, expected {wanted.shape}"
    difference, size = np.linalg.norm(value - wanted), np.linalg.norm(wanted)
    error = difference / size if size else difference
    assert error <= bound, f"{what}: {error:.1e} (norm-wise)"


# Pairs that both versions of e3nn have
# -----------------------------------------------------------------------------------------------------------------------------

#: Channels of the two inputs and the output for each mode.
MODES = {
    "uvw": (3, 2, 4),
    "uvu": (3, 2, 3),
    "uvv": (3, 2, 2),
    "uuw": (3, 3, 4),
    "uuu": (3, 3, 3),
    "uvuv": (3, 2, 6),
    "uvu<v": (4, 4, 6),
    "u<vw": (4, 4, 3),
}
ALWAYS_WEIGHTED = ("uvw", "u<vw")


def instructions_text(instructions: list[tuple]) -> str:
    """e3nn's instructions (in1, in2, out, mode, weighted[, path weight]) as the builder's option."""
    return "; ".join(
        ",".join([str(a), str(b), str(c), mode, "weighted" if weighted else "plain", *map(repr, weight)])
        for a, b, c, mode, weighted, *weight in instructions
    )


def of_product(module: Any, shared: bool) -> Callable[..., torch.Tensor]:
    """A tensor product with weights of its own for every row, one set, or none."""

    def function(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        if weights is None:
            return module(x, y)
        return module(x, y, weights[0] if shared else weights)

    return function


def tensor_product_pair(
    o3: Any, irreps: tuple[str, str, str], instructions: list[tuple], weights: str, signs: str, **options: Any
) -> Pair:
    """`weights`: "shared" or "per_row" (an instruction says whether it has any)."""
    module = o3.TensorProduct(*irreps, instructions, shared_weights=weights == "shared", internal_weights=False, **options)
    names = {"in1_var": "in1_variances", "in2_var": "in2_variances", "out_var": "out_variances"}
    options = {names.get(key, key): ",".join(map(str, v)) if key in names else v for key, v in options.items()}
    operation = clebsch.build(
        "tensor_product",
        in1=irreps[0],
        in2=irreps[1],
        out=irreps[2],
        instructions=instructions_text(instructions),
        weights=weights,
        signs=signs,
        **options,
    )
    return Pair(of_product(module, weights == "shared"), operation)


def channel_mode_pair(o3: Any, mode: str, weights: str, signs: str) -> Pair:
    """Three instructions, two into one output; `weights` "none": without. (1,2,2) couples with another sign in e3nn 0.4."""
    m1, m2, out = MODES[mode]
    weighted = weights != "none"
    if mode == "uuw" and not weighted:
        out = 1
    irreps = (f"{m1}x1o+{m1}x2e", f"{m2}x2e+{m2}x1o", f"{out}x2o+{out}x1e")
    instructions = [(0, 0, 0, mode, weighted), (1, 1, 0, mode, weighted), (0, 1, 1, mode, weighted)]
    return tensor_product_pair(o3, irreps, instructions, weights if weighted else "shared", signs)


def convolution_pair(o3: Any, weights: str, signs: str, order: str = "by_output") -> Pair:
    """gather, product, sum at the receiver: as models write it with e3nn."""
    in1, in2, keep = o3.Irreps("3x0e+2x1o+2x2e"), o3.Irreps("0e+1o+2e"), o3.Irreps("0e+1o+2e+2o")
    outputs, instructions = [], []
    for i, (mul, ir1) in enumerate(in1):
        for j, (_, ir2) in enumerate(in2):
            for ir in ir1 * ir2:
                if ir in [block.ir for block in keep]:
                    instructions.append((i, j, len(outputs), "uvu", weights != "none"))
                    outputs.append((mul, ir))
    out, p, _ = o3.Irreps(outputs).sort()
    instructions = [(i, j, p[k], mode, train) for i, j, k, mode, train in instructions]
    if order == "by_output":
        instructions.sort(key=lambda instruction: instruction[2])
    module = o3.TensorProduct(in1, in2, out, instructions, shared_weights=weights == "shared", internal_weights=False)
    product = of_product(module, weights == "shared")

    def function(
        x: torch.Tensor, y: torch.Tensor, sender: torch.Tensor, receiver: torch.Tensor, **rest: torch.Tensor
    ) -> torch.Tensor:
        return torch.zeros(len(x), out.dim).index_add(0, receiver, product(x[sender], y, **rest))

    options = {"weights": {"per_row": "per_edge"}.get(weights, weights), "signs": signs, "weight_order": order}
    return Pair(function, clebsch.build("convolution", in_=in1, edge=in2, out=keep, **options))
