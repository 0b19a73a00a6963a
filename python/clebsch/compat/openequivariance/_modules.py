"""A problem and the two modules on it: the product alone, and gathered at senders and summed at receivers."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ... import torch as ct
from ..._library import ClebschError
from ..._tensor_products import tensor_product
from ..e3nn.o3 import Irreps, _normalized


class TPProblem:
    """`openequivariance.TPProblem`: e3nn's arguments of a tensor product, dtypes and a layout ("mul_ir" or "ir_mul").

    Instructions: (i_in1, i_in2, i_out, mode, has_weight[, path_weight]) with any of e3nn's modes. There are no internal weights.
    """

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        instructions: Sequence[tuple[Any, ...]],
        in1_var: Sequence[float] | None = None,
        in2_var: Sequence[float] | None = None,
        out_var: Sequence[float] | None = None,
        irrep_normalization: str = "component",
        path_normalization: str = "element",
        internal_weights: bool | None = False,
        shared_weights: bool | None = None,
        label: str | None = None,
        irrep_dtype: Any = np.float32,
        weight_dtype: Any = np.float32,
        layout: str = "mul_ir",
    ) -> None:
        if layout not in ("mul_ir", "ir_mul"):
            raise ClebschError(f"layout: expected mul_ir or ir_mul, got {layout!r}")
        if internal_weights:
            raise ClebschError("internal_weights: expected False; weights are arguments of every call")
        self.irreps_in1, self.irreps_in2, self.irreps_out = Irreps(irreps_in1), Irreps(irreps_in2), Irreps(irreps_out)
        self.in1_var, self.in2_var, self.out_var = in1_var, in2_var, out_var
        self.irrep_normalization, self.path_normalization = irrep_normalization, path_normalization
        self.internal_weights, self.shared_weights = False, True if shared_weights is None else shared_weights
        self.label, self.layout = label or "", layout
        self.irrep_dtype, self.weight_dtype = irrep_dtype, weight_dtype
        self.instructions_raw = list(instructions)
        irreps = self.irreps_in1, self.irreps_in2, self.irreps_out
        variances = [
            [1.0] * len(own) if var is None else list(var) for var, own in zip((in1_var, in2_var, out_var), irreps, strict=True)
        ]
        self.instructions = _normalized(
            irreps, self.instructions_raw, variances, irrep_normalization or "component", path_normalization or "element"
        )
        self.weight_numel = sum(math.prod(ins.path_shape) for ins in self.instructions if ins.has_weight)

    def weight_range_and_shape_for_instruction(self, instruction: int) -> tuple[int, int, tuple[int, ...]]:
        """Begin, end and shape of an instruction's weights."""
        if not self.instructions[instruction].has_weight:
            raise ClebschError(f"instruction {instruction}: it has no weights")
        begin = sum(math.prod(ins.path_shape) for ins in self.instructions[:instruction] if ins.has_weight)
        shape = self.instructions[instruction].path_shape
        return begin, begin + math.prod(shape), shape

    def clone(self) -> TPProblem:
        return copy.deepcopy(self)

    def __str__(self) -> str:
        return f"TPProblem({self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out}, {self.layout})"

    __repr__ = __str__

    def _text(self) -> str:
        """The product of one row, as an operation."""
        layouts = {f"{operand}_layout": self.layout for operand in ("x", "y", "out")}
        return tensor_product(
            self.irreps_in1,
            self.irreps_in2,
            self.irreps_out,
            self.instructions_raw,
            (self.in1_var, self.in2_var, self.out_var),
            self.irrep_normalization,
            self.path_normalization,
            self.shared_weights,
            **layouts,
        ).text


class _Product(torch.nn.Module):
    """Either module: its problem, its operation, and weights that are in e3nn's order as they are."""

    def __init__(self, problem: TPProblem, text: str) -> None:
        super().__init__()
        if not isinstance(problem, TPProblem):
            raise TypeError(f"problem: expected a TPProblem, got {type(problem).__name__}")
        self.config, self.weight_numel = problem, problem.weight_numel
        self.operation = ct.Operation(text)

    def _inputs(self, x: Tensor, y: Tensor, weights: Tensor) -> dict[str, Tensor]:
        given = {"x": x, "y": y}
        if self.weight_numel:
            given["weights"] = weights.reshape(1, -1) if self.config.shared_weights else weights
        return given

    def reorder_weights_from_e3nn(self, weights: Any, has_batch_dim: bool = True) -> Any:
        """What it gets: e3nn's order is the order here."""
        return weights

    def reorder_weights_to_e3nn(self, weights: Any, has_batch_dim: bool = True) -> Any:
        """What it gets: e3nn's order is the order here."""
        return weights

    def extra_repr(self) -> str:
        return f"{self.config}, {self.weight_numel} weights"


class TensorProduct(_Product):
    """`openequivariance.TensorProduct`: (x, y, W), rows of `irreps_in1`, `irreps_in2` and weights (one row of them when shared)."""

    def __init__(self, problem: TPProblem, torch_op: bool = True, use_opaque: bool = False) -> None:
        super().__init__(problem, problem._text())

    def forward(self, x: Tensor, y: Tensor, W: Tensor) -> Tensor:  # noqa: N803 - the name there
        return self.operation(**self._inputs(x, y, W))


class TensorProductConv(_Product):
    """`openequivariance.TensorProductConv`: out[rows[e]] += product(X[cols[e]], Y[e], W[e]); as many output rows as X has.

    `deterministic`: `rows` must ascend; sums have one order. Otherwise any order (on a GPU sums are then added atomically).
    `sender_perm` is not needed and may be left out. `kahan`: float32 inputs are summed in float64.
    """

    def __init__(
        self,
        problem: TPProblem,
        *,
        deterministic: bool = False,
        kahan: bool = False,
        torch_op: bool = True,
        use_opaque: bool = False,
    ) -> None:
        if kahan and not deterministic:
            raise ClebschError("kahan: expected deterministic=True with it")
        super().__init__(problem, _convolution_text(problem._text(), deterministic))
        self.deterministic, self.kahan = deterministic, kahan

    def forward(
        self,
        X: Tensor,  # noqa: N803 - the names there
        Y: Tensor,  # noqa: N803
        W: Tensor,  # noqa: N803
        rows: Tensor,
        cols: Tensor,
        sender_perm: Tensor | None = None,
    ) -> Tensor:
        given = self._inputs(X, Y, W)
        if self.kahan:
            given = {name: tensor.double() for name, tensor in given.items()}
        return self.operation(rows={"node": X.shape[0]}, sender=cols, receiver=rows, **given).to(X.dtype)


def _convolution_text(product: str, sorted_rows: bool) -> str:
    """The operation of a row as one of an edge: x gathered at the sender, out summed at the receiver."""
    lines = []
    for line in product.splitlines():
        if line.startswith("rows "):
            order = " sorted" if sorted_rows else ""
            lines += ["rows edge", "index sender: edge -> node", f"index receiver: edge -> node{order}"]
        elif line.startswith("input x:"):
            lines.append(line.replace("@ each", "@ sender"))
        elif line.startswith("output out:"):
            lines.append(line.replace("@ each", "@ receiver"))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
