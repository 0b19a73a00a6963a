"""A segmented polynomial of cuEquivariance as the text of an operation.

Modes of a path's coefficients are components; all others are channels. An operand with a component mode has it first (ir_mul) or
last (mul_ir). A mode that begins one input and the output and that no coefficient has (a linear map's) is a component too, by an
identity. Where no coefficient has modes (a flattened descriptor), `_blocks` finds what the components were.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._library import ClebschError

MUL_IR, IR_MUL = "mul_ir", "ir_mul"


@dataclass(frozen=True)
class Rows:
    """Where the rows of every buffer come from: "each" row of the batch, "shared" by all, or "indexed"."""

    buffers: tuple[str, ...]

    def of(self, i: int, inputs: int) -> str:
        kind = self.buffers[i]
        if kind != "indexed":
            return kind
        return f"index_{i}" if i < inputs else f"to_{i - inputs}"


@dataclass(frozen=True)
class _Modes:
    """The modes of one operand of an operation: channels in order, the component if there is one, and the layout that makes."""

    channels: tuple[str, ...]
    component: str | None
    layout: str | None  #: None: either is the same


def description_of(polynomial: Any, rows: Rows, layouts: Mapping[int, str]) -> str:
    """The text. `layouts`: of buffers that have another one than the polynomial says."""
    inputs = polynomial.num_inputs
    operands = [*polynomial.inputs, *polynomial.outputs]
    flat = not layouts and all(
        not _subscripts(product)[1] and _identity_mode(_subscripts(product)[0], "", operation.buffers, inputs) is None
        for operation, product in polynomial.operations
    )
    segments, paths = (_flat if flat else _structured)(polynomial, layouts)
    lines = ["clebsch polynomial 0", "basis e3nn-0.5", "rows batch"]
    lines += [f"index index_{i}: batch -> rows_{i}" for i in range(inputs) if rows.buffers[i] == "indexed"]
    lines += [
        f"index to_{i - inputs}: batch -> out_{i - inputs}" for i in range(inputs, len(operands)) if rows.buffers[i] == "indexed"
    ]
    lines += [
        f"{'input' if i < inputs else 'output'} {_name(i, inputs)}: {segments[i]} @ {rows.of(i, inputs)}"
        for i in range(len(operands))
    ]
    return "\n".join([*lines, *paths]) + "\n"


def _name(buffer: int, inputs: int) -> str:
    return f"input_{buffer}" if buffer < inputs else f"output_{buffer - inputs}"


def _structured(polynomial: Any, layouts: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """Segments and layout of every buffer, and paths, as the descriptor has them."""
    inputs = polynomial.num_inputs
    found: dict[int, _Modes] = {}
    paths: list[str] = []
    for operation, product in polynomial.operations:
        subscripts, coefficient_modes = _subscripts(product)
        shared = _identity_mode(subscripts, coefficient_modes, operation.buffers, inputs)
        modes = []
        for buffer, names in zip(operation.buffers, subscripts, strict=True):
            mode = _modes_of(buffer, names, coefficient_modes, shared)
            known = found.setdefault(buffer, mode)
            if len(known.channels) != len(mode.channels) or known.layout != mode.layout:
                raise ClebschError(f"operand {buffer}: its modes are read in two ways, as {known} and as {mode}")
            modes.append(mode)
        paths += [_path(path, operation.buffers, modes, product, coefficient_modes, shared, inputs) for path in product.paths]
    segments = []
    for i, operand in enumerate((*polynomial.inputs, *polynomial.outputs)):
        known = found.get(i, _Modes((), None, None))
        text = "+".join(_segment(shape, known) for shape in operand.segments) or "()"
        segments.append(f"{text} {layouts.get(i) or known.layout or MUL_IR}")
    return segments, paths


# Flattened descriptors
# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """Neighbouring segments of one shape, read as the components of one segment in ir_mul."""

    first: int
    count: int


def _blocks(polynomial: Any) -> list[list[_Block]]:
    """Of every buffer: neighbours that meet the same segments of the first buffer (the weights) were one irrep's components."""
    operands = [*polynomial.inputs, *polynomial.outputs]
    met: list[list[set[Any]]] = [[set() for _ in operand.segments] for operand in operands]
    for number, (operation, product) in enumerate(polynomial.operations):
        for path in product.paths:
            weight = (number, path.indices[operation.buffers.index(0)] if 0 in operation.buffers else -1)
            for buffer, index in zip(operation.buffers, path.indices, strict=True):
                met[buffer][index].add(weight)
    result = []
    for operand, meets in zip(operands, met, strict=True):
        firsts = [
            i
            for i in range(len(meets))
            if i == 0 or operand.segments[i] != operand.segments[i - 1] or not meets[i] or meets[i] != meets[i - 1]
        ]
        result.append([_Block(first, end - first) for first, end in itertools.pairwise([*firsts, len(meets)])])
    return result


def _flat(polynomial: Any, layouts: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """Segments and paths of a descriptor whose coefficients are single numbers: one path per blocks that meet."""
    inputs, blocks = polynomial.num_inputs, _blocks(polynomial)
    place = [
        {i: (k, i - block.first) for k, block in enumerate(own) for i in range(block.first, block.first + block.count)}
        for own in blocks
    ]
    paths = []
    for operation, product in polynomial.operations:
        gathered: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {}
        for path in product.paths:
            places = [place[buffer][index] for buffer, index in zip(operation.buffers, path.indices, strict=True)]
            entries = gathered.setdefault(tuple(block for block, _ in places), {})
            at = tuple(component for _, component in places)
            entries[at] = entries.get(at, 0.0) + float(path.coefficients)
        subscripts = _subscripts(product)[0]
        for chosen, entries in gathered.items():
            parts = [blocks[buffer][k] for buffer, k in zip(operation.buffers, chosen, strict=True)]
            extents: dict[str, int] = {}
            for operand, part, names in zip(product.operands, parts, subscripts, strict=True):
                extents.update(zip(names, operand.segments[part.first], strict=True))
            letters = dict(zip((mode for mode in extents if extents[mode] != 1), "uvwabcdefgh", strict=False))
            axes = [i for i, part in enumerate(parts) if part.count > 1]
            axis_of = dict(zip(axes, "ijklmnopqrst", strict=False))
            factors = []
            for i, (buffer, k, names) in enumerate(zip(operation.buffers, chosen, subscripts, strict=True)):
                inside = "".join(letters[name] for name in names if name in letters) + (f"|{axis_of[i]}" if i in axis_of else "")
                factors.append(f"{_name(buffer, inputs)}.{k}" + (f"[{inside}]" if inside else ""))
            output = next(i for i, buffer in enumerate(operation.buffers) if buffer >= inputs)
            values = "; ".join(f"{','.join(str(at[i]) for i in axes)}: {number!r}" for at, number in sorted(entries.items()))
            shape = ",".join(str(parts[i].count) for i in axes)
            scale = f"{{{shape}; {values}}}[{','.join(axis_of.values())}]" if axes else repr(next(iter(entries.values())))
            sizes = "".join(f" {letter}={extents[mode]}" for mode, letter in letters.items())
            paths.append(
                f"path{sizes}: {factors[output]} += {' * '.join([scale, *(f for i, f in enumerate(factors) if i != output)])}"
            )
    operands = [*polynomial.inputs, *polynomial.outputs]
    segments = [
        ("+".join(f"{math.prod(operand.segments[block.first])}x({block.count})" for block in own) or "()") + f" {IR_MUL}"
        for operand, own in zip(operands, blocks, strict=True)
    ]
    return segments, paths


# Structured ones
# -----------------------------------------------------------------------------------------------------------------------------


def _subscripts(product: Any) -> tuple[list[str], str]:
    """Modes of every operand, and those of the coefficients, with letters that are ours to use."""
    operands, _, coefficients = str(product.subscripts).partition("+")
    return operands.split(","), coefficients


def _identity_mode(subscripts: Sequence[str], coefficient_modes: str, buffers: Sequence[int], inputs: int) -> str | None:
    """The mode of a linear map's components."""
    if coefficient_modes:
        return None
    for mode in sorted(set("".join(subscripts))):
        holders = [i for i, names in enumerate(subscripts) if mode in names]
        if len(holders) == 2 and all(subscripts[i][0] == mode and len(subscripts[i]) > 1 for i in holders):
            one_output = sum(buffers[i] >= inputs for i in holders) == 1
            if one_output:
                return mode
    return None


def _modes_of(buffer: int, names: str, coefficient_modes: str, shared: str | None) -> _Modes:
    components = [mode for mode in names if mode in coefficient_modes or mode == shared]
    channels = tuple(mode for mode in names if mode not in components)
    if not components:
        return _Modes(channels, None, None)
    if len(components) == 1 and names[0] == components[0]:
        return _Modes(channels, components[0], IR_MUL)
    if len(components) == 1 and names[-1] == components[0]:
        return _Modes(channels, components[0], MUL_IR)
    raise ClebschError(
        f"operand {buffer}: expected layout {MUL_IR} (channels, then one component) or {IR_MUL} (one component, then channels), "
        f"got modes {names!r} with components {''.join(components)!r}"
    )


def _segment(shape: tuple[int, ...], modes: _Modes) -> str:
    if modes.component is None:
        return f"{math.prod(shape)}x(1)"
    components = shape[0] if modes.layout == IR_MUL else shape[-1]
    return f"{math.prod(shape) // components if components else 0}x({components})"


def _path(
    path: Any,
    buffers: Sequence[int],
    modes: Sequence[_Modes],
    product: Any,
    coefficient_modes: str,
    shared: str | None,
    inputs: int,
) -> str:
    extents: dict[str, int] = {}
    for operand, index, names in zip(product.operands, path.indices, _subscripts(product)[0], strict=True):
        extents.update(zip(names, operand.segments[index], strict=True))
    axes = iter("ijklmnopqrst")
    axis_of = {mode: next(axes) for mode in coefficient_modes}
    channel_of: dict[str, str] = {}
    letters = iter("uvwabcdefgh")
    for name in itertools.chain.from_iterable(mode.channels for mode in modes):
        if extents[name] != 1 and name not in channel_of:
            channel_of[name] = next(letters)

    def factor(buffer: int, index: int, mode: _Modes, axis: str | None) -> str:
        name = _name(buffer, inputs)
        channels = "".join(channel_of[channel] for channel in mode.channels if channel in channel_of)
        inside = channels if axis is None else f"{channels}|{axis}"
        return f"{name}.{index}[{inside}]" if inside else f"{name}.{index}"

    axes_of_identity = iter("ij")
    inputs_text, output_text = [], ""
    for buffer, index, mode in zip(buffers, path.indices, modes, strict=True):
        axis = None
        if mode.component is not None:
            axis = next(axes_of_identity) if mode.component == shared else axis_of[mode.component]
        text = factor(buffer, index, mode, axis)
        if buffer < inputs:
            inputs_text.append(text)
        else:
            output_text = text
    values = np.asarray(path.coefficients, dtype=np.float64)
    if shared is not None:
        product_of = [repr(float(values)), f"identity({extents[shared]})[i,j]", *inputs_text]
    elif coefficient_modes:
        entries = "; ".join(f"{','.join(map(str, at))}: {float(values[at])!r}" for at in map(tuple, np.argwhere(values).tolist()))
        shape, names = ",".join(map(str, values.shape)), ",".join(axis_of[mode] for mode in coefficient_modes)
        product_of = [f"{{{shape}; {entries}}}[{names}]", *inputs_text]
    else:
        product_of = [repr(float(values)), *inputs_text]
    sizes = " ".join(f"{letter}={extents[mode]}" for mode, letter in channel_of.items())
    return f"path{' ' if sizes else ''}{sizes}: {output_text} += {' * '.join(product_of)}"
