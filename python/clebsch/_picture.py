"""A polynomial's paths as a picture: inputs' blocks on the left, outputs' on the right, a dot per path that lines lead through."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .operation import Operand, Operation

MOST_PATHS = 120  #: beyond, lines are a thicket
ROW, BOX, WIDTH = 22, 110, 620
COLORS = ("#3b6fb6", "#d0702a", "#3a9a5b", "#a14fb0", "#b8425a", "#7a7a2a", "#2a8f9a")  #: by the degree of a path's output


def paths_svg(operation: Operation) -> str:
    """Text of an SVG element; "" for programs and for polynomials with too many paths. Operands without irreps (weights) have no
    boxes: the dot of a path that they are part of is full, others are hollow."""
    lines = [line for line in operation.text.splitlines() if line.startswith("path")]
    if operation.text.startswith("clebsch program") or not 0 < len(lines) <= MOST_PATHS:
        return ""
    inputs = _boxes([operand for operand in operation.inputs if "(" not in operand.segments])
    outputs = _boxes(operation.outputs)
    places = [
        {operand: (BOX + 40, y) for operand, (y, _) in inputs.items()},
        {operand: (WIDTH - BOX - 40, y) for operand, (y, _) in outputs.items()},
    ]
    height = ROW * max([len(lines), *(y / ROW + 1.5 for y, _ in (*inputs.values(), *outputs.values()))])
    drawn = []
    for number, line in enumerate(lines):
        names = re.findall(r"(?<![\w.])([A-Za-z_]\w*\.\d+)", line)
        out, factors = names[0], list(dict.fromkeys(names[1:]))
        y = (number + 0.5) * height / len(lines)
        color = COLORS[_degree(outputs[out][1]) % len(COLORS)]
        for begin in (places[0][factor] for factor in factors if factor in places[0]):
            drawn.append(_curve(begin, (WIDTH / 2, y), color))
        drawn.append(_curve((WIDTH / 2, y), places[1][out], color))
        full = any(factor not in places[0] for factor in factors)
        drawn.append(
            f'<circle cx="{WIDTH / 2:g}" cy="{y:.1f}" r="4" stroke="{color}" fill="{color if full else "none"}">'
            f"<title>{escape(line)}</title></circle>"
        )
    drawn += [_label(name, 40, y, text) for name, (y, text) in inputs.items()]
    drawn += [_label(name, WIDTH - BOX - 40, y, text) for name, (y, text) in outputs.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'font-family="monospace" font-size="11" fill="none" stroke-width="1.2">{"".join(drawn)}</svg>'
    )


def _boxes(operands: Sequence[Operand]) -> dict[str, tuple[float, str]]:
    """Of every block: its height in the picture and its text; half a row between operands."""
    boxes, y = {}, ROW / 2
    for operand in operands:
        for i, segment in enumerate(operand.segments.split("+")):
            boxes[f"{operand.name}.{i}"] = (y, segment)
            y += ROW
        y += ROW / 2
    return boxes


def _degree(segment: str) -> int:
    found = re.search(r"x(\d+)[eo]", segment)
    return int(found[1]) if found else 0


def _curve(begin: tuple[float, float], end: tuple[float, float], color: str) -> str:
    middle = (begin[0] + end[0]) / 2
    return (
        f'<path d="M{begin[0]:g} {begin[1]:.1f}C{middle:g} {begin[1]:.1f} {middle:g} {end[1]:.1f} {end[0]:g} {end[1]:.1f}" '
        f'stroke="{color}" stroke-opacity="0.7"/>'
    )


def _label(name: str, x: float, y: float, segment: str) -> str:
    text = f"{name} {segment}"
    text = text if len(text) <= 16 else text[:15] + "…"
    return (
        f'<rect x="{x:g}" y="{y - ROW / 2 + 2:.1f}" width="{BOX}" height="{ROW - 4}" rx="3" stroke="currentColor" '
        f'stroke-opacity="0.4"/><text x="{x + 5:g}" y="{y + 4:.1f}" fill="currentColor">{escape(text)}</text>'
    )
