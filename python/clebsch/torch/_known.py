"""Operations as the operator needs them, and their derivatives: by position instead of by name, each made once per text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import torch

from ..operation import Operation


@dataclass(eq=False)
class Known:
    """An operation: names, sizes and row spaces by position."""

    operation: Operation
    plans: dict[Any, Any] = field(default_factory=dict)  #: by dtype and device

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operation.inputs)

    @cached_property
    def indices(self) -> tuple[str, ...]:
        return tuple(index.name for index in self.operation.indices)

    @cached_property
    def spaces(self) -> tuple[str, ...]:
        return self.operation.spaces

    @cached_property
    def input_shapes(self) -> tuple[tuple[int, int], ...]:
        """(position of the row space, or -1 for one row; numbers per row) of every input."""
        return tuple((self._place(operand.space), operand.row_size) for operand in self.operation.inputs)

    @cached_property
    def output_shapes(self) -> tuple[tuple[int, int], ...]:
        """Likewise of every output."""
        return tuple((self._place(operand.space), operand.row_size) for operand in self.operation.outputs)

    @cached_property
    def index_spaces(self) -> tuple[int, ...]:
        """The row space whose rows have an entry in each index."""
        return tuple(self._place(index.source) for index in self.operation.indices)

    def _place(self, space: str | None) -> int:
        return -1 if space is None else self.spaces.index(space)


@dataclass(frozen=True)
class Derivative:
    """A derivative with respect to some inputs, and where its arrays come from in the call that is derived."""

    text: str
    inputs: tuple[int, ...]  #: positions among the call's inputs
    indices: tuple[int, ...]
    given: tuple[int, ...]  #: positions among the cotangents (one per output) or the tangents (one per wanted input)
    spaces: tuple[int, ...]
    wanted: tuple[int, ...]  #: the inputs it is with respect to: reverse mode has an output for each
    outputs: tuple[int, ...] = ()  #: forward mode: the output whose tangent each output is

    def __call__(
        self,
        call: Callable[..., list[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        indices: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
        rows: Any,
    ) -> list[torch.Tensor]:
        """Runs it through `call` on the inputs and indices it reads and all cotangents or tangents."""
        tensors = [*inputs, *(given[i] for i in self.given)]
        return call(self.text, tensors, list(indices), [rows[i] for i in self.spaces])


@cache
def known(text: str) -> Known:
    """The operation of a text. Kept for good: a process has few."""
    return Known(Operation(text))


@cache
def gradient_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The reverse-mode derivative with respect to the inputs at these positions."""
    forward = known(text)
    if not wanted:
        return Derivative("", (), (), (), (), ())
    operation = forward.operation.vjp(*(forward.inputs[i] for i in wanted))
    outputs = [output.name for output in forward.operation.outputs]
    return _derivative(forward, operation, wanted, outputs, "cotangent")


@cache
def tangent_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The forward-mode derivative along these inputs."""
    forward = known(text)
    names = [forward.inputs[i] for i in wanted]
    operation = forward.operation.jvp(*names)
    outputs = [output.name for output in forward.operation.outputs]
    places = tuple(_place(output.name, outputs, "tangent") for output in operation.outputs)
    return replace(_derivative(forward, operation, wanted, names, "tangent"), outputs=places)


def _derivative(forward: Known, operation: Operation, wanted: tuple[int, ...], sources: list[str], suffix: str) -> Derivative:
    """Its inputs are some of the forward ones, then what is given: the (co)tangents of `sources`."""
    derivative = known(operation.text)
    own = [name for name in derivative.inputs if name in forward.inputs]
    return Derivative(
        operation.text,
        tuple(forward.inputs.index(name) for name in own),
        tuple(forward.indices.index(name) for name in derivative.indices),
        tuple(_place(name, sources, suffix) for name in derivative.inputs[len(own) :]),
        tuple(forward.spaces.index(name) for name in derivative.spaces),
        wanted,
    )


def _place(name: str, sources: list[str], suffix: str) -> int:
    """The source a cotangent or tangent belongs to: it is called after it, with a number where that name was taken."""
    for i, source in enumerate(sources):
        base = f"{source}_{suffix}"
        if name == base or (name.startswith(f"{base}_") and name[len(base) + 1 :].isdecimal()):
            return i
    raise AssertionError(f"{name} is the {suffix} of nothing")
