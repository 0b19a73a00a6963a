"""Where the arrays of a derivative come from in the call that is derived: by position, for frameworks that pass lists of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

from .operation import Operation


class Described:
    """An operation by positions: names, row spaces and sizes of its inputs, outputs and indices. One per text: see `described`."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __repr__(self) -> str:
        return f"<{self.operation.hash[:12]}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}>"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return described, (self.operation.text,)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operation.inputs)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operation.outputs)

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
    def index_spaces(self) -> tuple[tuple[int, int], ...]:
        """The row spaces that each index maps from and to."""
        return tuple((self._place(index.source), self._place(index.target)) for index in self.operation.indices)

    def _place(self, space: str | None) -> int:
        return -1 if space is None else self.spaces.index(space)


@dataclass(frozen=True)
class Derivative:
    """A derivative with respect to some inputs. Its own inputs: some of the derived call's, then what is given."""

    described: Described
    inputs: tuple[int, ...]  #: positions among the call's inputs
    indices: tuple[int, ...]
    given: tuple[int, ...]  #: positions among the cotangents (one per output) or the tangents (one per wanted input)
    spaces: tuple[int, ...]
    outputs: tuple[int, ...] = ()  #: forward mode: the output whose tangent each output is


@cache
def described(text: str) -> Described:
    """The operation of a text. Kept for good: a process has few."""
    return Described(Operation(text))


@cache
def gradient_of(forward: Described, wanted: tuple[int, ...]) -> Derivative:
    """The reverse-mode derivative with respect to the inputs at these positions: an output for each."""
    operation = forward.operation.vjp(*(forward.inputs[i] for i in wanted))
    return _derivative(forward, operation, list(forward.outputs), "cotangent")


@cache
def tangent_of(forward: Described, wanted: tuple[int, ...]) -> Derivative:
    """The forward-mode derivative along these inputs."""
    names = [forward.inputs[i] for i in wanted]
    operation = forward.operation.jvp(*names)
    places = tuple(_place(output.name, list(forward.outputs), "tangent") for output in operation.outputs)
    return replace(_derivative(forward, operation, names, "tangent"), outputs=places)


def _derivative(forward: Described, operation: Operation, sources: list[str], suffix: str) -> Derivative:
    """Its inputs are some of the forward ones, then what is given: the (co)tangents of `sources`."""
    derivative = described(operation.text)
    own = [name for name in derivative.inputs if name in forward.inputs]
    return Derivative(
        derivative,
        tuple(forward.inputs.index(name) for name in own),
        tuple(forward.indices.index(name) for name in derivative.indices),
        tuple(_place(name, sources, suffix) for name in derivative.inputs[len(own) :]),
        tuple(forward.spaces.index(name) for name in derivative.spaces),
    )


def _place(name: str, sources: list[str], suffix: str) -> int:
    """The source a cotangent or tangent belongs to: it is called after it, with a number where that name was taken."""
    for i, source in enumerate(sources):
        base = f"{source}_{suffix}"
        if name == base or (name.startswith(f"{base}_") and name[len(base) + 1 :].isdecimal()):
            return i
    raise AssertionError(f"{name} is the {suffix} of nothing")
