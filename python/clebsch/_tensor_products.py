"""Tensor products from instructions, as every front door takes them: what e3nn's arguments say, as text for the builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._library import ClebschError
from .irreps import Irreps
from .operation import Operation, build


def tensor_product(
    in1: Any,
    in2: Any,
    out: Any,
    instructions: Sequence[tuple[Any, ...]],
    variances: tuple[Sequence[float] | None, Sequence[float] | None, Sequence[float] | None],
    irrep_normalization: str,
    path_normalization: str,
    shared_weights: bool,
    **options: Any,
) -> Operation:
    """e3nn's `o3.TensorProduct`. Instructions: (i_in1, i_in2, i_out, mode, has_weight[, path_weight]); variances of in1, in2,
    out."""
    fields = [
        ",".join([*map(str, ins[:4]), "weighted" if ins[4] else "plain", *(repr(float(weight)) for weight in ins[5:6])])
        for ins in instructions
    ]
    named = zip(("in1_variances", "in2_variances", "out_variances"), variances, strict=True)
    options |= {key: ",".join(repr(float(value)) for value in values) for key, values in named if values is not None}
    return build(
        "tensor_product",
        in1=in1,
        in2=in2,
        out=out,
        instructions="; ".join(fields),
        irrep_normalization=irrep_normalization,
        path_normalization=path_normalization,
        weights="shared" if shared_weights else "per_row",
        **options,
    )


def fully_connected(in1: Any, in2: Any, out: Any) -> list[tuple[int, int, int, str, bool, float]]:
    """Instructions for every allowed triple of blocks, all channels mixed."""
    in1, in2, out = Irreps(in1), Irreps(in2), Irreps(out)
    return [
        (i, j, k, "uvw", True, 1.0)
        for i, first in enumerate(in1)
        for j, second in enumerate(in2)
        for k, third in enumerate(out)
        if third.ir in Irreps([first.ir]).product([second.ir], keep=[third.ir])
    ]


def path_shape(mode: str, mul1: int, mul2: int, mul_out: int) -> tuple[int, ...]:
    """The shape of a path's weights, by its mode and the multiplicities that it couples."""
    pairs = mul1 * (mul2 - 1) // 2
    shapes: dict[str, tuple[int, ...]] = {
        "uvw": (mul1, mul2, mul_out),
        "uvu": (mul1, mul2),
        "uvv": (mul1, mul2),
        "uuw": (mul1, mul_out),
        "uuu": (mul1,),
        "uvuv": (mul1, mul2),
        "uvu<v": (pairs,),
        "u<vw": (pairs, mul_out),
    }
    if mode not in shapes:
        raise ClebschError(f"instructions: expected a mode of {', '.join(shapes)}, got {mode!r}")
    return shapes[mode]


def input_sizes(operation: Operation) -> dict[str, int]:
    """Numbers per row of every input."""
    return {operand.name: operand.row_size for operand in operation.inputs}
