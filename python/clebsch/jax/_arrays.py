"""What calls take: arrays, or e3nn-jax's IrrepsArray (anything with `irreps` and `array`), whose irreps must be the operand's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from .._library import ClebschError
from ..irreps import Irreps


class Taken:
    """The arrays of one call. If one came as an IrrepsArray, so does every result that has irreps."""

    def __init__(self) -> None:
        self._wrap: Any = None

    def array(self, name: str, value: Any, segments: str, layout: str) -> Any:
        """A plain array; of an IrrepsArray the irreps are compared."""
        if hasattr(value, "irreps") and hasattr(value, "array"):
            if not _same(str(value.irreps), segments):
                raise ClebschError(f"{name}: expected irreps {segments}, got {value.irreps}")
            if layout != "mul_ir" and not _is_flat(segments):
                raise ClebschError(f"{name}: expected layout {layout}, got an IrrepsArray, whose layout is mul_ir")
            self._wrap, value = type(value), value.array
        if value is None:
            raise ClebschError(f"{name}: expected an array, got None")
        try:
            return jnp.asarray(value)
        except TypeError as error:
            raise TypeError(f"{name}: expected an array, got {type(value).__name__}") from error

    def result(self, array: Any, segments: str, layout: str) -> Any:
        """Of a call: as its arguments were."""
        if self._wrap is None or "(" in segments:
            return array
        if layout != "mul_ir" and not _is_flat(segments):
            raise ClebschError(f"out: an IrrepsArray has layout mul_ir, the operation gives {layout}: pass plain arrays")
        return self._wrap(segments, array)


def _same(given: str, segments: str) -> bool:
    if "(" in segments:  # plain numbers
        return all(block.ir == (0, 1) for block in Irreps(given))
    return Irreps(given).simplify() == Irreps(segments).simplify()


def _is_flat(segments: str) -> bool:
    """Whether both layouts are the same order of numbers."""
    return "(" in segments or all(block.mul == 1 or block.ir.l == 0 for block in Irreps(segments))


def on_rows(per_row: Sequence[tuple[str, Any, int]]) -> tuple[tuple[int, ...], list[Any]]:
    """The leading dimensions of all, broadcast, and the arrays with these as rows. `per_row`: (name, array, numbers per row)."""
    for name, array, dim in per_row:
        if array.ndim == 0 or array.shape[-1] != dim:
            raise ClebschError(f"{name}: expected a last dimension of {dim}, got shape {array.shape}")
    try:
        leading = jnp.broadcast_shapes(*(array.shape[:-1] for _, array, _ in per_row))
    except ValueError:
        given = ", ".join(f"{name} {array.shape}" for name, array, _ in per_row)
        raise ClebschError(f"expected leading dimensions that can be broadcast, got {given}") from None
    count = math.prod(leading)
    return leading, [
        array if array.shape == (count, dim) == (*leading, dim) else jnp.broadcast_to(array, (*leading, dim)).reshape(count, dim)
        for _, array, dim in per_row
    ]
